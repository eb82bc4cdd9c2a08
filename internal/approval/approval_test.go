// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func program(edit func(*Approver)) []Approver {
	a := Approver{Target: Target{Name: "rules", Command: []string{"/bin/true"}}}
	edit(&a)
	return []Approver{a}
}

func hook(edit func(*Notification)) []Notification {
	n := Notification{Target: Target{Name: "chat", URL: "https://chat.example/hook"}}
	edit(&n)
	return []Notification{n}
}

func TestCheck(t *testing.T) {
	approvers, notifications := program(func(*Approver) {}), hook(func(*Notification) {})
	if err := CheckAll(approvers, notifications); err != nil {
		t.Fatal(err)
	}
	if approvers[0].Timeout != DefaultTimeout || len(notifications[0].Events) != 1 || notifications[0].Events[0] != EventRequest {
		t.Errorf("defaults: %+v, %+v", approvers, notifications)
	}
	for _, url := range []string{
		"http://127.0.0.1:8181/v1/data/x", "http://localhost/", "http://[::1]:1/", "https://127.0.0.53/", "http://LOCALHOST:80/x?y=z",
	} {
		if err := CheckAll(program(func(a *Approver) { a.Command, a.URL = nil, url }), nil); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
	withURL := func(url string) []Approver { return program(func(a *Approver) { a.Command, a.URL = nil, url }) }
	for want, bad := range map[string]struct {
		approvers     []Approver
		notifications []Notification
	}{
		"needs one, of letters":                 {approvers: program(func(a *Approver) { a.Name = "a b" })},
		"number 1: name":                        {approvers: program(func(a *Approver) { a.Name = "" })},
		"another one has it":                    {approvers: append(program(func(*Approver) {}), program(func(*Approver) {})...)},
		"either a command or a url":             {approvers: program(func(a *Approver) { a.URL = "http://127.0.0.1/" })},
		"it needs either":                       {approvers: program(func(a *Approver) { a.Command = nil })},
		"no line for a shell":                   {approvers: program(func(a *Approver) { a.Command = []string{"rules --strict"} })},
		"of a command":                          {approvers: program(func(a *Approver) { a.Command, a.URL, a.User = nil, "http://127.0.0.1/", "root" })},
		"it is of a url":                        {approvers: program(func(a *Approver) { a.Socket = "/run/x" })},
		"is not an absolute path":               {approvers: program(func(a *Approver) { a.Command, a.URL, a.Socket = nil, "http://x/", "run/x" })},
		"not a variable's name":                 {approvers: program(func(a *Approver) { a.Environment = map[string]string{"A=B": ""} })},
		"timeout: 1h0m0s is not between":        {approvers: program(func(a *Approver) { a.Timeout = time.Hour })},
		"timeout: -1s":                          {approvers: program(func(a *Approver) { a.Timeout = -time.Second })},
		`"slack" is not "opa"`:                  {approvers: program(func(a *Approver) { a.Format = Slack })},
		`rules: "[" is not a pattern`:           {approvers: program(func(a *Approver) { a.Rules = []string{"["} })},
		`operations: there is no "chmod"`:       {approvers: program(func(a *Approver) { a.Operations = []string{"chmod"} })},
		`"opa.example" is not on this host`:     {approvers: withURL("https://opa.example/")},
		`"127.0.0.1.nip.example" is not on`:     {approvers: withURL("http://127.0.0.1.nip.example/")},
		`"localhost.example:1" is not on`:       {approvers: withURL("http://localhost.example:1/")},
		`"0.0.0.0:80" is not on this host`:      {approvers: withURL("http://0.0.0.0:80/")},
		`"169.254.169.254" is not on this host`: {approvers: withURL("http://169.254.169.254/")},
		"does not begin with http":              {approvers: withURL("file:///etc/passwd")},
		"and a host":                            {approvers: withURL("http:///x")},
		"a user's name in it":                   {approvers: withURL("http://a:b@127.0.0.1/")},
		"it has a fragment":                     {approvers: withURL("http://127.0.0.1/#x")},
		"so it has to be https://":              {notifications: hook(func(n *Notification) { n.URL = "http://chat.example/" })},
		`"opa" is not "slack"`:                  {notifications: hook(func(n *Notification) { n.Format = OPA })},
		`events: there is no "requests"`:        {notifications: hook(func(n *Notification) { n.Events = []string{"requests"} })},
		"the absolute path of a file":           {notifications: hook(func(n *Notification) { n.SecretFile = "secret" })},
		"17 of them":                            {approvers: make([]Approver, 17)},
	} {
		if err := CheckAll(bad.approvers, bad.notifications); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestAsks(t *testing.T) {
	a := Approver{Rules: []string{"push-*", "apply"}, Operations: []string{"exec"}, Containers: []string{"agent-*"}}
	for _, c := range []struct {
		rule, operation, container string
		want                       bool
	}{
		{"push-main", "exec", "agent-1", true}, {"apply", "exec", "agent-", true},
		{"pull", "exec", "agent-1", false}, {"apply", "open", "agent-1", false}, {"apply", "exec", "web", false}, {"", "exec", "agent-1", false},
	} {
		if got := a.Asks(c.rule, c.operation, c.container); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	if !(&Approver{}).Asks("", "bind", "") {
		t.Error("one without conditions is asked about everything")
	}
}

// What runs as root, or signs for it, is nobody else's to change or to read.
func TestCheckHost(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := write("rules", "#!/bin/sh\n", 0o755)
	secret := write("secret", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n", 0o600)
	command := func(path string) []Approver { return program(func(a *Approver) { a.Command = []string{path} }) }
	signed := func(path string) []Notification { return hook(func(n *Notification) { n.SecretFile = path }) }
	if err := CheckHost(command(good), signed(secret)); err != nil {
		t.Error(err)
	}
	if text, err := ReadSecret(secret); err != nil || len(text) != 24 {
		t.Errorf("%x, %v", text, err)
	}
	open := write("open/rules", "#!/bin/sh\n", 0o755)
	if err := os.Chmod(filepath.Dir(open), 0o777); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(open, link); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		approvers     []Approver
		notifications []Notification
	}{
		"no such file":                    {approvers: command(filepath.Join(dir, "none"))},
		"not a program that can be run":   {approvers: command(write("text", "", 0o644))},
		"can write " + `"` + dir + "/bad": {approvers: command(write("bad", "", 0o777))},
		`/open"`:                          {approvers: command(open)},
		`could have another`:              {approvers: command(link)},
		"unknown user":                    {approvers: program(func(a *Approver) { a.Command, a.User = []string{good}, "nobody-of-that-name" })},
		"chmod 600":                       {notifications: signed(write("read", "123456789012345678901234", 0o640))},
		"has 5 bytes":                     {notifications: signed(write("short", "12345", 0o600))},
		"not base64":                      {notifications: signed(write("spoilt", "whsec_!!!", 0o600))},
		"not a regular file":              {notifications: signed("/dev/null")},
	}
	if os.Geteuid() == 0 {
		foreign := write("foreign", "#!/bin/sh\n", 0o755)
		if err := os.Chown(foreign, 12345, 0); err != nil {
			t.Fatal(err)
		}
		tests["belongs to user 12345"] = struct {
			approvers     []Approver
			notifications []Notification
		}{approvers: command(foreign)}
	}
	for want, bad := range tests {
		if err := CheckHost(bad.approvers, bad.notifications); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
