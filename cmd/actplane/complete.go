// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/actplane/actplane/console"
	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/internal/daemon"
	"github.com/actplane/actplane/policy/templates"
)

// completeHelper is the first argument with which the scripts of completionCommand
// ask how a command line can go on:
//
//	actplane complete-words WORD…
//
// The words are those behind the program's name, up to the one that is being typed,
// which may be empty. The answer is lines of a word, a tab and what it means, or one
// of the hints below.
const completeHelper = "complete-words"

// The hints leave it to the shell to complete names.
const (
	hintFiles       = ":files"
	hintDirectories = ":directories"
	hintCommands    = ":commands"
)

// candidate is a word with which a command line can go on, and what it means.
type candidate struct{ word, about string }

// completer finds candidates.
type completer struct {
	app *cli.App
	// scopes lists what "events" can be asked about.
	scopes func() []candidate
	// requests lists what "approve" and "deny" can be asked about.
	requests func() []candidate
	// grants lists what "revoke" can be asked about.
	grants func() []candidate
}

func completeMain(app *cli.App, words []string, out io.Writer) int {
	app.Setup()
	c := completer{
		app:      app,
		scopes:   func() []candidate { return liveScopes(daemon.Options{}) },
		requests: func() []candidate { return openRequests(daemon.Options{}) },
		grants:   func() []candidate { return liveGrants(daemon.Options{}) },
	}
	for _, found := range c.complete(words) {
		fmt.Fprintln(out, found.line())
	}
	return 0
}

// plainWord is what every shell takes for one word. Others are left out: scopes are
// named by those who start containers.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9._+/=@%-]+$`)

func (c candidate) isHint() bool {
	return c.about == "" && (c.word == hintFiles || c.word == hintDirectories || c.word == hintCommands)
}

// line is a candidate as the scripts read it.
func (c candidate) line() string {
	if c.about == "" {
		return c.word
	}
	about, _, _ := strings.Cut(c.about, "\n")
	return c.word + "\t" + clean(strings.ReplaceAll(about, "\t", " "))
}

// complete lists what the last of the words can be.
func (c completer) complete(words []string) []candidate {
	if len(words) == 0 {
		return nil
	}
	before, current := words[:len(words)-1], words[len(words)-1]
	command := (*cli.Command)(nil)
	if len(before) > 0 {
		if command = commandOf(c.app.Commands, before[0]); command == nil {
			return nil
		}
		before = before[1:]
		if len(before) > 0 && len(command.Subcommands) > 0 {
			if command = commandOf(command.Subcommands, before[0]); command == nil {
				return nil
			}
			before = before[1:]
		}
	}
	return matching(c.all(command, before, current), current)
}

// all lists candidates that need not begin like the current word.
func (c completer) all(command *cli.Command, before []string, current string) []candidate {
	if command == nil {
		if strings.HasPrefix(current, "-") {
			return flagNames(c.app.Flags)
		}
		return c.commands()
	}
	position, flag, free := place(command, before)
	switch name, _, valued := strings.Cut(current, "="); {
	case flag != nil:
		return values(command, flag)
	case free || !strings.HasPrefix(current, "-"):
		return c.argument(command, position)
	case valued:
		if flag := flagOf(command, name); flag != nil {
			return prefixed(values(command, flag), name+"=")
		}
		return nil
	}
	return append(flagNames(command.Flags), candidate{"--help", "show help"})
}

// place finds where in a command's arguments the next one is: how many there are
// before it, the flag whose value it is, and whether it can be no flag.
func place(command *cli.Command, before []string) (position int, flag cli.DocGenerationFlag, free bool) {
	for i := 0; i < len(before); i++ {
		word := before[i]
		switch {
		case free || len(word) < 2 || word[0] != '-':
			position++
			// The rest is another program's.
			free = free || command.Name == runCommandName
		case word == "--":
			free = true
		case wantsValue(command, word):
			if i++; i == len(before) {
				return position, flagOf(command, word), false
			}
		}
	}
	return position, nil, free
}

// flagOf finds a command's flag by what stands for it on the command line.
func flagOf(command *cli.Command, word string) cli.DocGenerationFlag {
	name := strings.TrimPrefix(strings.TrimPrefix(word, "-"), "-")
	for _, f := range command.Flags {
		if d, ok := f.(cli.DocGenerationFlag); ok && d.TakesValue() && slices.Contains(f.Names(), name) {
			return d
		}
	}
	return nil
}

// values are what a flag's value can be: its usage names the kind.
func values(command *cli.Command, flag cli.DocGenerationFlag) []candidate {
	_, rest, _ := strings.Cut(flag.GetUsage(), "`")
	kind, _, _ := strings.Cut(rest, "`")
	switch {
	case kind == "FILE":
		return []candidate{{word: hintFiles}}
	case kind == "DIRECTORY":
		return []candidate{{word: hintDirectories}}
	case kind == "FORMAT":
		return []candidate{{word: "text"}, {word: "json"}}
	case command.Name == "init" && kind == "NAME":
		var names []candidate
		for _, t := range templates.All() {
			names = append(names, candidate{t.Name, t.Summary})
		}
		return names
	}
	return nil
}

// argument is what a command's argument at a position can be: ArgsUsage names the
// kind.
func (c completer) argument(command *cli.Command, position int) []candidate {
	usage := command.ArgsUsage
	if most := len(strings.Fields(usage)); position >= most && !strings.HasSuffix(usage, "…") && !strings.HasSuffix(usage, "…]") {
		return nil
	}
	if len(command.Subcommands) > 0 {
		return names(command.Subcommands)
	}
	switch usage {
	case "FILE", "FILE…", "OLD NEW", "LOG POLICY…":
		return []candidate{{word: hintFiles}}
	case "[DIR]":
		return []candidate{{word: hintDirectories}}
	case "[--] COMMAND [ARG…]":
		if position > 0 {
			return []candidate{{word: hintFiles}}
		}
		return []candidate{{word: hintCommands}}
	case "[COMMAND]":
		return c.commands()
	case "[SCOPE]", "CONTAINER":
		return c.scopes()
	case "REQUEST":
		if command.Name == revokeName {
			return c.grants()
		}
		return c.requests()
	case "SHELL":
		return []candidate{{word: "bash"}, {word: "zsh"}, {word: "fish"}}
	}
	return nil
}

func (c completer) commands() []candidate { return names(c.app.Commands) }

func names(commands []*cli.Command) []candidate {
	var names []candidate
	for _, command := range commands {
		if !command.Hidden {
			names = append(names, candidate{command.Name, command.Usage})
		}
	}
	return names
}

func flagNames(flags []cli.Flag) []candidate {
	var names []candidate
	for _, f := range flags {
		if v, ok := f.(cli.VisibleFlag); ok && !v.IsVisible() {
			continue
		}
		about := ""
		if d, ok := f.(cli.DocGenerationFlag); ok {
			about = strings.ReplaceAll(d.GetUsage(), "`", "")
		}
		names = append(names, candidate{"--" + f.Names()[0], about})
	}
	return names
}

func prefixed(list []candidate, prefix string) []candidate {
	for i := range list {
		if !list[i].isHint() {
			list[i].word = prefix + list[i].word
		}
	}
	return list
}

// matching keeps the hints and those that begin like the word and are one, each once.
func matching(list []candidate, current string) []candidate {
	seen := map[string]bool{}
	return slices.DeleteFunc(list, func(c candidate) bool {
		again := seen[c.word]
		seen[c.word] = true
		return again || !c.isHint() && (!strings.HasPrefix(c.word, current) || !plainWord.MatchString(c.word))
	})
}

// scopesTime is how long the engine has to answer somebody who types.
const scopesTime = 500 * time.Millisecond

// openRequests asks an engine that runs for what waits for an answer.
func openRequests(options daemon.Options) []candidate {
	ctx, cancel := context.WithTimeout(context.Background(), scopesTime)
	defer cancel()
	client, err := daemon.Connect(ctx, options)
	if err != nil {
		return nil
	}
	defer client.Close()
	stream, err := client.Requests(ctx, &api.RequestsRequest{})
	if err != nil {
		return nil
	}
	var found []candidate
	for {
		r, err := stream.Recv()
		if err != nil {
			return found
		}
		found = append(found, candidate{r.Id, r.Operation + " " + word(string(r.Object))})
	}
}

// liveGrants asks an engine that runs for what can be taken back.
func liveGrants(options daemon.Options) []candidate {
	ctx, cancel := context.WithTimeout(context.Background(), scopesTime)
	defer cancel()
	client, err := daemon.Connect(ctx, options)
	if err != nil {
		return nil
	}
	defer client.Close()
	response, err := client.ListGrants(ctx, &api.ListGrantsRequest{})
	if err != nil {
		return nil
	}
	var found []candidate
	for _, g := range response.Grants {
		found = append(found, candidate{g.Request.Id, console.OperationText(g.Request)})
	}
	return found
}

// liveScopes asks an engine that runs, and starts none.
func liveScopes(options daemon.Options) []candidate {
	ctx, cancel := context.WithTimeout(context.Background(), scopesTime)
	defer cancel()
	client, err := daemon.Connect(ctx, options)
	if err != nil {
		return nil
	}
	defer client.Close()
	response, err := client.List(ctx, &api.ListRequest{})
	if err != nil {
		return nil
	}
	var found []candidate
	for _, s := range response.Scopes {
		found = append(found, candidate{short(s.Id), "the scope of " + s.Name}, candidate{s.Name, "the scope " + short(s.Id)})
	}
	return found
}
