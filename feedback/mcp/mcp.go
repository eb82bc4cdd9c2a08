// SPDX-License-Identifier: Apache-2.0

// Package mcp is the scope's feedback as a server of the Model Context Protocol, for
// agents that have a client: what the feedback socket tells and takes, as resources and
// tools. It decides nothing, and lets nobody do more than the socket does: no tool can
// approve anything, or take a rule back.
//
// Its texts are facts, as those of package feedback, and what a container's programs
// chose stands in them as that package puts it: quoted and bounded.
package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/actplane/actplane/feedback"
)

// The resources.
const (
	statusURI   = "actplane://status"
	policyURI   = "actplane://policy"
	feedbackURI = "actplane://feedback"
)

// Bounds of an answer.
const (
	maxTold    = 50               // items
	requestFor = 10 * time.Second // that waits for nothing
	narrowFor  = time.Minute
	maxWait    = 5 * time.Minute // for an approval
	maxLine    = 1 << 20         // of a message to the server
)

// Server answers one client.
type Server struct {
	client *feedback.Client
	// depth is how many ancestors above this process the agent is, as feedback.TreeDepth
	// tells: the tree that is told of, and what rules are added for.
	depth int
	retry time.Duration // between attempts to reach an engine that went away
}

// New returns a server of what a client tells.
func New(client *feedback.Client, depth int) *Server {
	return &Server{client: client, depth: depth, retry: time.Second}
}

// Serve answers on a pair of streams until the input ends, which is no error, or the
// context does.
func (s *Server) Serve(ctx context.Context, in io.ReadCloser, out io.WriteCloser, version string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := s.server(version)
	go s.watch(ctx, server)
	err := server.Run(ctx, &sdk.IOTransport{Reader: in, Writer: out, MaxLineLength: maxLine})
	if err != nil && !errors.Is(err, io.EOF) && ctx.Err() == nil {
		return fmt.Errorf("serve the model context protocol: %w", err)
	}
	return nil
}

func (s *Server) server(version string) *sdk.Server {
	none := func(context.Context, *sdk.SubscribeRequest) error { return nil }
	server := sdk.NewServer(&sdk.Implementation{Name: "actplane", Title: "ActPlane", Version: version}, &sdk.ServerOptions{
		Instructions: "A policy of this container's operator is enforced in the kernel on all processes here. " +
			"These tools tell what it refused and why, and can add stricter rules. Nothing here lifts or approves anything.",
		Capabilities:       &sdk.ServerCapabilities{}, // no logging; the rest goes by what is there
		SubscribeHandler:   none,
		UnsubscribeHandler: func(context.Context, *sdk.UnsubscribeRequest) error { return nil },
	})
	s.addResources(server)
	s.addTools(server)
	return server
}

func (s *Server) addResources(server *sdk.Server) {
	for _, r := range []struct {
		uri, name, says string
		read            func(context.Context) (any, error)
	}{
		{statusURI, "status", "Whether the policy is enforced, how, and what is not as it should be", s.status},
		{policyURI, "policy", "The policy's documents, outermost layer first", s.policy},
		{feedbackURI, "feedback", "What the policy refused or noted, newest last", s.feedback},
	} {
		server.AddResource(&sdk.Resource{URI: r.uri, Name: r.name, Description: r.says, MIMEType: "application/json"},
			func(ctx context.Context, _ *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
				ctx, cancel := context.WithTimeout(ctx, requestFor)
				defer cancel()
				value, err := r.read(ctx)
				if err != nil {
					return nil, err
				}
				text, err := feedback.EncodeJSON(value)
				if err != nil {
					return nil, err
				}
				return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.uri, MIMEType: "application/json", Text: string(text)}}}, nil
			})
	}
}

func (s *Server) status(ctx context.Context) (any, error) { return s.client.Status(ctx) }
func (s *Server) policy(ctx context.Context) (any, error) { return s.client.Policy(ctx) }

func (s *Server) feedback(ctx context.Context) (any, error) {
	items, missed, err := s.newest(ctx, false, maxTold)
	return told(items, missed), err
}

// newest are the newest items of the agent's process tree, or of the whole container.
func (s *Server) newest(ctx context.Context, all bool, limit int) (items []feedback.Entry, missed uint64, err error) {
	query := feedback.Query{All: all, Depth: s.depth}
	for {
		page, err := s.client.Feedback(ctx, query)
		if err != nil {
			return nil, 0, err
		}
		missed += page.Missed
		items = append(items, page.Items...)
		items = items[max(0, len(items)-limit):]
		if query.After = page.Cursor; page.Remaining == 0 {
			return items, missed, nil
		}
	}
}

// watch tells those who have subscribed that there is something new. An engine that
// restarts is waited for.
func (s *Server) watch(ctx context.Context, server *sdk.Server) {
	query := feedback.Query{Depth: s.depth}
	for first := true; ctx.Err() == nil; {
		page, err := s.client.Feedback(ctx, query)
		if err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(s.retry):
			}
			continue
		}
		query.After = page.Cursor
		if !first && len(page.Items) > 0 {
			_ = server.ResourceUpdated(ctx, &sdk.ResourceUpdatedNotificationParams{URI: feedbackURI}) // a client that went away
		}
		if page.Remaining == 0 {
			first, query.Wait = false, feedback.MaxWait
		}
	}
}

// Told is what a tool and the feedback resource tell of items.
type Told struct {
	Items []ToldItem `json:"items" jsonschema:"what happened, newest last"`
	// Missed counts older ones that are no longer kept.
	Missed uint64 `json:"missed,omitempty" jsonschema:"how many older ones are no longer kept"`
}

// ToldItem is one thing that happened.
type ToldItem struct {
	Sequence  uint64    `json:"sequence"`
	Time      time.Time `json:"time"`
	Message   string    `json:"message" jsonschema:"what happened, by which rule, and what would change it"`
	Operation string    `json:"operation"`
	Effect    string    `json:"effect"`
	Rule      string    `json:"rule,omitempty"`
	Position  string    `json:"position,omitempty" jsonschema:"where the clause stands in the policy: file:line:column"`
	Outcome   string    `json:"outcome,omitempty" jsonschema:"of an operation that a person is asked about"`
	Request   string    `json:"request,omitempty" jsonschema:"by which people know it"`
}

func told(items []feedback.Entry, missed uint64) Told {
	out := Told{Items: []ToldItem{}, Missed: missed}
	for _, e := range items {
		out.Items = append(out.Items, ToldItem{
			Sequence: e.Sequence, Time: e.Time, Message: e.Message, Operation: e.Operation, Effect: string(e.Effect),
			Rule: feedback.Printable(e.Rule), Position: feedback.Printable(e.ClausePosition), Outcome: string(e.Outcome), Request: e.Request,
		})
	}
	return out
}

// text is what of items a model reads.
func (t Told) text() string {
	if len(t.Items) == 0 {
		return "ActPlane has refused and noted nothing here."
	}
	var b strings.Builder
	if t.Missed > 0 {
		fmt.Fprintf(&b, "(%d older records are no longer kept)\n", t.Missed)
	}
	for _, item := range t.Items {
		b.WriteString(item.Message + "\n")
	}
	return b.String()
}
