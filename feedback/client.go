// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"syscall"
	"time"
)

// maxAnswer bounds what a Client reads: the largest answer, all of it escaped.
const maxAnswer = 8 << 20

// ErrNoScope tells that there is no socket: the process is in no scope.
var ErrNoScope = errors.New("not in an ActPlane scope, or in one without feedback")

// Client asks a scope's socket from inside.
type Client struct {
	path string
	http http.Client
}

// NewClient returns a client of the socket at path. It connects on first use.
func NewClient(path string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return connect(ctx, path) }
	return &Client{path: path, http: http.Client{Transport: &http.Transport{DialContext: dial}}}
}

// How long a Client waits for room in the socket's queue, and how often it looks.
const (
	queueTime = time.Second
	queuePoll = 2 * time.Millisecond
)

// connect waits for room in the queue of those who are not accepted yet: any process of the
// container can fill it, for a while, and the kernel then turns away who does not wait.
func connect(ctx context.Context, path string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, queueTime)
	defer cancel()
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
		if !errors.Is(err, syscall.EAGAIN) {
			return conn, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(queuePoll):
		}
	}
}

// Feedback asks what happened.
func (c *Client) Feedback(ctx context.Context, query Query) (Page, error) {
	var page Page
	return page, c.do(ctx, http.MethodGet, "/v1/feedback?"+query.Encode(), nil, &page)
}

// Ack acknowledges a page that was delivered to a consumer.
func (c *Client) Ack(ctx context.Context, ack Ack) error {
	return c.do(ctx, http.MethodPost, "/v1/acks", ack, new(Ack))
}

// Status asks whether and how the scope is enforced.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var status Status
	return status, c.do(ctx, http.MethodGet, "/v1/status", nil, &status)
}

// Policy asks for the policy's documents.
func (c *Client) Policy(ctx context.Context) (Policy, error) {
	var policy Policy
	return policy, c.do(ctx, http.MethodGet, "/v1/policy", nil, &policy)
}

// Narrow adds rules to the policy. When it returns without an error, they hold. Where rules
// are wrong, the error is a Refusal.
func (c *Client) Narrow(ctx context.Context, request NarrowRequest) (Narrowed, error) {
	var answer Narrowed
	return answer, c.do(ctx, http.MethodPost, "/v1/policy/rules", request, &answer)
}

// Check asks whether something would be allowed.
func (c *Client) Check(ctx context.Context, request CheckRequest) (Checked, error) {
	var answer Checked
	return answer, c.do(ctx, http.MethodPost, "/v1/check", request, &answer)
}

func (c *Client) do(ctx context.Context, method, path string, body, answer any) error {
	var sent io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("encode request: %w", err)
		}
		sent = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://actplane"+path, sent)
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	response, err := c.http.Do(request)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w (no %s)", ErrNoScope, c.path)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("the ActPlane engine does not answer on %s; the policy is enforced all the same: %w", c.path, err)
	case errors.Is(err, syscall.EAGAIN):
		return fmt.Errorf("too many processes wait for an answer on %s; try again later: %w", c.path, err)
	case err != nil:
		return fmt.Errorf("ask %s: %w", c.path, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("read answer of %s: %w", c.path, err)
	}
	if response.StatusCode != http.StatusOK {
		var failure Failure
		if json.Unmarshal(text, &failure) != nil || failure.Error == "" {
			failure.Error = response.Status
		}
		return fmt.Errorf("ask %s: %w", c.path, &Refusal{
			Status: response.StatusCode, Sentence: plain(failure.Error, maxRawText), Diagnostics: failure.Diagnostics,
		})
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("decode answer of %s: %w", c.path, err)
	}
	return nil
}
