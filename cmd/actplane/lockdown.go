// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/actplane/actplane/console"
	"github.com/actplane/actplane/engine/api"
)

func lockdownCommand() *cli.Command {
	return &cli.Command{
		Name:      "lockdown",
		Usage:     "refuse at once everything that a container does, until it is unlocked",
		ArgsUsage: "[SCOPE]",
		Description: "SCOPE is a container's id, the beginning of one, or its name. When the command returns, nothing that\n" +
			"the container's programs begin succeeds: no open, read, write, exec, fork, connection, message or\n" +
			"signal. They can only compute, use memory that they have, and exit; --freeze stops that as well.\n" +
			"docker stop and kill work, docker exec and start do not. It lasts over restarts of the engine and of\n" +
			"the container, whatever its policy says, until \"actplane unlock\".",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "all containers that run now under a policy"},
			&cli.StringFlag{Name: "because", Usage: "the `REASON`, which the agent gets to read"},
			&cli.BoolFlag{Name: "freeze", Usage: "also stop the container's processes (the cgroup freezer)"},
			formatFlag(),
			runDirFlag(),
		},
		Action: lockdown,
	}
}

func unlockCommand() *cli.Command {
	return &cli.Command{
		Name:      "unlock",
		Usage:     "end a lockdown",
		ArgsUsage: "[SCOPE]",
		Description: "SCOPE is a container's id, the beginning of one, or its name. Its programs go on under their policy\n" +
			"from where they were; what was refused they have to try again.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "all containers that are locked"},
			formatFlag(),
			runDirFlag(),
		},
		Action: endLockdown,
	}
}

// lockLine is a lock as --format json prints it.
type lockLine struct {
	ID      string     `json:"id"`
	Name    string     `json:"name"`
	Since   *time.Time `json:"since"`
	By      string     `json:"by"`
	Because string     `json:"because"`
	Frozen  bool       `json:"frozen"`
	Running bool       `json:"running"`
	Refused uint64     `json:"refused"` // operations, since it was locked
}

func lockLineOf(lock *api.Lock) *lockLine {
	if lock == nil {
		return nil
	}
	line := &lockLine{ID: lock.Id, Name: lock.Name, By: lock.By, Because: lock.Because, Frozen: lock.Frozen, Running: lock.Running, Refused: lock.Refused}
	if lock.SinceUnixMs != 0 {
		since := time.UnixMilli(lock.SinceUnixMs).UTC()
		line.Since = &since
	}
	return line
}

// scopeOrAll is what a command is about: one scope, or with --all none.
func scopeOrAll(c *cli.Context) (string, error) {
	switch {
	case c.NArg() > 1:
		return "", usageError("%s: unexpected argument %q", c.Command.Name, c.Args().Get(1))
	case c.Bool("all") && c.Args().Present():
		return "", usageError("%s: name a scope, or say --all, and not both", c.Command.Name)
	case !c.Bool("all") && c.Args().First() == "":
		return "", usageError("%s: name a scope, or say --all; \"actplane ps\" lists them", c.Command.Name)
	}
	return c.Args().First(), nil
}

func lockdown(c *cli.Context) error {
	word, err := scopeOrAll(c)
	if err != nil {
		return err
	}
	return changeLocks(c, "nothing runs under a policy", func(client api.EngineClient) ([]*api.Lock, error) {
		response, err := client.Lockdown(c.Context, &api.LockdownRequest{
			Scope: word, All: c.Bool("all"), Because: c.String("because"), Freeze: c.Bool("freeze"), By: whoAnswers(),
		})
		return response.GetLocks(), err
	}, writeLocked)
}

func endLockdown(c *cli.Context) error {
	word, err := scopeOrAll(c)
	if err != nil {
		return err
	}
	return changeLocks(c, "nothing is locked", func(client api.EngineClient) ([]*api.Lock, error) {
		response, err := client.Unlock(c.Context, &api.UnlockRequest{Scope: word, All: c.Bool("all"), By: whoAnswers()})
		return response.GetLocks(), err
	}, writeUnlocked)
}

// changeLocks asks the engine, and prints the locks that it answers with, or that there
// are none.
func changeLocks(c *cli.Context, none string, ask func(api.EngineClient) ([]*api.Lock, error), write func(io.Writer, *api.Lock) error) error {
	format, err := formatOf(c)
	if err != nil {
		return err
	}
	client, err := engine(c.Context, c)
	if err != nil {
		return err
	}
	defer client.Close()
	locks, err := ask(client.EngineClient)
	if err != nil {
		return engineError(err)
	}
	if format == "json" {
		lines := []*lockLine{}
		for _, lock := range locks {
			lines = append(lines, lockLineOf(lock))
		}
		return writeJSON(c.App.Writer, lines, "  ")
	}
	if len(locks) == 0 {
		_, err := fmt.Fprintln(c.App.Writer, none)
		return err
	}
	for _, lock := range locks {
		if err := write(c.App.Writer, lock); err != nil {
			return err
		}
	}
	return nil
}

func writeLocked(w io.Writer, lock *api.Lock) error {
	state := "everything that it does is refused"
	if lock.Frozen {
		state += ", and its processes are stopped"
	}
	if !lock.Running {
		state = "it does not run, and cannot be started"
	}
	_, err := fmt.Fprintf(w, "%s is locked: %s\n", clean(console.ScopeTitle(lock.Id, lock.Name)), state)
	return err
}

func writeUnlocked(w io.Writer, lock *api.Lock) error {
	since := ""
	if lock.SinceUnixMs != 0 {
		since = ", locked by " + clean(lock.By) + " " + time.Since(time.UnixMilli(lock.SinceUnixMs)).Truncate(time.Second).String() + " ago,"
	}
	refused := ""
	if lock.Running {
		refused = fmt.Sprintf("; %d operations were refused", lock.Refused)
	}
	_, err := fmt.Fprintf(w, "%s%s is unlocked%s\n", clean(console.ScopeTitle(lock.Id, lock.Name)), since, refused)
	return err
}
