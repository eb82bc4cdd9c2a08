// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/actplane/actplane/feedback"
)

func (s *Server) addTools(server *sdk.Server) {
	no := false
	reads := &sdk.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: &no}
	sdk.AddTool(server, &sdk.Tool{
		Name: "explain_denial", Title: "Why was this refused?", Annotations: reads,
		Description: "Lists what the policy refused, asked about or noted of this agent's processes, newest last: the operation, the rule, its reason, " +
			"and what would change the answer. A bare EPERM or \"Operation not permitted\" is explained here.",
	}, s.explainDenial)
	sdk.AddTool(server, &sdk.Tool{
		Name: "check", Title: "Would this be allowed?", Annotations: reads,
		Description: "Tells whether the policy would allow an operation to this agent now, and by which rule it would be refused, without doing it. " +
			"The operation itself is decided on afresh.",
	}, s.check)
	sdk.AddTool(server, &sdk.Tool{
		Name: "request_approval", Title: "What became of a request for approval?", Annotations: reads,
		Description: "An operation that needs a person's approval opens a request by itself when it is tried; its refusal names the request. This tells what became of it, " +
			"and can wait for the answer. It opens none ahead of time: an approval is for one operation as it is tried, with its file, arguments, environment and directory. " +
			"So try it: where the policy asks, that is refused and does nothing (or waits), and opens the request; check tells whether it asks. " +
			"Only a person, or a program of the host's, answers. Once it is approved, the very same operation succeeds.",
	}, s.requestApproval)
	sdk.AddTool(server, &sdk.Tool{
		Name: "narrow_policy", Title: "Add stricter rules",
		Annotations: &sdk.ToolAnnotations{IdempotentHint: true, DestructiveHint: &no, OpenWorldHint: &no},
		Description: "Adds rules to the policy in ActPlane's policy language, for this agent and what it starts from now on, or for the whole container. " +
			"They can refuse more and never less, hold when this returns, and cannot be taken back. Example: " +
			`rule tests-stay: block write "tests/**" because "The tests are the specification."`,
	}, s.narrowPolicy)
}

// failed is a tool's answer that tells the model of an error.
func failed(err error) *sdk.CallToolResult {
	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: feedback.Printable(err.Error())}}}
}

func says(text string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}
}

// ExplainInput is what explain_denial takes.
type ExplainInput struct {
	Limit int  `json:"limit,omitempty" jsonschema:"how many at most, from 1 to 50; 10 without it"`
	All   bool `json:"all,omitempty" jsonschema:"of all processes of the container, and not of this agent's alone"`
}

func (s *Server) explainDenial(ctx context.Context, _ *sdk.CallToolRequest, in ExplainInput) (*sdk.CallToolResult, any, error) {
	ctx, cancel := context.WithTimeout(ctx, requestFor)
	defer cancel()
	limit := in.Limit
	if limit == 0 {
		limit = 10
	}
	if limit < 1 || limit > maxTold {
		return failed(fmt.Errorf("limit is a number from 1 to %d", maxTold)), nil, nil
	}
	items, missed, err := s.newest(ctx, in.All, limit)
	if err != nil {
		return failed(err), nil, nil
	}
	all := told(items, missed)
	return says(all.text()), all, nil
}

// CheckInput is what check takes.
type CheckInput struct {
	Operation string   `json:"operation" jsonschema:"exec, open, read, write, append, unlink, connect, bind, send or recv"`
	Object    string   `json:"object" jsonschema:"a program or path, or ADDRESS:PORT, or unix:PATH"`
	Args      []string `json:"args,omitempty" jsonschema:"of exec: the arguments, without the program's own name"`
}

func (s *Server) check(ctx context.Context, _ *sdk.CallToolRequest, in CheckInput) (*sdk.CallToolResult, any, error) {
	ctx, cancel := context.WithTimeout(ctx, requestFor)
	defer cancel()
	answer, err := s.client.Check(ctx, feedback.CheckRequest{
		Operation: in.Operation, Object: feedback.ResolveObject(in.Operation, in.Object), Args: in.Args, Depth: max(0, s.depth),
	})
	if err != nil {
		return failed(err), nil, nil
	}
	return says(answer.Message + "\n" + answer.Unseen), answer, nil
}

// RequestInput is what request_approval takes.
type RequestInput struct {
	Request string `json:"request" jsonschema:"the request's name, as the refusal told it"`
	Wait    int    `json:"wait_seconds,omitempty" jsonschema:"for how long to wait for an answer, at most 300"`
}

// requestApproval tells the newest of what is known of a request, and waits while that is
// no answer.
func (s *Server) requestApproval(ctx context.Context, _ *sdk.CallToolRequest, in RequestInput) (*sdk.CallToolResult, any, error) {
	wait := time.Duration(in.Wait) * time.Second
	if in.Wait < 0 || wait > maxWait {
		return failed(fmt.Errorf("wait_seconds is a number from 0 to %d", maxWait/time.Second)), nil, nil
	}
	deadline := time.Now().Add(wait)
	ctx, cancel := context.WithDeadline(ctx, deadline.Add(requestFor))
	defer cancel()
	var found *feedback.Entry
	query := feedback.Query{All: true}
	for {
		page, err := s.client.Feedback(ctx, query)
		if err != nil {
			return failed(err), nil, nil
		}
		for i := range page.Items {
			if page.Items[i].Request == in.Request && in.Request != "" {
				found = &page.Items[i]
			}
		}
		query.After = page.Cursor
		if page.Remaining > 0 {
			continue
		}
		left := time.Until(deadline)
		if found == nil || !open(found.Outcome) || left <= 0 {
			break
		}
		query.Wait = min(left, feedback.MaxWait).Round(time.Millisecond)
	}
	if found == nil {
		return failed(errors.New("no request of this name is known here; the refusal of what needs approval names its request")), nil, nil
	}
	one := told([]feedback.Entry{*found}, 0)
	return says(one.text()), one, nil
}

// open tells whether a request can still be answered.
func open(outcome feedback.Outcome) bool {
	return outcome == feedback.Opened || outcome == feedback.StillOpen || outcome == feedback.Held || outcome == feedback.Warned
}

// NarrowInput is what narrow_policy takes.
type NarrowInput struct {
	Policy string `json:"policy" jsonschema:"rules in ActPlane's policy language, or a whole policy file"`
	For    string `json:"for,omitempty" jsonschema:"agent (this agent and what it starts from now on) or container (everything in it, also after a restart); agent without it"`
}

func (s *Server) narrowPolicy(ctx context.Context, _ *sdk.CallToolRequest, in NarrowInput) (*sdk.CallToolResult, any, error) {
	ctx, cancel := context.WithTimeout(ctx, narrowFor)
	defer cancel()
	request := feedback.NarrowRequest{Policy: in.Policy, For: feedback.ForContainer}
	whom := "the whole container, also after it is started again"
	switch in.For {
	case "container":
	case "", "agent":
		if s.depth < 0 {
			return failed(errors.New("which process the agent is cannot be seen from here; rules can be added for the container")), nil, nil
		}
		request.For, request.Depth = feedback.ForProcess, s.depth
		whom = "this agent and what it starts from now on"
	default:
		return failed(errors.New("for is agent or container")), nil, nil
	}
	answer, err := s.client.Narrow(ctx, request)
	if err != nil {
		return failed(err), nil, nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s is in force for %s.\n", feedback.Printable(answer.Name), whom)
	for _, d := range answer.Warnings {
		b.WriteString(d.String() + "\n")
	}
	for _, note := range answer.Notes {
		b.WriteString("note: " + feedback.Printable(note) + "\n")
	}
	return says(b.String()), answer, nil
}
