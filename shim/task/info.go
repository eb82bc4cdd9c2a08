// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"time"

	"github.com/containerd/containerd/api/types"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/actplane/actplane/internal/version"
)

const (
	// featuresType is how containerd names the document of an OCI runtime's features.
	featuresType = "types.containerd.io/opencontainers/runtime-spec/1/features/Features"
	infoTimeout  = 10 * time.Second
)

// info answers containerd 2, which asks what a runtime can do before it maps the users of
// a container: options from in, the answer to out. The shims of containerd 1.7's packages
// cannot be asked.
func info(in io.Reader, out io.Writer, find func(string) (string, error)) error {
	input, err := io.ReadAll(io.LimitReader(in, maxOptions+1))
	if err != nil {
		return fmt.Errorf("read runtime options: %w", err)
	}
	if len(input) > maxOptions {
		return fmt.Errorf("runtime options are larger than %d KiB", maxOptions>>10)
	}
	var given anypb.Any
	if err := proto.Unmarshal(input, &given); err != nil {
		return fmt.Errorf("read runtime options: %w", err)
	}
	options, err := runcOptions(&given)
	if err != nil {
		return err
	}
	answer := &types.RuntimeInfo{Name: Runtime, Version: &types.RuntimeVersion{Version: version.String()}}
	if answer.Options, err = pack(options); err != nil {
		return err
	}
	if features := featuresOf(find); features != nil {
		answer.Features = &anypb.Any{TypeUrl: featuresType, Value: features}
	}
	data, err := proto.Marshal(answer)
	if err != nil {
		return fmt.Errorf("encode runtime info: %w", err)
	}
	_, err = out.Write(data)
	return err
}

// featuresOf asks the next runtime for its features, which not each can tell.
func featuresOf(find func(string) (string, error)) json.RawMessage {
	path, err := find(program)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), infoTimeout)
	defer cancel()
	text, err := exec.CommandContext(ctx, path, "features").Output()
	if err != nil || !json.Valid(text) {
		return nil
	}
	return text
}
