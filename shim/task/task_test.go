// SPDX-License-Identifier: Apache-2.0

package task

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	taskapi "github.com/containerd/containerd/api/runtime/task/v2"
	"github.com/containerd/containerd/api/types"
	"github.com/containerd/containerd/api/types/runc/options"
	runtimeoptions "github.com/containerd/containerd/api/types/runtimeoptions/v1"
	"github.com/containerd/typeurl/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

const self = "/opt/actplane/bin/actplane-runtime"

// inner is runc's service as far as the tests go.
type inner struct {
	taskapi.TaskService
	created []*taskapi.CreateTaskRequest
}

func (i *inner) Create(_ context.Context, request *taskapi.CreateTaskRequest) (*taskapi.CreateTaskResponse, error) {
	i.created = append(i.created, request)
	return &taskapi.CreateTaskResponse{Pid: 42}, nil
}

// create asks the service for a container, and gives the options that runc's gets.
func create(t *testing.T, cgroupsPath string, given *anypb.Any, checkpoint string) (*options.Options, error) {
	t.Helper()
	directory := t.TempDir()
	config, _ := json.Marshal(map[string]any{"linux": map[string]any{"cgroupsPath": cgroupsPath}})
	if err := os.WriteFile(filepath.Join(directory, "config.json"), config, 0o600); err != nil {
		t.Fatal(err)
	}
	inner := &inner{}
	s := &service{TaskService: inner, find: func(name string) (string, error) { return "/opt/actplane/bin/" + name, nil }}
	response, err := s.Create(t.Context(), &taskapi.CreateTaskRequest{ID: "one", Bundle: directory, Options: given, Checkpoint: checkpoint, Terminal: true})
	if err != nil {
		if len(inner.created) != 0 {
			t.Error("refused, and created")
		}
		return nil, err
	}
	if len(inner.created) != 1 || response.Pid != 42 || inner.created[0].ID != "one" || !inner.created[0].Terminal {
		t.Fatalf("created %v", inner.created)
	}
	// As runc's service does it.
	value, err := typeurl.UnmarshalAny(inner.created[0].Options)
	if err != nil {
		t.Fatal(err)
	}
	return value.(*options.Options), nil
}

func packed(t *testing.T, message proto.Message) *anypb.Any {
	t.Helper()
	given, err := anypb.New(message)
	if err != nil {
		t.Fatal(err)
	}
	return given
}

func body(text string) proto.Message { return &runtimeoptions.Options{ConfigBody: []byte(text)} }

func TestOptions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "options.toml")
	if err := os.WriteFile(file, []byte("Root = \"/run/file\"\nSystemdCgroup = true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	bare := packed(t, &options.Options{Root: "/r", IoUid: 7})
	bare.TypeUrl = strings.TrimPrefix(bare.TypeUrl, "type.googleapis.com/")
	tests := []struct {
		name   string
		cgroup string
		given  *anypb.Any
		want   *options.Options
	}{
		{"none", "/default/one", nil, &options.Options{}},
		{"empty", "/default/one", &anypb.Any{TypeUrl: "whatever"}, &options.Options{}},
		{"runc's", "/default/one", packed(t, &options.Options{Root: "/r", NoPivotRoot: true, SystemdCgroup: true}),
			&options.Options{Root: "/r", NoPivotRoot: true, SystemdCgroup: true}},
		{"runc's, as containerd names the type", "", bare, &options.Options{Root: "/r", IoUid: 7}},
		{"our own name", "", packed(t, &options.Options{BinaryName: "/usr/bin/actplane-runtime"}), &options.Options{}},
		{"CRI's", "", packed(t, body("SystemdCgroup = true\nRoot = \"/run/cri\"\nIoGid = 5\nBinaryName = \"\"\n")),
			&options.Options{SystemdCgroup: true, Root: "/run/cri", IoGid: 5}},
		{"CRI's, with what is for containerd", "", packed(t, body("TypeUrl = \"x\"\nNoNewKeyring = true\n")), &options.Options{NoNewKeyring: true}},
		{"a file", "", packed(t, &runtimeoptions.Options{ConfigPath: file, ConfigBody: []byte("not read")}), &options.Options{Root: "/run/file", SystemdCgroup: true}},
		{"systemd's cgroup", "system.slice:docker:one", nil, &options.Options{SystemdCgroup: true}},
		{"a pod's cgroup", "kubepods-besteffort-pod1.slice:cri-containerd:one", packed(t, body("")), &options.Options{SystemdCgroup: true}},
		{"systemd's default slice", ":docker:one", nil, &options.Options{SystemdCgroup: true}},
		{"a path with colons", "/a:b:c", nil, &options.Options{}},
		{"a name with colons", "a:b:c", nil, &options.Options{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := create(t, test.cgroup, test.given, "")
			if err != nil {
				t.Fatal(err)
			}
			test.want.BinaryName = self
			if !proto.Equal(got, test.want) {
				t.Errorf("options %v, not %v", got, test.want)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	directory := t.TempDir()
	fifo, large := filepath.Join(directory, "fifo"), filepath.Join(directory, "large")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(large, make([]byte, maxOptions+1), 0o600); err != nil {
		t.Fatal(err)
	}
	path := func(name string) proto.Message { return &runtimeoptions.Options{ConfigPath: name} }
	tests := []struct {
		name       string
		given      *anypb.Any
		checkpoint string
		want       string
	}{
		{"a checkpoint", nil, "/some/image", "restore is not supported"},
		{"another runtime", packed(t, &options.Options{BinaryName: "/usr/bin/crun"}), "", "runtimes in /etc/actplane/config.yaml"},
		{"another runtime in TOML", packed(t, body("BinaryName = 'runc'")), "", `BinaryName "runc" would leave the policy out`},
		{"control characters", packed(t, &options.Options{BinaryName: "x\x1b[2J\n"}), "", `\x1b`},
		{"an unknown key", packed(t, body("SystemdCgruop = true")), "", `unknown key "SystemdCgruop"`},
		{"no TOML", packed(t, body("{")), "", "runtime options"},
		{"a value of another type", packed(t, body("SystemdCgroup = 'yes'")), "", "runtime options"},
		{"another type", packed(t, &taskapi.StateRequest{ID: "x"}), "", "are not those of runc"},
		{"broken options", &anypb.Any{TypeUrl: nameOf(&options.Options{}), Value: []byte{0xff}}, "", "read runtime options"},
		{"no such file", packed(t, path(directory+"/none")), "", "no such file"},
		{"a relative file", packed(t, path("options.toml")), "", "not an absolute path"},
		{"a FIFO", packed(t, path(fifo)), "", "not a regular file"},
		{"a folder", packed(t, path(directory)), "", "not a regular file"},
		{"a large file", packed(t, path(large)), "", "larger than"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := create(t, "/x", test.given, test.checkpoint)
			state, _ := status.FromError(err)
			if state.Code() != codes.FailedPrecondition {
				t.Fatalf("error %v", err)
			}
			if text := state.Message(); !strings.HasPrefix(text, "actplane: ") || !strings.Contains(text, test.want) || strings.ContainsAny(text, "\n\x1b") {
				t.Errorf("%q does not say %q in one line", text, test.want)
			}
		})
	}
}

func TestRefusesWithoutRuntimeOrBundle(t *testing.T) {
	inner := &inner{}
	s := &service{TaskService: inner, find: func(string) (string, error) { return "", errors.New("it is not there") }}
	directory := t.TempDir()
	if _, err := s.Create(t.Context(), &taskapi.CreateTaskRequest{Bundle: directory}); err == nil || !strings.Contains(err.Error(), "config.json") {
		t.Errorf("error %v without a bundle", err)
	}
	if err := os.WriteFile(filepath.Join(directory, "config.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create(t.Context(), &taskapi.CreateTaskRequest{Bundle: directory}); err == nil || !strings.Contains(err.Error(), "it is not there") {
		t.Errorf("error %v without a runtime", err)
	}
	if len(inner.created) != 0 {
		t.Error("created")
	}
}

// containerd 2 asks for what runc can do; without an answer it maps no users.
func TestInfo(t *testing.T) {
	runtime := filepath.Join(t.TempDir(), program)
	write := func(text string) {
		if err := os.WriteFile(runtime, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	find := func(string) (string, error) { return runtime, nil }
	ask := func(given *anypb.Any) (*types.RuntimeInfo, error) {
		input, err := proto.Marshal(given)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := info(bytes.NewReader(input), &out, find); err != nil {
			return nil, err
		}
		answer := &types.RuntimeInfo{}
		return answer, proto.Unmarshal(out.Bytes(), answer)
	}
	write(`[ "$*" = features ] && echo '{"ociVersionMax":"1.1.0"}'`)
	answer, err := ask(packed(t, body("SystemdCgroup = true")))
	if err != nil || answer.Name != Runtime || strings.TrimSpace(string(answer.Features.GetValue())) != `{"ociVersionMax":"1.1.0"}` {
		t.Fatalf("answer %v, error %v", answer, err)
	}
	if value, err := typeurl.UnmarshalAny(answer.Options); err != nil || !value.(*options.Options).SystemdCgroup {
		t.Errorf("options %v, error %v", value, err)
	}
	for name, text := range map[string]string{"an error": "exit 1", "no JSON": "echo x", "nothing": ""} {
		write(text)
		if answer, err := ask(nil); err != nil || answer.Features != nil {
			t.Errorf("%s: answer %v, error %v", name, answer, err)
		}
	}
	if _, err := ask(packed(t, &taskapi.StateRequest{ID: "x"})); err == nil {
		t.Error("options of another runtime")
	}
}
