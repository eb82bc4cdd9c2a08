// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/internal/approval"
	"github.com/actplane/actplane/internal/atomicfile"
	"github.com/actplane/actplane/internal/testenv"
)

// Approvers and notifications are read again at a signal. What is wrong is told, and
// changes nothing; mended, it is taken.
func TestReload(t *testing.T) {
	testenv.RequireRoot(t) // whose what approvers run has to be
	file := filepath.Join(t.TempDir(), "config.yaml")
	write := func(text string) {
		t.Helper()
		if err := atomicfile.Write(file, []byte(text), atomicfile.Options{Mode: 0o600}); err != nil {
			t.Fatal(err)
		}
	}
	write("approvers: [{name: first, command: [/bin/true], rules: [push]}]\n")
	config, err := loadConfig(file)
	if err != nil {
		t.Fatal(err)
	}
	log := logrus.New()
	log.SetOutput(t.Output())
	p, err := newPeople(file, config, nil, logrus.NewEntry(log))
	if err != nil {
		t.Fatal(err)
	}
	signals := make(chan os.Signal)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { p.follow(ctx, signals); close(ended) }()
	defer func() { cancel(); <-ended }()
	reload := func(text string) {
		t.Helper()
		write(text)
		for range 2 { // when the second is taken, the first has been done
			select {
			case signals <- unix.SIGHUP:
			case <-time.After(30 * time.Second):
				t.Fatal("the signal is not taken")
			}
		}
	}
	for _, step := range []struct {
		text       string
		push, pull bool
		told       bool
		problem    string
	}{
		{"approvers: [{name: a, command: [/bin/true], rules: [pull]}]\nnotifications: [{name: n, command: [/bin/true]}]\n", false, true, true, ""},
		{"approvers: [{name: a, command: [/bin/true], rules: [push]}]\nnotifications: [{name: n, comand: [/bin/true]}]\n", false, true, true, `unknown key "comand"`},
		{"approvers: [{name: a, command: [/nonexistent]}]\n", false, true, true, "/nonexistent"},
		{"approvers:\n", false, false, false, ""},
		{"approvers: [{name: a, command: [/bin/true]}]\n", true, true, false, ""},
	} {
		reload(step.text)
		problem := strings.Join(p.Problems(), "; ")
		if p.approvers.Asks("push", "exec", "c") != step.push || p.approvers.Asks("pull", "exec", "c") != step.pull || p.Wants(approval.EventRequest) != step.told ||
			!strings.Contains(problem, step.problem) || (problem == "") != (step.problem == "") {
			t.Errorf("%q: push %v, told %v, %q", step.text, p.approvers.Asks("push", "exec", "c"), p.Wants(approval.EventRequest), problem)
		}
	}
}
