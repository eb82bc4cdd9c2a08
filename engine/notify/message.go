// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/internal/approval"
	"github.com/actplane/actplane/internal/plain"
)

// MessageVersion is that of what is sent. Fields may be added under one version.
const MessageVersion = 1

// Bounds of what one event takes: a message is for people.
const (
	maxArgs   = 32
	maxArg    = 256
	maxObject = 1024
	maxLines  = 10 // of the text
)

// message is what is sent at once.
type message struct {
	id     string
	body   any
	events int
}

// payload is the body of a message.
type payload struct {
	Version   int       `json:"version"`
	Type      string    `json:"type"` // "actplane.events"
	Timestamp time.Time `json:"timestamp"`
	Text      string    `json:"text"` // for people, on some lines
	Data      data      `json:"data"`
}

type data struct {
	Events []eventDocument `json:"events"`
	// LeftOut counts the events that were dropped since the message before.
	LeftOut uint64 `json:"left_out"`
}

type eventDocument struct {
	Type    string               `json:"type"`
	Time    time.Time            `json:"time"`
	Text    string               `json:"text"`
	Request *api.RequestDocument `json:"request,omitempty"`
	Denial  *Denial              `json:"denial,omitempty"`
}

// slack is what Slack's incoming webhooks take, and those of chats that do as it does.
type slack struct {
	Text   string `json:"text"`
	Markup bool   `json:"mrkdwn"`
}

// newMessage makes a message of events. Its id stays the same however often it is sent.
func newMessage(n *approval.Notification, events []Event, leftOut uint64, now time.Time) message {
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails
	p := payload{Version: MessageVersion, Type: "actplane.events", Timestamp: now.UTC(), Data: data{LeftOut: leftOut}}
	var lines []string
	for _, e := range events {
		e = e.within(n.Args)
		text := e.text()
		lines = append(lines, text)
		p.Data.Events = append(p.Data.Events, eventDocument{e.Type, e.Time.UTC(), text, e.Request, e.Denial})
	}
	more := max(0, len(lines)-maxLines)
	lines = lines[:len(lines)-more]
	if total := uint64(more) + leftOut; total > 0 {
		lines = append(lines, fmt.Sprintf("and %d more; \"actplane requests\" and \"actplane events\" have them all", total))
	}
	p.Text = strings.Join(lines, "\n")
	m := message{id: "msg_" + hex.EncodeToString(random[:]), body: p, events: len(events)}
	if n.Format == approval.Slack {
		// As Slack asks for: these three are its markup's.
		m.body = slack{Text: strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(p.Text)}
	}
	return m
}

// encode is the message as it is sent now. The headers are those of the Standard Webhooks
// specification (standardwebhooks.com), whose libraries check them: an id, the time in
// seconds, and with a secret the HMAC-SHA256 of "ID.TIME.BODY".
func (m message) encode(secret []byte, now time.Time) (body []byte, headers map[string]string, err error) {
	if body, err = json.Marshal(m.body); err != nil {
		return nil, nil, fmt.Errorf("encode notification: %w", err)
	}
	at := strconv.FormatInt(now.Unix(), 10)
	headers = map[string]string{"webhook-id": m.id, "webhook-timestamp": at}
	if secret != nil {
		mac := hmac.New(sha256.New, secret)
		fmt.Fprintf(mac, "%s.%s.%s", m.id, at, body)
		headers["webhook-signature"] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	return body, headers, nil
}

// within is the event with bounds, and without arguments if they are not to be told.
func (e Event) within(args bool) Event {
	bounded := func(list []string) ([]string, bool) {
		if !args {
			return []string{}, len(list) > 0
		}
		cut := len(list) > maxArgs
		list = slices.Clone(list[:min(len(list), maxArgs)])
		for i, arg := range list {
			if len(arg) > maxArg {
				list[i], cut = arg[:maxArg], true
			}
		}
		return list, cut
	}
	if e.Request != nil {
		r := *e.Request
		list, cut := bounded(r.Args)
		r.Args, r.ArgsCut = list, r.ArgsCut || cut
		r.Object = shorten(r.Object)
		r.CWD = shorten(r.CWD)
		e.Request = &r
	}
	if e.Denial != nil {
		d := *e.Denial
		list, cut := bounded(d.Args)
		d.Args, d.ArgsCut = list, d.ArgsCut || cut
		d.Object = shorten(d.Object)
		d.Labels = append([]string{}, d.Labels...)
		e.Denial = &d
	}
	return e
}

func shorten(text string) string {
	if len(text) <= maxObject {
		return text
	}
	return text[:maxObject] + "…"
}

// text is an event on one line. What a program in the container chose stands in quotes
// where it is not one plain word, and is escaped.
func (e Event) text() string {
	if d := e.Denial; d != nil {
		return fmt.Sprintf("%s: %s was denied%s", title(d.Scope, d.Name), operation(d.Operation, d.Object, d.Args, d.ArgsCut), by(d.Rule, d.Because, d.RuleAdded))
	}
	r := e.Request
	what := operation(r.Operation, r.Object, r.Args, r.ArgsCut)
	where := title(r.Scope, r.Name)
	switch e.Type {
	case "request.opened":
		text := fmt.Sprintf("%s: request %s wants to %s%s", where, plain.Text(r.ID), what, by(r.Rule, r.Because, r.RuleAdded))
		for _, w := range r.Warnings {
			text += fmt.Sprintf(" Warning of %s: %s", plain.Text(w.Approver), plain.Text(w.Text))
		}
		return text
	case "request.timed-out", "request.withdrawn":
		return fmt.Sprintf("%s: request %s, to %s: %s", where, plain.Text(r.ID), what, plain.Text(r.State))
	}
	text := fmt.Sprintf("%s: request %s, to %s: %s", where, plain.Text(r.ID), what, plain.Text(r.State))
	if a := r.Answer; a != nil && a.Over == "" {
		text += " by " + who(a)
		if a.Because != "" {
			text += ": " + plain.Text(a.Because)
		}
	}
	return text
}

func who(a *api.AnswerDocument) string {
	switch {
	case a.Via == "approver":
		return "approver " + plain.Word(a.Name)
	case a.Name != "":
		return fmt.Sprintf("%s (uid %d)", plain.Word(a.Name), a.UID)
	}
	return fmt.Sprintf("uid %d", a.UID)
}

// by tells what decides, and why. What a program in the container added is quoted: people
// take the policy's words for its author's.
func by(rule, because string, added bool) string {
	text := ", by a default"
	switch {
	case rule != "" && added:
		text = ", by rule " + plain.Word(rule)
	case rule != "":
		text = ", by rule " + plain.Text(rule)
	}
	if added {
		text += ", which a program in the container added"
		if because != "" {
			text += ": " + plain.Word(because)
		}
		return text
	}
	if because != "" {
		text += ": " + plain.Text(because)
	}
	return text
}

func operation(name, object string, args []string, more bool) string {
	text := plain.Text(name) + " " + plain.Word(object)
	if name == "exec" && len(args) > 1 {
		text += " " + plain.Words(args[1:])
		if more {
			text += " … and more"
		}
	}
	return text
}

func title(id, name string) string {
	if name != "" {
		return plain.Word(name)
	}
	return plain.Text(id[:min(len(id), 12)])
}
