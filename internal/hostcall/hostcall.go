// SPDX-License-Identifier: Apache-2.0

// Package hostcall asks a program or a URL of the host's configuration one thing: a
// document goes in, a document comes out. Both ends are the host's; what goes in may hold
// text from inside a container, which is why no shell and no command line is near it.
//
// Everything is bounded: in time by the target's timeout, after which the program and its
// process group are killed, and in size. URLs are asked without proxies, and redirects
// are not followed.
package hostcall

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/internal/approval"
)

// MaxOutput is how much a target may answer, in bytes.
const MaxOutput = 64 << 10

const (
	maxStderr = 4 << 10
	// pipeGrace is for how long a program that has ended may have left its output to
	// another.
	pipeGrace = time.Second
)

// ErrTimeout tells that there was no answer in time.
var ErrTimeout = errors.New("no answer in time")

// StatusError is the status of an HTTP answer that is none of 2xx.
type StatusError int

// Error implements error.
func (s StatusError) Error() string {
	return fmt.Sprintf("it answers %d %s", int(s), http.StatusText(int(s)))
}

// Peer looks at a connection to a target of this host before anything is sent, and says what
// is wrong with whoever is at its other end. When the target is down, its port or socket can
// be somebody else's: a container's that has the host's network, too.
type Peer func(net.Conn) error

// Caller asks one target. It may be used by several goroutines.
type Caller struct {
	target     approval.Target
	credential *syscall.Credential
	client     *http.Client // nil for a program
}

// New makes a caller of a target that was checked. A nil peer takes whoever answers.
func New(target approval.Target, peer Peer) (*Caller, error) {
	credential, err := target.Credential()
	if err != nil {
		return nil, err
	}
	c := &Caller{target: target, credential: credential}
	if target.URL != "" {
		c.client = newClient(&target, peer)
	}
	return c, nil
}

// Call gives the target a document and returns what it answers. Headers are for a URL.
func (c *Caller) Call(ctx context.Context, input []byte, headers map[string]string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.target.Timeout)
	defer cancel()
	var output []byte
	var err error
	if c.client != nil {
		output, err = c.post(ctx, input, headers)
	} else {
		output, err = c.run(ctx, input)
	}
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil, fmt.Errorf("%w (%s)", ErrTimeout, c.target.Timeout)
	}
	return output, err
}

// run runs the program in a process group and an environment of its own.
func (c *Caller) run(ctx context.Context, input []byte) ([]byte, error) {
	cmd := exec.CommandContext(ctx, c.target.Command[0], c.target.Command[1:]...)
	stdout, stderr := &bounded{limit: MaxOutput}, &bounded{limit: maxStderr, cut: true}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), stdout, stderr
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"}
	for name, value := range c.target.Environment {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: c.credential}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = pipeGrace
	// What this process was given by who started it is not for the program.
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return nil, fmt.Errorf("keep descriptors from it: %w", err)
	}
	err := cmd.Run()
	switch {
	case stdout.full:
		return nil, fmt.Errorf("it prints more than %d KiB", MaxOutput>>10)
	case errors.Is(err, exec.ErrWaitDelay):
		return nil, errors.New("it has ended, and something that it started still has its output")
	case err != nil:
		return nil, withStderr(err, stderr.buffer.String())
	}
	return stdout.buffer.Bytes(), nil
}

// withStderr adds a program's last words.
func withStderr(err error, text string) error {
	if text = strings.TrimSpace(text); text == "" {
		return err
	}
	lines := strings.Split(text, "\n")
	return fmt.Errorf("%w: %s", err, lines[len(lines)-1])
}

// bounded keeps what is written to it, up to a limit; more is an error, or cut.
type bounded struct {
	buffer bytes.Buffer // not embedded: io.Copy would go past Write
	limit  int
	cut    bool
	full   bool
}

func (b *bounded) Write(p []byte) (int, error) {
	room := b.limit - b.buffer.Len()
	if len(p) <= room {
		return b.buffer.Write(p)
	}
	b.buffer.Write(p[:room])
	if b.full = true; b.cut {
		return len(p), nil
	}
	return room, io.ErrShortWrite
}

// newClient makes a client that goes where the URL says and nowhere else.
func newClient(target *approval.Target, peer Peer) *http.Client {
	dialer := &net.Dialer{}
	transport := &http.Transport{
		Proxy: nil, MaxIdleConns: 4, IdleConnTimeout: 30 * time.Second, MaxResponseHeaderBytes: 64 << 10, ForceAttemptHTTP2: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if target.Socket != "" {
				network, address = "unix", target.Socket
			}
			conn, err := dialHost(ctx, dialer, network, address)
			if err != nil || peer == nil || !ofHost(conn) {
				return conn, err
			}
			if err := peer(conn); err != nil {
				conn.Close()
				return nil, fmt.Errorf("who answers there is not asked: %w", err)
			}
			return conn, nil
		},
	}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// ofHost tells whether a connection ends on this host, as far as its address says.
func ofHost(conn net.Conn) bool {
	address, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	return err != nil || address.Addr().Unmap().IsLoopback() // else a Unix socket
}

// dialHost asks no resolver for localhost.
func dialHost(ctx context.Context, dialer *net.Dialer, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil || !strings.EqualFold(host, "localhost") {
		return dialer.DialContext(ctx, network, address)
	}
	conn, err := dialer.DialContext(ctx, network, net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		conn, err = dialer.DialContext(ctx, network, net.JoinHostPort("::1", port))
	}
	return conn, err
}

func (c *Caller) post(ctx context.Context, input []byte, headers map[string]string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.target.URL, bytes.NewReader(input))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "actplane")
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	response, err := c.client.Do(request)
	if err != nil {
		return nil, withoutURL(err)
	}
	defer response.Body.Close()
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return nil, StatusError(response.StatusCode)
	}
	output, err := io.ReadAll(io.LimitReader(response.Body, MaxOutput+1))
	if err != nil {
		return nil, err
	}
	if len(output) > MaxOutput {
		return nil, fmt.Errorf("it answers more than %d KiB", MaxOutput>>10)
	}
	return output, nil
}

// withoutURL: a webhook's URL is often its secret, and errors are logged.
func withoutURL(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}
