// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"errors"
	"fmt"

	"github.com/actplane/actplane/policy"
	"github.com/actplane/actplane/policy/diag"
)

// compile makes one policy of all layers. Its error is one sentence, with the
// command that shows all there is to say.
func compile(layers []document, workspace string, policyFiles []string) (*policy.Policy, error) {
	var documents []policy.Document
	for _, layer := range layers {
		documents = append(documents, policy.Document{Name: layer.name, Text: layer.text, Layer: policyLayer(layer.layer)})
	}
	compiled, err := policy.Compile(documents, policy.Options{Workspace: workspace, Protect: policyFiles, Enforce: true})
	var list diag.List
	if errors.As(err, &list) {
		return nil, refusal(layers, list)
	}
	if err != nil {
		return nil, fmt.Errorf("compile policy: %w", err)
	}
	return compiled, nil
}

func policyLayer(layer layer) policy.Layer {
	switch layer {
	case host:
		return policy.Host
	case operator:
		return policy.Operator
	}
	return policy.Container
}

func refusal(layers []document, list diag.List) error {
	first := list.First()
	count := "1 error"
	if n := list.Errors(); n != 1 {
		count = fmt.Sprintf("%d errors", n)
	}
	for _, layer := range layers {
		if layer.name != first.File {
			continue
		}
		if layer.check == "" {
			return fmt.Errorf(`policy in %s: %s (first: %d:%d %s: %s); save it as actplane.yaml and run "actplane check actplane.yaml"`,
				layer.name, count, first.Line, first.Col, first.Code, first.Message)
		}
		return fmt.Errorf("policy %q: %s (first: %d:%d %s); run %q",
			layer.name, count, first.Line, first.Col, first.Code, "actplane check "+layer.check)
	}
	return fmt.Errorf("policy: %s (first: %s)", count, first)
}
