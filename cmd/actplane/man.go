// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/actplane/actplane/internal/version"
)

// manHelper is the first argument with which the package's build asks for the manual
// page, which says what --help says.
const manHelper = "manual-page"

// roff escapes text for troff: its escape character, what begins a request, and the
// hyphens of flags, which are to be copied as they are.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "…", "...").Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

// writeManual writes actplane(1), from the definitions of the commands.
func writeManual(out io.Writer, app *cli.App) error {
	var text strings.Builder
	fmt.Fprintf(&text, ".TH ACTPLANE 1 \"\" \"actplane %s\" \"ActPlane\"\n", roff(version.String()))
	fmt.Fprintf(&text, ".SH NAME\nactplane \\- %s\n", roff(app.Usage))
	text.WriteString(".SH SYNOPSIS\n.B actplane\n.I COMMAND\n[\\fIFLAG\\fR]...\n[\\fIARGUMENT\\fR]...\n")
	text.WriteString(".SH DESCRIPTION\n" + roff(manDescription) + "\n.SH COMMANDS\n")
	for _, command := range app.VisibleCommands() {
		manualCommand(&text, command)
	}
	text.WriteString(".SH EXIT STATUS\n")
	for _, line := range manExit {
		fmt.Fprintf(&text, ".TP\n.B %s\n%s\n", roff(line[0]), roff(line[1]))
	}
	text.WriteString(".SH FILES\n")
	for _, line := range manFiles {
		fmt.Fprintf(&text, ".TP\n.I %s\n%s\n", roff(line[0]), roff(line[1]))
	}
	text.WriteString(".SH SEE ALSO\n.BR actplane\\-guest (1),\n.BR actplane\\-hook (8),\n.BR actplane\\-runtime (8),\n" +
		".BR actplaned (8),\n.BR containerd\\-shim\\-actplane\\-v2 (8)\n.PP\nThe documentation is in /usr/share/doc/actplane.\n")
	_, err := io.WriteString(out, text.String())
	return err
}

func manualCommand(text *strings.Builder, command *cli.Command) {
	title := command.Name
	if command.ArgsUsage != "" {
		title += " " + command.ArgsUsage
	}
	fmt.Fprintf(text, ".SS %s\n%s.\n", roff(title), roff(sentenceCase(command.Usage)))
	if command.Description != "" {
		fmt.Fprintf(text, ".PP\n.nf\n%s\n.fi\n", roff(command.Description))
	}
	for _, flag := range command.VisibleFlags() {
		names, about, _ := strings.Cut(flag.String(), "\t")
		names, _, _ = strings.Cut(names, " [ ") // once more, for those that may be repeated
		about = strings.TrimSuffix(strings.TrimSpace(about), " (default: false)")
		fmt.Fprintf(text, ".TP\n.B %s\n%s\n", roff(strings.TrimSpace(names)), roff(strings.TrimSpace(about)))
	}
}

// sentenceCase makes a usage a sentence.
func sentenceCase(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

const manDescription = `ActPlane puts a policy on an unmodified container of an agent. The kernel enforces it, below every shell, tool and library, and the agent is told in words why something was refused. A container gets its policy by the runtime: docker run --runtime actplane. This command checks and tests policies, installs the runtime, and shows what is under policy and what happened.`

var manExit = [][2]string{
	{"0", "All is well."},
	{"1", "Errors in a policy, a test that failed, or a signature that does not count."},
	{"2", "Wrong use."},
	{"3", "The host or the engine is not able to do it."},
	{"other", "Of actplane run it is the command's own."},
}

var manFiles = [][2]string{
	{"/etc/actplane/config.yaml", "The host's configuration."},
	{"/etc/actplane/policy.d/*.yaml", "Policies that hold for every container."},
	{"/etc/actplane/policies/NAME.yaml", "Policies that containers select by name."},
	{"/etc/actplane/allowed_signers", "Whose signatures of policies count."},
	{"/run/actplane", "The engine's socket, and what runs under policy."},
	{"/sys/fs/bpf/actplane", "What enforces."},
	{"/var/lib/actplane", "What is kept of stopped containers."},
}
