// SPDX-License-Identifier: Apache-2.0

package hostcall

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/internal/approval"
)

// script is a target that runs a shell's text.
func script(t *testing.T, text string) approval.Target {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return approval.Target{Name: "p", Command: []string{path, "$(id) ;x"}, Timeout: 10 * time.Second}
}

func call(t *testing.T, target approval.Target, input string) (string, error) {
	t.Helper()
	caller, err := New(target, nil)
	if err != nil {
		t.Fatal(err)
	}
	output, err := caller.Call(context.Background(), []byte(input), map[string]string{"x-test": "1"})
	return string(output), err
}

func TestProgram(t *testing.T) {
	t.Setenv("ACTPLANE_TEST_SECRET", "1")
	leaked, err := unix.Open("/dev/null", unix.O_RDONLY, 0) // without O_CLOEXEC
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(leaked)
	target := script(t, `cat; echo "|$1|$#|$(pwd)|$EXTRA"; env | grep -c SECRET; echo fds; ls /proc/$$/fd; true`)
	target.Environment = map[string]string{"EXTRA": "a b"}
	got, err := call(t, target, `{"x":1}`)
	if err != nil || !strings.HasPrefix(got, "{\"x\":1}|$(id) ;x|1|/|a b\n0\n") {
		t.Errorf("%q, %v", got, err)
	}
	// 10 and 11 are the shell's own.
	_, fds, _ := strings.Cut(got, "fds\n")
	for _, fd := range strings.Fields(fds) {
		if n, err := strconv.Atoi(fd); err != nil || n > 2 && n != 10 && n != 11 {
			t.Errorf("it has the descriptor %s", fd)
		}
	}
	if os.Geteuid() == 0 {
		target := script(t, "id -u; id -G")
		target.User = "nobody"
		if err := os.Chmod(filepath.Dir(target.Command[0]), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Dir(filepath.Dir(target.Command[0])), 0o755); err != nil {
			t.Fatal(err)
		}
		if got, err := call(t, target, ""); err != nil || strings.HasPrefix(got, "0\n") || len(strings.Fields(got)) != 2 {
			t.Errorf("as nobody: %q, %v", got, err)
		}
	}
	for text, want := range map[string]string{
		"echo no >&2; echo sorry >&2; exit 3":     "exit status 3: sorry",
		"head -c 70000 /dev/zero":                 "more than 64 KiB",
		"yes":                                     "more than 64 KiB",
		"head -c 100000000 /dev/zero >&2; exit 1": "exit status 1",
		"sleep 100 &":                             "still has its output",
		"kill -KILL $$":                           "signal: killed",
	} {
		if got, err := call(t, script(t, text), "x"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %.60q, %v, want %q", text, got, err, want)
		}
	}
	if _, err := call(t, approval.Target{Command: []string{"/no/such"}, Timeout: time.Second}, ""); err == nil {
		t.Error("a program that is not there ran")
	}
	// It need not read what it is given.
	if got, err := call(t, script(t, "echo ok"), strings.Repeat("x", 1<<20)); err != nil || got != "ok\n" {
		t.Errorf("%q, %v", got, err)
	}
}

// At its timeout the program ends, with all that it started in its process group.
func TestProgramTimesOut(t *testing.T) {
	note := filepath.Join(t.TempDir(), "child")
	target := script(t, "sleep 1000 & echo $! > "+note+"; wait")
	target.Timeout = 500 * time.Millisecond
	if _, err := call(t, target, ""); !errors.Is(err, ErrTimeout) {
		t.Errorf("%v", err)
	}
	text, err := os.ReadFile(note)
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); syscall.Kill(child, 0) == nil; time.Sleep(time.Millisecond) {
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", child)); err == nil && strings.Contains(string(stat), ") Z ") {
			break
		}
		if time.Now().After(end) {
			t.Fatal("its child lives on")
		}
	}
	// So it does when who asks goes away.
	ctx, cancel := context.WithCancel(context.Background())
	caller, err := New(script(t, "sleep 1000"), nil)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := caller.Call(ctx, nil, nil); err == nil || errors.Is(err, ErrTimeout) {
		t.Errorf("%v", err)
	}
}

func TestURL(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	mux := http.NewServeMux()
	mux.HandleFunc("/ok", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprint(w, r.Method, r.Header.Get("x-test"), r.Header.Get("content-type"), string(body))
	})
	mux.HandleFunc("/elsewhere", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/ok", http.StatusTemporaryRedirect) })
	mux.HandleFunc("/much", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, MaxOutput+1)) })
	mux.HandleFunc("/broken", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	mux.HandleFunc("/slow", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	server := httptest.NewServer(mux)
	defer server.Close()
	target := approval.Target{Name: "u", URL: server.URL + "/ok", Timeout: 10 * time.Second}
	const want = "POST1application/jsoninput"
	if got, err := call(t, target, "input"); err != nil || got != want {
		t.Errorf("%q, %v", got, err)
	}
	target.URL = strings.Replace(target.URL, "127.0.0.1", "localhost", 1)
	if got, err := call(t, target, "input"); err != nil || got != want {
		t.Errorf("%q, %v", got, err)
	}
	for path, want := range map[string]string{"/elsewhere": "307 Temporary Redirect", "/much": "more than 64 KiB", "/broken": "418", "/none": "404"} {
		target.URL = server.URL + path
		if got, err := call(t, target, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	target.URL, target.Timeout = server.URL+"/slow", 100*time.Millisecond
	if _, err := call(t, target, ""); !errors.Is(err, ErrTimeout) {
		t.Errorf("%v", err)
	}

	// Through a socket.
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	unixServer := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go unixServer.Serve(listener)
	defer unixServer.Close()
	target = approval.Target{Name: "s", URL: "http://rules/ok", Socket: path, Timeout: 10 * time.Second}
	if got, err := call(t, target, "input"); err != nil || got != want {
		t.Errorf("%q, %v", got, err)
	}
	// A URL is not told: it may be a secret.
	target = approval.Target{Name: "u", URL: "http://127.0.0.1:1/secret", Timeout: time.Second}
	if _, err := call(t, target, ""); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
}

// Nobody gets a byte of what is asked who is not the host's.
func TestPeer(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		fmt.Fprint(w, `{"decision":"grant"}`)
	}))
	defer server.Close()
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	go http.Serve(listener, server.Config.Handler)
	defer listener.Close()
	foreign := errors.New("it is inside a scope")
	for _, target := range []approval.Target{
		{URL: server.URL, Timeout: 10 * time.Second}, {URL: strings.Replace(server.URL, "127.0.0.1", "localhost", 1), Timeout: 10 * time.Second},
		{URL: "http://x/", Socket: socket, Timeout: 10 * time.Second},
	} {
		var refuse error
		caller, err := New(target, func(net.Conn) error { return refuse })
		if err != nil {
			t.Fatal(err)
		}
		refuse = foreign
		if _, err := caller.Call(t.Context(), nil, nil); !errors.Is(err, foreign) || asked != 0 {
			t.Errorf("%s: %v, asked %d times", target.URL, err, asked)
		}
		refuse = nil
		if _, err := caller.Call(t.Context(), nil, nil); err != nil || asked != 1 {
			t.Errorf("%s: %v, asked %d times", target.URL, err, asked)
		}
		asked = 0
	}
}
