// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/actplane/actplane/internal/testenv"
)

// openSSH is a folder with keys, and the program that everybody has.
type openSSH struct {
	t       *testing.T
	program string
	dir     string
}

func newOpenSSH(t *testing.T) *openSSH {
	t.Helper()
	o := &openSSH{t: t, program: testenv.RequireProgram(t, "ssh-keygen", "openssh-client"), dir: t.TempDir()}
	o.write("text", string(text))
	return o
}

func (o *openSSH) path(name string) string { return filepath.Join(o.dir, name) }

func (o *openSSH) write(name, content string) {
	o.t.Helper()
	if err := os.WriteFile(o.path(name), []byte(content), 0o600); err != nil {
		o.t.Fatal(err)
	}
}

func (o *openSSH) read(name string) string {
	o.t.Helper()
	content, err := os.ReadFile(o.path(name))
	if err != nil {
		o.t.Fatal(err)
	}
	return string(content)
}

// run runs ssh-keygen with the text as its input.
func (o *openSSH) run(args ...string) (string, error) {
	command := exec.Command(o.program, args...)
	command.Dir, command.Stdin = o.dir, bytes.NewReader(text)
	command.Env = append(os.Environ(), "TZ=UTC", "SSH_AUTH_SOCK=")
	out, err := command.CombinedOutput()
	return string(out), err
}

func (o *openSSH) must(args ...string) {
	o.t.Helper()
	if out, err := o.run(args...); err != nil {
		o.t.Fatalf("ssh-keygen %q: %v\n%s", args, err, out)
	}
}

// key makes a key and gives its public half.
func (o *openSSH) key(name string, args ...string) string {
	o.t.Helper()
	o.must(append([]string{"-q", "-N", "", "-C", "comment", "-f", name}, args...)...)
	return o.read(name + ".pub")
}

// sign signs the text and gives the signature.
func (o *openSSH) sign(key, namespace string, args ...string) string {
	o.t.Helper()
	os.Remove(o.path("text.sig"))
	o.must(append([]string{"-Y", "sign", "-q", "-n", namespace, "-f", key}, append(args, "text")...)...)
	return o.read("text.sig")
}

var keyKinds = map[string][]string{
	"ed25519": {"-t", "ed25519"}, "rsa": {"-t", "rsa", "-b", "2048"},
	"ecdsa256": {"-t", "ecdsa", "-b", "256"}, "ecdsa384": {"-t", "ecdsa", "-b", "384"}, "ecdsa521": {"-t", "ecdsa", "-b", "521"},
}

// What ssh-keygen signs is accepted here, and the reverse, for each kind of key.
func TestOpenSSH(t *testing.T) {
	for kind, args := range keyKinds {
		t.Run(kind, func(t *testing.T) {
			o := newOpenSSH(t)
			public := o.key("key", args...)
			o.write("allowed", "alice@example.com "+public)
			for _, options := range [][]string{nil, {"-O", "hashalg=sha256"}} {
				if err := verify(t, o.read("allowed"), o.sign("key", Namespace, options...)); err != nil {
					t.Errorf("theirs with %q: %v", options, err)
				}
			}
			if err := verify(t, o.read("allowed"), o.sign("key", "file")); err == nil || !strings.Contains(err.Error(), `namespace "file"`) {
				t.Errorf("theirs for files: %v", err)
			}

			private, err := ssh.ParsePrivateKey([]byte(o.read("key")))
			if err != nil {
				t.Fatal(err)
			}
			o.write("ours.sig", sign(t, private))
			for _, check := range [][]string{
				{"-Y", "verify", "-f", "allowed", "-I", "alice@example.com", "-n", Namespace, "-s", "ours.sig"},
				{"-Y", "check-novalidate", "-n", Namespace, "-s", "ours.sig"},
			} {
				if out, err := o.run(check...); err != nil || !strings.Contains(out, "Good ") {
					t.Errorf("ours with %s: %v\n%s", check[1], err, out)
				}
			}
			if out, err := o.run("-Y", "check-novalidate", "-n", "file", "-s", "ours.sig"); err == nil {
				t.Errorf("ours for another namespace: %s", out)
			}
			o.write("ours.sig", raw2(t, private, "another text"))
			if out, err := o.run("-Y", "check-novalidate", "-n", Namespace, "-s", "ours.sig"); err == nil {
				t.Errorf("ours of another text: %s", out)
			}
		})
	}
}

// Of signatures with other line ends none is good here that ssh-keygen refuses.
func TestLineEndsAsOpenSSH(t *testing.T) {
	o := newOpenSSH(t)
	o.write("allowed", "alice "+o.key("key", "-t", "ed25519"))
	good := o.sign("key", Namespace)
	lines := strings.SplitAfter(good, "\n")
	both := 0
	for i := range 1 << 3 {
		for _, instead := range []string{"", "\r\n", "\r", "\n\n", " \n", "\x00"} {
			changed := slices.Clone(lines)
			for n, at := range []int{0, 2, len(lines) - 3} { // behind the first line, within, before the last
				if i>>n&1 == 1 {
					changed[at] = strings.TrimSuffix(changed[at], "\n") + instead
				}
			}
			text := strings.Join(changed, "")
			o.write("changed.sig", text)
			_, theirs := o.run("-Y", "verify", "-f", "allowed", "-I", "alice", "-n", Namespace, "-s", "changed.sig")
			ours := verify(t, o.read("allowed"), text)
			if ours == nil && theirs != nil {
				t.Errorf("%q is good here, and ssh-keygen says %v", text, theirs)
			}
			if ours == nil {
				both++
			}
		}
	}
	if both < 8 {
		t.Errorf("%d are good", both)
	}
}

// What ssh-keygen makes with keys that are too weak, or are certificates, is refused.
func TestOpenSSHWeak(t *testing.T) {
	o := newOpenSSH(t)
	public := o.key("key", "-t", "ed25519")
	o.key("ca", "-t", "ed25519")
	o.must("-q", "-s", "ca", "-I", "id", "-n", "alice", "key.pub")
	err := verify(t, "alice "+public, o.sign("key-cert.pub", Namespace))
	if err == nil || !strings.Contains(err.Error(), "is a certificate") {
		t.Errorf("certificate: %v", err)
	}
	// Not every version still makes such keys.
	if _, err := o.run("-q", "-N", "", "-f", "dsa", "-t", "dsa"); err == nil {
		err := verify(t, "alice "+public, o.sign("dsa", Namespace))
		if err == nil || !strings.Contains(err.Error(), "is a DSA key") {
			t.Errorf("DSA: %v", err)
		}
	}
}

// An allowed_signers file means what it means to ssh-keygen.
func TestAllowedSignersAsOpenSSH(t *testing.T) {
	o := newOpenSSH(t)
	public := strings.TrimSpace(o.key("key", "-t", "ed25519"))
	other := strings.TrimSpace(o.key("other", "-t", "ed25519"))
	armored := o.sign("key", Namespace)
	today := time.Now().UTC()
	day := func(days int) string { return today.AddDate(0, 0, days).Format("20060102") }
	second := func(add time.Duration) string { return today.Add(add).Format("20060102150405") }
	files := map[string]string{
		"plain":                   "alice KEY",
		"list":                    "bob,alice KEY",
		"other":                   "bob KEY",
		"wrong key":               "alice OTHER",
		"second line":             "alice OTHER\n# comment\n\nalice KEY",
		"comment behind":          "alice KEY a comment",
		"tabs":                    "\talice\tKEY",
		"quoted":                  `"alice" KEY`,
		"star":                    "a* KEY",
		"question":                "al?ce KEY",
		"all":                     "* KEY",
		"part":                    "ali KEY",
		"negated":                 "*,!alice KEY",
		"negated first":           "!alice,* KEY",
		"negated other":           "*,!bob KEY",
		"only negated":            "!bob KEY",
		"upper case":              "ALICE KEY",
		"commas":                  ",alice, KEY",
		"namespace":               `alice namespaces="actplane-policy" KEY`,
		"namespaces":              `alice namespaces="git,actplane-*" KEY`,
		"other namespace":         `alice namespaces="git" KEY`,
		"negated namespace":       `alice namespaces="*,!actplane-policy" KEY`,
		"namespace in upper case": `alice namespaces="ACTPLANE-POLICY" KEY`,
		"option in upper case":    `alice NAMESPACES="git" KEY`,
		"valid":                   `alice valid-after="` + day(-2) + `",valid-before="` + day(2) + `" KEY`,
		"expired":                 `alice valid-before="` + day(-2) + `" KEY`,
		"not yet":                 `alice valid-after="` + day(2) + `" KEY`,
		"an hour ago":             `alice valid-before="` + second(-time.Hour) + `Z" KEY`,
		"an hour from now":        `alice valid-before="` + second(time.Hour) + `Z" KEY`,
		"since an hour":           `alice valid-after="` + second(-time.Hour)[:12] + `" KEY`,
		"expired, then valid":     `alice valid-before="` + day(-2) + `" KEY` + "\nalice KEY",
		"several":                 `alice namespaces="actplane-policy",valid-before="` + day(-1) + `" KEY`,
		"swapped":                 `alice valid-after="` + day(2) + `",valid-before="` + day(-2) + `" KEY`,
		"twice":                   `alice namespaces="actplane-policy",namespaces="actplane-policy" KEY`,
		"unknown option":          `alice nonsense KEY`,
		"unquoted":                `alice namespaces=actplane-policy KEY`,
		"no principals":           `KEY`,
		"nothing":                 "",
	}
	accepted := 0
	for name, content := range files {
		content = strings.NewReplacer("KEY", public, "OTHER", other).Replace(content) + "\n"
		o.write("allowed", content)
		o.write("text.sig", armored)
		out, err := o.run("-Y", "verify", "-f", "allowed", "-I", "alice", "-n", Namespace, "-s", "text.sig")
		theirs := err == nil
		signers, err := ParseSigners("allowed", []byte(content), time.UTC)
		if err == nil {
			_, err = signers.Verify(text, []byte(armored), "alice", time.Now())
		}
		if ours := err == nil; ours != theirs {
			t.Errorf("%s: %s\nssh-keygen: %v, %s\nhere: %v", name, content, theirs, out, err)
		}
		if theirs {
			accepted++
		}
	}
	if accepted < 15 || accepted > len(files)-10 {
		t.Errorf("ssh-keygen accepts %d of %d: the cases tell nothing", accepted, len(files))
	}
}
