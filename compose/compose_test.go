// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/actplane/actplane/internal/exposure"
)

// load writes compose files into a folder and reads them.
func load(t *testing.T, texts ...string) (*Project, error) {
	t.Helper()
	directory := t.TempDir()
	var names []string
	for i, text := range texts {
		name := filepath.Join(directory, fmt.Sprintf("c%d.yaml", i))
		if err := os.WriteFile(name, []byte(strings.ReplaceAll(text, "DIR", directory)), 0o600); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	return Load(t.Context(), names, []string{"SET=value"})
}

func mustLoad(t *testing.T, texts ...string) *Project {
	t.Helper()
	p, err := load(t, texts...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// told is what exposure says of a service: LINE NAME, sorted by line.
func told(t *testing.T, p *Project, service string) string {
	t.Helper()
	given, err := p.Given(service)
	if err != nil {
		t.Fatal(err)
	}
	host, err := exposure.Look(exposure.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, g := range given {
		for _, f := range host.Judge(g.Container) {
			lines = append(lines, f.At[strings.LastIndexByte(f.At, ':')+1:]+" "+f.Kind.Name)
		}
	}
	return strings.Join(lines, ", ")
}

// Each service has one thing that it should not have, or none, in the ways in which
// compose files say it.
func TestGiven(t *testing.T) {
	for _, test := range []struct{ name, service, want string }{
		{"nothing", "{image: x}", ""},
		{"short volume", "\n    volumes:\n      - .:/w\n      - /var/run/docker.sock:/s:ro", "6 docker-socket"},
		{"long volume", "\n    volumes:\n      - {type: bind, source: /run/docker.sock, target: /s}", "5 docker-socket"},
		{"whole host", "\n    volumes: ['/:/host:ro']", "4 host-root"},
		{"read-only", "\n    volumes: ['/usr/bin:/b:ro']", ""},
		{"writable", "\n    volumes: ['/usr/bin:/b']", "4 host-system"},
		{"kept by Docker, of the host's", "\n    volumes: ['bound:/b']", "4 host-system"},
		{"kept by Docker", "\n    volumes: ['plain:/b']", ""},
		{"volumes of another", "\n    volumes_from: ['holder:ro']", "4 docker-socket"},
		{"the API's socket", "\n    image: x\n    use_api_socket: true", "5 docker-socket"},
		{"secret", "\n    secrets: [socket]", "4 docker-socket"},
		{"privileged", "\n    image: x\n    privileged: true", "5 privileged"},
		{"all capabilities", "\n    cap_add:\n      - ALL", "5 privileged"},
		{"all but one", "\n    cap_add: [ALL]\n    cap_drop: [SYS_ADMIN, SYS_MODULE, SYS_RAWIO, SYS_BOOT, DAC_READ_SEARCH]", "4 cap-bpf"},
		{"added and dropped", "\n    cap_add: [CAP_BPF]\n    cap_drop: [ALL, BPF]", "4 cap-bpf"}, // Docker adds last
		{"capability in small letters", "\n    cap_add:\n      - net_admin\n      - cap_sys_module", "6 cap-sys-module"},
		{"the host's processes", "\n    image: x\n    pid: host", "5 host-pid"},
		{"another's, and ptrace", "\n    pid: service:holder\n    cap_add: [SYS_PTRACE]", "5 cap-sys-ptrace"},
		{"ptrace alone", "\n    cap_add: [SYS_PTRACE]", ""},
		{"memory that is not here", "\n    devices: ['/dev/oldmem:/m']", "4 host-devices"},
		{"disk that is not here", "\n    devices:\n      - /dev/null\n      - /dev/sdzz", "6 host-devices"},
		{"rule", "\n    device_cgroup_rules: ['c 1:3 mr', 'b *:* rwm']", "4 host-devices"},
		{"open paths", "\n    security_opt: ['systempaths=unconfined']", "4 system-paths"},
		{"hook", "\n    post_start:\n      - {command: a}\n      - {command: b, privileged: true}", "6 privileged"},
		{"another runtime", "\n    image: x\n    runtime: runsc", "5 vm-runtime"},
		{"by extending", "\n    extends: {service: holder}", "4 docker-socket"},
		{"by an alias", "\n    image: x\n    <<: *strong", "4 privileged"},
		{"by a variable", "\n    volumes: ['${SOCKET:-/run/docker.sock}:/s']", "4 docker-socket"},
	} {
		t.Run(test.name, func(t *testing.T) {
			text := "x-strong: &strong {privileged: true}\nservices:\n  agent: " + test.service + "\n\n  holder:\n    image: x\n    volumes: ['/run/docker.sock:/s']\n" +
				"volumes: {plain: {}, bound: {driver_opts: {type: none, o: bind, device: /usr/bin}}}\nsecrets: {socket: {file: /run/docker.sock}}\n"
			if got := told(t, mustLoad(t, text), "agent"); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// A later file's line is told where it says it.
func TestSeveralFiles(t *testing.T) {
	p := mustLoad(t, "version: '3.8'\nservices:\n  agent:\n    image: x\n", "version: '3.8'\nservices:\n  agent:\n    image: x\n    pid: host\n")
	given, err := p.Given("agent")
	if err != nil || !strings.HasSuffix(given[0].PID.At, "c1.yaml:5") || p.Version != "3.8" {
		t.Errorf("at %q, version %q, error %v", given[0].PID.At, p.Version, err)
	}
}

func TestUnknownAndUnconfined(t *testing.T) {
	p := mustLoad(t, "services:\n  agent:\n    image: $NOT_SET\n    volumes_from: ['container:other']\n    security_opt: ['seccomp:unconfined']\n")
	given, err := p.Given("agent")
	if err != nil || len(given[0].Unknown) != 1 || !strings.HasSuffix(given[0].Unconfined, ":5") {
		t.Errorf("%+v, error %v", given[0], err)
	}
	if len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], "NOT_SET") {
		t.Errorf("warnings %q", p.Warnings)
	}
}

func TestLoadRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"agent:\n  image: x\n":               "compose's first format",
		"":                                   "no services",
		"- a\n":                              "no services",
		"services: [\n":                      "read compose file",
		"services:\n  agent:\n    imge: x\n": "imge",
		"services:\n  agent: {extends: {file: none.yaml, service: a}}": "none.yaml",
	} {
		if _, err := load(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v instead of %q", text, err, want)
		}
	}
	if _, err := load(t, "version: '2.4'\nservices: {}\n", "version: '3'\nservices: {}\n"); err == nil || !strings.Contains(err.Error(), `version "3"`) {
		t.Errorf("two versions: %v", err)
	}
	if _, err := Load(t.Context(), []string{"/dev/zero"}, nil); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a device: %v", err)
	}
	p := mustLoad(t, "services:\n  a: {image: x, volumes_from: [b]}\n  b: {image: x, device_cgroup_rules: ['x 1:1 r']}\n")
	if _, err := p.Given("b"); err == nil || !strings.Contains(err.Error(), `device rule "x 1:1 r"`) {
		t.Errorf("rule: %v", err)
	}
}

func TestChosen(t *testing.T) {
	p := mustLoad(t, "services:\n  b: {image: x}\n  a: {image: x, profiles: [debug]}\n")
	if got, err := p.Chosen(nil); err != nil || !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := p.Chosen([]string{"b", "b"}); err != nil || !slices.Equal(got, []string{"b"}) {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := p.Chosen([]string{"c"}); err == nil || err.Error() != `there is no service "c"; there are a, b` {
		t.Error(err)
	}
}

// What is written is read again with the files, and says what it should, whatever is in
// the values.
func TestWrite(t *testing.T) {
	base := "services:\n  agent:\n    image: x\n    annotations: {own: kept}\n    labels: {own: kept}\n  other: {image: x}\n"
	settings := map[string]string{"dev.actplane.policy": "version: 1\npolicy: |\n  rule r:\n    block exec \"$HOME\" # ${x}: 'a'\n", "dev.actplane.limits.pids": "512"}
	for _, labels := range []bool{false, true} {
		for _, version := range []string{"", "version: '2.4'\n", "version: '3.8'\n"} {
			p := mustLoad(t, version+base)
			out, err := p.Write(&Override{Services: []string{"agent"}, Settings: settings, Labels: labels, Comment: []string{"hello", ""}})
			if err != nil {
				t.Fatal(err)
			}
			again := mustLoad(t, version+base, string(out))
			agent, other := again.Services["agent"], again.Services["other"]
			got := map[string]string(agent.Annotations)
			if labels {
				got = agent.Labels
			}
			if agent.Runtime != "actplane" || other.Runtime != "" || got["own"] != "kept" || got["dev.actplane.policy"] != settings["dev.actplane.policy"] || got["dev.actplane.limits.pids"] != "512" {
				t.Errorf("version %q, labels %v: %s\nruntime %q, settings %q", version, labels, out, agent.Runtime, got)
			}
			if !strings.HasPrefix(string(out), "# hello\n#\n") {
				t.Errorf("its head is %.20q", out)
			}
		}
	}
	p := mustLoad(t, "version: '2.1'\n"+base)
	if _, err := p.Write(&Override{Services: []string{"agent"}, Labels: true}); err == nil || !strings.Contains(err.Error(), "has no runtimes") {
		t.Errorf("version 2.1: %v", err)
	}
}

func TestDoubts(t *testing.T) {
	p := mustLoad(t, "services:\n  agent:\n    image: x\n    runtime: nvidia\n    working_dir: /w\n    volumes: ['DIR:/w', 'kept:/v', 'DIR/c0.yaml:/one.yaml']\nvolumes: {kept: {}}\n")
	for name, want := range map[string]string{
		"": "", "/w/c0.yaml": "", "c0.yaml": "", "/one.yaml": "", "/v/x.yaml": "",
		"/w/none.yaml": "does not exist", "none.yaml": "does not exist", "/elsewhere/a.yaml": "nothing is mounted",
	} {
		got := p.Doubts(&Override{Services: []string{"agent"}}, name)
		if len(got) == 0 || !strings.Contains(got[0], `its runtime "nvidia" is replaced`) {
			t.Errorf("%q: %q", name, got)
		}
		if rest := strings.Join(got[1:], "\n"); want == "" && rest != "" || !strings.Contains(rest, want) {
			t.Errorf("%q: %q instead of %q", name, rest, want)
		}
	}
}
