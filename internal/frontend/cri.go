// SPDX-License-Identifier: Apache-2.0

package frontend

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/actplane/actplane/internal/plain"
)

// errNoCRI is a daemon that does not serve the CRI.
var errNoCRI = errors.New("it does not serve the CRI")

const maxAnswer = 4 << 20

// criKnows asks a daemon of the CRI whether it knows the runtime.
func criKnows(ctx context.Context, socket string) (running, knows bool, unsure error) {
	if !exists(socket) {
		return false, false, nil
	}
	handlers, err := criHandlers(ctx, socket)
	if errors.Is(err, fs.ErrPermission) {
		return true, false, &DeniedError{"root"}
	}
	var refused *net.OpError
	if errors.As(err, &refused) && refused.Op == "dial" {
		return false, false, nil // the socket is left of one that ended
	}
	return true, slices.Contains(handlers, runtimeName), err
}

// criHandlers asks for the runtime handlers by the call Status of the CRI: one small
// request, for which a client of gRPC would be much code.
func criHandlers(ctx context.Context, socket string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
		Protocols: new(http.Protocols),
	}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	message := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 1) // verbose
	frame := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/runtime.v1.RuntimeService/Status", bytes.NewReader(frame))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/grpc")
	request.Header.Set("TE", "trailers")
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("read its answer: %w", err)
	}
	if err := grpcError(response); err != nil {
		return nil, err
	}
	if len(body) < 5 || body[0] != 0 || int64(binary.BigEndian.Uint32(body[1:])) != int64(len(body)-5) {
		return nil, errors.New("read its answer: it is not one message")
	}
	return handlersOf(body[5:])
}

// grpcError is what a call ended with. A call that failed may have its trailers as headers.
func grpcError(response *http.Response) error {
	headers := response.Trailer
	if headers.Get("Grpc-Status") == "" {
		headers = response.Header
	}
	switch status := headers.Get("Grpc-Status"); status {
	case "0":
		return nil
	case "12":
		return errNoCRI
	default:
		return fmt.Errorf("it answers with status %s: %s", plain.Text(status), plain.Text(headers.Get("Grpc-Message")))
	}
}

// handlersOf reads a StatusResponse: newer ones list the handlers, older ones of
// containerd have its configuration as JSON.
func handlersOf(message []byte) ([]string, error) {
	var names []string
	told := false
	err := eachField(message, func(number protowire.Number, value []byte) error {
		switch number {
		case 2:
			var key, text []byte
			if err := eachField(value, func(n protowire.Number, v []byte) error {
				if n == 1 {
					key = v
				} else if n == 2 {
					text = v
				}
				return nil
			}); err != nil || string(key) != "config" {
				return err
			}
			var config struct {
				Containerd struct {
					Runtimes map[string]json.RawMessage `json:"runtimes"`
				} `json:"containerd"`
			}
			if json.Unmarshal(text, &config) == nil && config.Containerd.Runtimes != nil {
				told = true
				for name := range config.Containerd.Runtimes {
					names = append(names, name)
				}
			}
		case 3:
			told = true
			return eachField(value, func(n protowire.Number, v []byte) error {
				if n == 1 {
					names = append(names, string(v))
				}
				return nil
			})
		}
		return nil
	})
	if err == nil && !told {
		err = errors.New("it does not tell its runtime handlers")
	}
	return names, err
}

// eachField calls visit for the fields of a message that are texts or messages.
func eachField(message []byte, visit func(protowire.Number, []byte) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return fmt.Errorf("read its answer: %w", protowire.ParseError(n))
		}
		message = message[n:]
		size := protowire.ConsumeFieldValue(number, kind, message)
		if size < 0 {
			return fmt.Errorf("read its answer: %w", protowire.ParseError(size))
		}
		if kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(message)
			if err := visit(number, value); err != nil {
				return err
			}
		}
		message = message[size:]
	}
	return nil
}

// settleCRI makes a daemon of the CRI read its files, which it does only when it
// begins. Its containers go on meanwhile.
func settleCRI(ctx context.Context, unit, socket string, want, restart bool) (string, error) {
	running, knows, err := criKnows(ctx, socket)
	switch {
	case !running:
		return unit + " is not running; it reads its files when it starts", nil
	case errors.Is(err, errNoCRI):
		return unit + " does not serve the CRI", nil
	case err == nil && knows == want:
		return fmt.Sprintf("%s %s the runtime handler actplane", unit, map[bool]string{true: "knows", false: "does not know"}[want]), nil
	case !restart:
		return fmt.Sprintf("%s reads its files when it is restarted, which its containers outlive: run \"systemctl restart %s\", or this again with --restart", unit, unit), nil
	}
	if out, err := exec.CommandContext(ctx, "systemctl", "restart", unit).CombinedOutput(); err != nil {
		return "", fmt.Errorf("restart %s: %w: %s", unit, err, plain.Text(strings.TrimSpace(string(out))))
	}
	ok := Poll(ctx, settleTime, func() bool {
		_, knows, err = criKnows(ctx, socket)
		return err == nil && knows == want
	})
	switch {
	case !ok && err != nil:
		return "", fmt.Errorf("%s was restarted, and whether it knows the runtime is not to be told: %w", unit, err)
	case !ok:
		return "", fmt.Errorf("%s was restarted and does not do as its files say; see \"journalctl -u %s\"", unit, unit)
	}
	return unit + " was restarted", nil
}

// Poll asks until the answer is yes, or the time is up.
func Poll(ctx context.Context, limit time.Duration, yes func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for !yes() {
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
	}
	return true
}
