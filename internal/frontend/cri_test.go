// SPDX-License-Identifier: Apache-2.0

package frontend

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

func field(number protowire.Number, value string) string {
	return string(protowire.AppendString(protowire.AppendTag(nil, number, protowire.BytesType), value))
}

// serveCRI answers the call Status on a socket.
func serveCRI(t *testing.T, message, status string) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Protocols: new(http.Protocols), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path != "/runtime.v1.RuntimeService/Status" || string(body) != "\x00\x00\x00\x00\x02\x08\x01" || r.Header.Get("Te") != "trailers" {
			t.Errorf("asked %s with %q and %v", r.URL.Path, body, r.Header)
		}
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Trailer", "Grpc-Status, Grpc-Message")
		if status == "0" {
			_, _ = w.Write(append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...))
		}
		w.Header().Set("Grpc-Status", status)
		w.Header().Set("Grpc-Message", "no such thing")
	})}
	server.Protocols.SetUnencryptedHTTP2(true)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Close() })
	return socket
}

func TestCRIHandlers(t *testing.T) {
	conditions := field(1, field(1, "RuntimeReady"))
	for _, test := range []struct{ name, message, want string }{
		{"containerd 1.7", conditions + field(2, field(1, "golang")+field(2, `"go1"`)) + field(2, field(1, "config")+field(2, `{"containerd":{"runtimes":{"actplane":{"type":"x"}}}}`)), "[actplane]"},
		{"containerd 2", conditions + field(3, "") + field(3, field(1, "actplane")+field(2, "\x08\x01")) + field(3, field(1, "runc")), "[actplane runc]"},
		{"none of them", field(2, field(1, "config")+field(2, `{"containerd":{"runtimes":{}}}`)), "[]"},
	} {
		got, err := criHandlers(t.Context(), serveCRI(t, test.message, "0"))
		if err != nil || fmt.Sprint(got) != test.want {
			t.Errorf("%s: %v, %v", test.name, got, err)
		}
	}
	for _, test := range []struct{ name, message, status, want string }{
		{"does not tell", conditions, "0", "does not tell"},
		{"not a message", "\xff\xff", "0", "read its answer"},
		{"cut", field(3, "abc")[:3], "0", "read its answer"},
		{"an error", "", "2", `status 2: no such thing`},
	} {
		if got, err := criHandlers(t.Context(), serveCRI(t, test.message, test.status)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, %v", test.name, got, err)
		}
	}
	if _, err := criHandlers(t.Context(), serveCRI(t, "", "12")); !errors.Is(err, errNoCRI) {
		t.Errorf("no CRI: %v", err)
	}
}

func TestSettleCRI(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "s")
	known := serveCRI(t, field(3, field(1, "actplane")), "0")
	for _, test := range []struct {
		socket string
		want   bool
		told   string
	}{
		{missing, true, "is not running"},
		{known, true, "knows the runtime handler"},
		{known, false, "run \"systemctl restart crio\""},
		{serveCRI(t, "", "12"), true, "does not serve the CRI"},
	} {
		if told, err := settleCRI(t.Context(), "crio", test.socket, test.want, false); err != nil || !strings.Contains(told, test.told) {
			t.Errorf("%q, %v; want %q", told, err, test.told)
		}
	}
}
