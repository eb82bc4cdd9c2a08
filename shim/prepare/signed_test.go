// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/internal/testenv"
	"github.com/actplane/actplane/policy/ir"
)

// sshKey makes a key of OpenSSH's and gives its file and its public line.
func sshKey(t *testing.T, name string) (file, public string) {
	t.Helper()
	program := testenv.RequireProgram(t, "ssh-keygen", "openssh-client")
	file = filepath.Join(t.TempDir(), name)
	if out, err := exec.Command(program, "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", file).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	text, err := os.ReadFile(file + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	return file, string(text)
}

func sshSign(t *testing.T, key, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policy")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("ssh-keygen", "-q", "-Y", "sign", "-n", "actplane-policy", "-f", key, file).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	signed, err := os.ReadFile(file + ".sig")
	if err != nil {
		t.Fatal(err)
	}
	return string(signed)
}

// A policy that has to be signed counts with a signature of exactly this text by somebody
// whom the host names, and keeps the container from starting without.
func TestRequiredSignatures(t *testing.T) {
	key, public := sshKey(t, "alice")
	stranger, _ := sshKey(t, "mallory")
	signers := "alice@example.com namespaces=\"actplane-policy\" " + public
	other := "# other\n" + good
	sig, otherSig, strange := sshSign(t, key, good), sshSign(t, key, other), sshSign(t, stranger, good)
	plain := strings.Replace(minimal, "ADD", "", 1)
	annotation := func(key, value string) string {
		return strings.Replace(minimal, "ADD", fmt.Sprintf(`,"annotations":{"dev.actplane.%s":%q}`, key, value), 1)
	}
	environment := func(entry string) string {
		return strings.Replace(plain, `"cwd"`, fmt.Sprintf(`"env":[%q],"cwd"`, entry), 1)
	}
	type files map[string]string
	for _, test := range []struct {
		name, require, config string
		files                 files
		want                  string
	}{
		{"not asked for", "[host]", plain, files{"src/actplane.yaml": good}, ""},
		{"workspace", "[workspace]", plain, files{"src/actplane.yaml": good, "src/actplane.yaml.sig": sig}, ""},
		{"none", "[workspace]", plain, files{"src/actplane.yaml": good}, `policy "/src/actplane.yaml" has to be signed, since this host asks it of what is from: workspace (require_signatures): there is no /src/actplane.yaml.sig beside it`},
		{"of another text", "[workspace]", plain, files{"src/actplane.yaml": good, "src/actplane.yaml.sig": otherSig}, "is not of this text"},
		{"by a stranger", "[workspace]", plain, files{"src/actplane.yaml": good, "src/actplane.yaml.sig": strange}, "does not name the ED25519 key"},
		{"nonsense", "[workspace]", plain, files{"src/actplane.yaml": good, "src/actplane.yaml.sig": "x"}, "this is no SSH signature"},
		{"a folder", "[workspace]", plain, files{"src/actplane.yaml": good, "src/actplane.yaml.sig/x": ""}, "not a regular file"},
		{"second file", "[workspace]", plain, files{"src/actplane.yaml": good, "src/actplane.yaml.sig": sig, "src/.actplane/policy.yaml": other}, `policy "/src/.actplane/policy.yaml" has to be signed`},
		{"image", "[image]", plain, files{"rootfs/etc/actplane/policy.yaml": good}, "from: image"},
		{"image, signed", "[image]", plain, files{"rootfs/etc/actplane/policy.yaml": good, "rootfs/etc/actplane/policy.yaml.sig": sig}, ""},
		{"workspace in the image", "[image]", strings.Replace(plain, `{"destination":"/src","type":"bind","source":"ROOT/src"}`, "", 1), files{"rootfs/src/actplane.yaml": good}, "from: image"},
		{"the same text, as the host's", "[workspace]", plain, files{"etc/policy.d/a.yaml": good, "src/actplane.yaml": good}, "has to be signed"},
		{"host", "[host]", plain, files{"etc/policy.d/a.yaml": good}, "from: host"},
		{"host, signed", "[host]", plain, files{"etc/policy.d/a.yaml": good, "etc/policy.d/a.yaml.sig": sig}, ""},
		{"annotation of a file", "[annotation]", annotation("policy-file", "/src/own.yaml"), files{"src/own.yaml": good}, "from: annotation"},
		{"annotation of a file, signed", "[annotation]", annotation("policy-file", "/src/own.yaml"), files{"src/own.yaml": good, "src/own.yaml.sig": sig}, ""},
		{"annotation of a name", "[annotation]", annotation("policy", "strict"), files{"etc/policies/strict.yaml": good}, "from: annotation"},
		{"annotation of a name, signed", "[annotation]", annotation("policy", "strict"), files{"etc/policies/strict.yaml": good, "etc/policies/strict.yaml.sig": sig}, ""},
		{"annotation with the text", "[annotation]", annotation("policy", good), files{}, "a text that is in no file cannot be; name a file"},
		{"variable", "[environment]", environment("ACTPLANE_POLICY_FILE=/src/own.yaml"), files{"src/own.yaml": good}, "from: environment"},
		{"several", "[label, workspace]", plain, files{"src/actplane.yaml": good, "src/actplane.yaml.sig": sig}, ""},
		{"misspelt", "[workspaces]", plain, files{"src/actplane.yaml": good}, `"workspaces" is none of host, annotation, label, environment, workspace, image; did you mean "workspace"?`},
		{"no signers", "[workspace]", plain, files{"src/actplane.yaml": good, "src/actplane.yaml.sig": sig, "etc/allowed_signers": ""}, "does not name the ED25519 key"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, test.config, map[string]string{"etc/allowed_signers": signers, "etc/config.yaml": "require_signatures: " + test.require + "\n"})
			for name, text := range test.files {
				w.write(t, name, text)
			}
			w.Signers = filepath.Join(w.root, "etc/allowed_signers")
			err := w.prepare(t)
			if test.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) || len(w.engine.Prepared()) != 0 {
				t.Errorf("error %v instead of %q; staged %d", err, test.want, len(w.engine.Prepared()))
			}
		})
	}
	w := newWorld(t, plain, map[string]string{"etc/config.yaml": "require_signatures: [workspace]\n", "src/actplane.yaml": good})
	w.Signers = filepath.Join(w.root, "none")
	if err := w.prepare(t); err == nil || !strings.Contains(err.Error(), "read who may sign") {
		t.Errorf("without the file of signers: %v", err)
	}
}

// The files of signatures are kept from the container as the policies are.
func TestSignaturesAreKept(t *testing.T) {
	names := kept(&spec{}, &settings{workspace: "/w"}, &Config{RequireSignatures: []string{fromWorkspace}}, nil)
	for _, name := range []string{"/w/actplane.yaml.sig", "/w/.actplane/policy.yaml.sig", imagePolicy + ".sig"} {
		if !slices.Contains(names, name) {
			t.Errorf("%s is not among %q", name, names)
		}
	}
}

// A host can permit some annotations, or none.
func TestPermittedAnnotations(t *testing.T) {
	for _, test := range []struct{ permit, key, value, want string }{
		{"", "workspace", "/src", ""},
		{"annotations: [policy, limits]", "limits.pids", "7", ""},
		{"annotations: [limits.pids]", "limits.pids", "7", ""},
		{"annotations: [limits.pids]", "limits.cpus", "7", "annotation dev.actplane.limits.cpus: this host permits only limits.pids"},
		{"annotations: [policy, limits]", "workspace", "/src", "permits only policy, limits"},
		{"annotations: []", "policy", "strict", "permits none"},
		{"annotations: [polcy]", "policy", "strict", `there is no "polcy"; did you mean "policy"?`},
	} {
		w := newWorld(t, strings.Replace(minimal, "ADD", fmt.Sprintf(`,"annotations":{"dev.actplane.%s":%q,"other":"x"}`, test.key, test.value), 1),
			map[string]string{"src/actplane.yaml": good, "etc/policies/strict.yaml": good, "etc/config.yaml": test.permit + "\n"})
		err := w.prepare(t)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%+v: %v", test, err)
		}
	}
}

// While somebody exchanges the policy's folder and the policy for links that lead out of
// the mount, what is read is the one that is there, or an error; never what is outside.
func TestPolicyRace(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{"src/d/p.yaml": "inside", "outside/p.yaml": "outside"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"src/e": "../outside", "src/d/q.yaml": "../../outside/p.yaml", "src/up": "d/.."} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		exchange := func(a, b string) {
			_ = unix.Renameat2(unix.AT_FDCWD, filepath.Join(root, a), unix.AT_FDCWD, filepath.Join(root, b), unix.RENAME_EXCHANGE)
		}
		for {
			select {
			case <-stop:
				return
			default:
				exchange("src/d", "src/e")
				exchange("src/d", "src/e")
				exchange("src/d/p.yaml", "src/d/q.yaml")
				exchange("src/d/p.yaml", "src/d/q.yaml")
			}
		}
	}()
	files := containerFiles{spec: &spec{rootfs: root, bundle: root, mounts: []specs.Mount{{Type: "bind", Source: filepath.Join(root, "src"), Destination: "/src"}}}}
	read, refused := 0, 0
	for range 20_000 {
		for _, name := range []string{"/src/d/p.yaml", "/src/up/d/p.yaml"} {
			found, err := files.read(name, operator)
			switch {
			case err != nil:
				refused++
			case string(found.text) != "inside":
				t.Fatalf("%s: read %q", name, found.text)
			default:
				read++
			}
		}
	}
	close(stop)
	<-stopped
	if read == 0 || refused == 0 {
		t.Errorf("nothing was exchanged in time: %d read, %d refused", read, refused)
	}
}

// What is compiled, recorded with its hash and handed to the engine is one text.
func TestHashed(t *testing.T) {
	w := newWorld(t, strings.Replace(minimal, "ADD", "", 1), map[string]string{"src/actplane.yaml": good})
	if err := w.prepare(t); err != nil {
		t.Fatal(err)
	}
	request := w.engine.Prepared()[0]
	var program ir.Program
	if err := json.Unmarshal(request.Program, &program); err != nil {
		t.Fatal(err)
	}
	hash := sha256.Sum256(request.Layers[0].Text)
	if string(request.Layers[0].Text) != good || len(program.Layers) == 0 || !slices.ContainsFunc(program.Layers, func(l ir.Layer) bool { return l.SHA256 == hex.EncodeToString(hash[:]) }) {
		t.Errorf("layers %v, text %q", program.Layers, request.Layers[0].Text)
	}
	if !slices.ContainsFunc(program.Clauses, func(c ir.Clause) bool { return strings.Contains(c.Pattern.Text, "/src/actplane.yaml") }) {
		t.Error("nothing keeps the file from being written")
	}
}
