// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/feedback"
	"github.com/actplane/actplane/internal/daemon"
)

// isAnswer tells of an event whether it is the daemon's own, which the kernel does not
// count.
func isAnswer(e *api.Event) bool {
	return feedback.Outcome(e.Outcome).OfRequest()
}

// answer does what a case says of a person: "approve" or "deny", for how long, and
// because of what. It is about the oldest open request.
func answer(ctx context.Context, client *daemon.Client, scope string, words []string) error {
	id, err := oldestRequest(ctx, client, scope)
	if err != nil {
		return err
	}
	request, err := answerOf(words)
	if err != nil {
		return err
	}
	request.Id = id
	if _, err := client.Answer(ctx, request); err != nil {
		return fmt.Errorf("answer a request: %s", daemon.Reason(err))
	}
	return nil
}

// answerOf reads what a person says.
func answerOf(words []string) (*api.AnswerRequest, error) {
	request := &api.AnswerRequest{
		Denied: words[0] == "deny", ForMs: (10 * time.Minute).Milliseconds(), By: &api.Operator{Name: "conformance", Via: "test"},
	}
	if request.Denied {
		request.ForMs, request.ScopeLifetime = 0, true
	}
	rest := words[1:]
	if len(rest) > 0 && rest[0] != "because" {
		request.ForMs, request.ScopeLifetime = 0, false
		switch rest[0] {
		case "once":
			request.Count = 1
		case "scope":
			request.ScopeLifetime = true
		default:
			during, err := time.ParseDuration(rest[0])
			if err != nil {
				return nil, fmt.Errorf("read how long: %w", err)
			}
			request.ForMs = during.Milliseconds()
		}
		rest = rest[1:]
	}
	if len(rest) == 2 {
		request.Because = rest[1]
	}
	return request, nil
}

func oldestRequest(ctx context.Context, client *daemon.Client, scope string) (string, error) {
	stream, err := client.Requests(ctx, &api.RequestsRequest{Scope: scope})
	if err != nil {
		return "", fmt.Errorf("ask for requests: %s", daemon.Reason(err))
	}
	id, opened := "", int64(0)
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", fmt.Errorf("ask for requests: %s", daemon.Reason(err))
		}
		if id == "" || r.OpenedUnixMs < opened {
			id, opened = r.Id, r.OpenedUnixMs
		}
	}
	if id == "" {
		return "", errors.New("no request is open")
	}
	return id, nil
}
