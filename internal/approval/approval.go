// SPDX-License-Identifier: Apache-2.0

// Package approval is what the host's configuration says of approvals: which programs
// and endpoints are asked before a person is (Approver), and who is told of requests
// (Notification). Here is what they look like and what is wrong with them; packages
// engine/approver and engine/notify ask and tell.
//
// Check looks at the configuration alone, and is the same on every host. CheckHost looks
// at the files that it names as well: what runs as root, or signs for it, must be
// nobody else's to change.
package approval

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"time"
)

// Bounds of the configuration.
const (
	MaxApprovers     = 16
	MaxNotifications = 16
	DefaultTimeout   = 10 * time.Second
	minTimeout       = 100 * time.Millisecond
	maxTimeout       = 5 * time.Minute
)

// Format is how an endpoint or a program wants what it is given.
type Format string

// The formats. OPA is the data API of the Open Policy Agent: {"input": …} and
// {"result": …}; Slack is {"text": …}, which several chats take.
const (
	Plain Format = ""
	OPA   Format = "opa"
	Slack Format = "slack"
)

// Approver is a program or an endpoint on the host that is asked about requests.
type Approver struct {
	Target `yaml:",inline"`
	Format Format `yaml:"format"`
	// Rules, Operations and Containers say what it is asked about: globs of rules'
	// names, operations, and globs of containers' names. What is empty says nothing.
	Rules      []string `yaml:"rules"`
	Operations []string `yaml:"operations"`
	Containers []string `yaml:"containers"`
}

// Notification is who is told of requests.
type Notification struct {
	Target `yaml:",inline"`
	Format Format `yaml:"format"`
	// Events are what is told: "request", "answer" and "denial"; "request" if empty.
	Events []string `yaml:"events"`
	// Args: argv is told, too, which may hold secrets.
	Args bool `yaml:"args"`
	// SecretFile holds the secret that signs what is told; of URLs only.
	SecretFile string `yaml:"secret_file"`
}

// The events of a Notification.
const (
	EventRequest = "request" // somebody is asked
	EventAnswer  = "answer"  // an answer is given, or taken back
	EventDenial  = "denial"  // an operation is denied, whoever decided that
)

// Target is a program to run, or a URL.
type Target struct {
	Name string `yaml:"name"`
	// Command is a program's absolute path and its arguments. It is run as User (root
	// if empty) without a shell, with Environment and little else in its environment.
	Command     []string          `yaml:"command"`
	User        string            `yaml:"user"`
	Environment map[string]string `yaml:"environment"`
	// URL is instead of Command. With Socket it is reached through that Unix socket.
	URL     string        `yaml:"url"`
	Socket  string        `yaml:"socket"`
	Timeout time.Duration `yaml:"timeout"`
}

var (
	targetName  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	variable    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	operations  = []string{"exec", "open", "read", "write", "append", "unlink", "connect", "bind", "send", "recv"}
	eventsKnown = []string{EventRequest, EventAnswer, EventDenial}
)

// CheckAll completes the configuration with its defaults, and says what is wrong with it.
func CheckAll(approvers []Approver, notifications []Notification) error {
	if len(approvers) > MaxApprovers {
		return fmt.Errorf("approvers: %d of them; the limit is %d", len(approvers), MaxApprovers)
	}
	if len(notifications) > MaxNotifications {
		return fmt.Errorf("notifications: %d of them; the limit is %d", len(notifications), MaxNotifications)
	}
	names := map[string]bool{}
	for i := range approvers {
		if err := approvers[i].check(names); err != nil {
			return fmt.Errorf("approvers: %s: %w", approvers[i].title(i), err)
		}
	}
	clear(names)
	for i := range notifications {
		if err := notifications[i].check(names); err != nil {
			return fmt.Errorf("notifications: %s: %w", notifications[i].title(i), err)
		}
	}
	return nil
}

// title is what a target is called in errors.
func (t *Target) title(i int) string {
	if t.Name != "" {
		return fmt.Sprintf("%q", t.Name)
	}
	return fmt.Sprintf("number %d", i+1)
}

func (a *Approver) check(names map[string]bool) error {
	if err := a.Target.check(names, false); err != nil {
		return err
	}
	if a.Format != Plain && a.Format != OPA {
		return fmt.Errorf(`format: %q is not "opa"; leave it out for ActPlane's own`, a.Format)
	}
	for _, list := range []struct {
		key   string
		globs []string
	}{{"rules", a.Rules}, {"containers", a.Containers}} {
		for _, glob := range list.globs {
			if _, err := path.Match(glob, ""); err != nil || glob == "" {
				return fmt.Errorf("%s: %q is not a pattern", list.key, glob)
			}
		}
	}
	return known("operations", a.Operations, operations)
}

func (n *Notification) check(names map[string]bool) error {
	if err := n.Target.check(names, true); err != nil {
		return err
	}
	if n.Format != Plain && n.Format != Slack {
		return fmt.Errorf(`format: %q is not "slack"; leave it out for ActPlane's own`, n.Format)
	}
	if n.SecretFile != "" && (n.URL == "" || !path.IsAbs(n.SecretFile)) {
		return fmt.Errorf("secret_file: it is the absolute path of a file, and signs what is sent to a url")
	}
	if len(n.Events) == 0 {
		n.Events = []string{EventRequest}
	}
	return known("events", n.Events, eventsKnown)
}

func known(key string, list, all []string) error {
	for _, word := range list {
		if !slices.Contains(all, word) {
			return fmt.Errorf("%s: there is no %q; there are %s", key, word, join(all))
		}
	}
	return nil
}

// check says what is wrong with a target; REMOTE ones may be anywhere.
func (t *Target) check(names map[string]bool, remote bool) error {
	switch {
	case !targetName.MatchString(t.Name):
		return errors.New("name: it needs one, of letters, digits, dots, dashes and underscores")
	case names[t.Name]:
		return errors.New("name: another one has it")
	case (len(t.Command) > 0) == (t.URL != ""):
		return errors.New("it needs either a command or a url")
	case len(t.Command) > 0 && !path.IsAbs(t.Command[0]):
		return fmt.Errorf("command: %q is not an absolute path; it is no line for a shell, but a list: the program and its arguments", t.Command[0])
	case t.URL != "" && (t.User != "" || len(t.Environment) > 0):
		return errors.New("user and environment are of a command")
	case t.URL == "" && t.Socket != "":
		return errors.New("socket: it is of a url")
	case t.Socket != "" && !path.IsAbs(t.Socket):
		return fmt.Errorf("socket: %q is not an absolute path", t.Socket)
	}
	names[t.Name] = true
	for name := range t.Environment {
		if !variable.MatchString(name) {
			return fmt.Errorf("environment: %q is not a variable's name", name)
		}
	}
	if t.Timeout == 0 {
		t.Timeout = DefaultTimeout
	}
	if t.Timeout < minTimeout || t.Timeout > maxTimeout {
		return fmt.Errorf("timeout: %s is not between %s and %s", t.Timeout, minTimeout, maxTimeout)
	}
	if t.URL == "" {
		return nil
	}
	return t.checkURL(remote)
}

// Asks tells whether an approver is asked about an operation under a rule, "" for a
// default, in a container of a name.
func (a *Approver) Asks(rule, operation, container string) bool {
	return (len(a.Rules) == 0 || matches(a.Rules, rule)) &&
		(len(a.Operations) == 0 || slices.Contains(a.Operations, operation)) &&
		(len(a.Containers) == 0 || matches(a.Containers, container))
}

func matches(globs []string, name string) bool {
	return slices.ContainsFunc(globs, func(glob string) bool {
		ok, err := path.Match(glob, name)
		return ok && err == nil
	})
}
