// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseGlobal(t *testing.T) {
	tests := []struct {
		line string
		want call
		err  string
	}{
		{"", call{}, ""},
		{"create --bundle /b one", call{command: "create", args: []string{"--bundle", "/b", "one"}}, ""},
		{"--root /r --log /l --log-format json --systemd-cgroup create one",
			call{root: "/r", log: "/l", logFormat: "json", command: "create", args: []string{"one"}}, ""},
		{"--root=/r --log=/l --log-format=json state one", call{root: "/r", log: "/l", logFormat: "json", command: "state", args: []string{"one"}}, ""},
		{"-root /r -log=/l start one", call{root: "/r", log: "/l", command: "start", args: []string{"one"}}, ""},
		// The word create where it is not the subcommand.
		{"--root create state create", call{root: "create", command: "state", args: []string{"create"}}, ""},
		{"--log create --criu create kill create", call{log: "create", command: "kill", args: []string{"create"}}, ""},
		{"--rootless create delete create", call{command: "delete", args: []string{"create"}}, ""},
		{"--debug create one", call{command: "create", args: []string{"one"}}, ""},
		{"--debug=true create one", call{command: "create", args: []string{"one"}}, ""},
		{"--cgroup-manager systemd create one", call{command: "create", args: []string{"one"}}, ""},
		{"-- create one", call{command: "create", args: []string{"one"}}, ""},
		{"--root / -- create one", call{root: "/", command: "create", args: []string{"one"}}, ""},
		{"- create", call{command: "-", args: []string{"create"}}, ""},
		{"--version", call{}, ""},
		{"-v create", call{}, ""},
		{"--log /l --help create", call{log: "/l"}, ""},
		{"--log /a --log /b ps one", call{log: "/b", command: "ps", args: []string{"one"}}, ""},
		{"--log /l --future create one", call{log: "/l"}, `unknown option "--future"`},
		{"--root", call{}, "needs a value"},
		{"--help=false create one", call{}, "takes no value"},
		{"---root create", call{}, "unknown option"},
	}
	for _, test := range tests {
		got, err := parseGlobal(strings.Fields(test.line))
		if test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) || test.err == "" && err != nil {
			t.Errorf("%q: error %v instead of %q", test.line, err, test.err)
		}
		if len(got.args) == 0 {
			got.args = nil
		}
		if diff := cmp.Diff(&test.want, got, cmp.AllowUnexported(call{})); diff != "" {
			t.Errorf("%q: %s", test.line, diff)
		}
	}
}

func TestParseOptions(t *testing.T) {
	tests := []struct {
		known      table
		line       string
		bundle, id string
		err        string
	}{
		{createOptions(), "one", "", "one", ""},
		{createOptions(), "--bundle /b --pid-file /p --console-socket /c one", "/b", "one", ""},
		{createOptions(), "-b /b one", "/b", "one", ""},
		{createOptions(), "-b=/b one", "/b", "one", ""},
		{createOptions(), "--pid-file --bundle -b /b one", "/b", "one", ""},
		{createOptions(), "--pid-file -b create", "", "create", ""},
		{createOptions(), "-b /b -- one", "/b", "one", ""},
		{createOptions(), "one --bundle /b", "", "", "must stand before"},
		{createOptions(), "one two", "", "", "more than one"},
		{createOptions(), "--bundle /a -b /b one", "", "", "given twice"},
		{createOptions(), "--config x one", "", "", "only the bundle's config.json"},
		{createOptions(), "-f x one", "", "", "only the bundle's config.json"},
		{createOptions(), "-b/b one", "", "", "unknown option"},
		{createOptions(), "--bun /b one", "", "", "unknown option"},
		{execOptions(), "one sh -c --cap", "", "one", ""},
		{execOptions(), "-e A=B -t --user 0 --cap CAP_X -c CAP_Y one sh", "", "one", ""},
		{execOptions(), "--process p --process q one", "", "", "given twice"},
		{deleteOptions(), "--force one", "", "one", ""},
	}
	for _, test := range tests {
		got, err := parseOptions(strings.Fields(test.line), test.known)
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%q: error %v instead of %q", test.line, err, test.err)
			}
			continue
		}
		if err != nil || got.value("bundle") != test.bundle || got.positional[0] != test.id {
			t.Errorf("%q: %+v, error %v", test.line, got, err)
		}
	}
}

// FuzzArgs compares the parser with the rule that it implements: in front of the
// subcommand there are only known options and their values.
func FuzzArgs(f *testing.F) {
	for _, line := range []string{
		"--root /r create --bundle /b one", "--log=create state create", "-- create", "exec -p x one sh", "--x create", "-b=c run",
	} {
		f.Add(strings.ReplaceAll(line, " ", "\x00"))
	}
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Split(line, "\x00")
		call, err := parseGlobal(args)
		if call == nil {
			t.Fatal("no call")
		}
		if err != nil || call.command == "" {
			return
		}
		at := len(args) - len(call.args) - 1
		if at < 0 || args[at] != call.command || !slices.Equal(args[at+1:], call.args) {
			t.Fatalf("%q: subcommand %q with %q", args, call.command, call.args)
		}
		before := args[:at]
		for i := 0; i < len(before); i++ {
			if before[i] == "--" && i == len(before)-1 {
				break
			}
			name, _, attached := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(before[i], "-"), "-"), "=")
			option, ok := globalOptions()[name]
			if !ok || !isOption(before[i]) {
				t.Fatalf("%q: %q stands before the subcommand", args, before[i])
			}
			if option.value && !attached {
				i++
			}
		}
		for _, known := range []table{createOptions(), execOptions(), deleteOptions()} {
			options, err := parseOptions(call.args, known)
			if err == nil && !options.help && len(options.positional) > len(call.args) {
				t.Fatalf("%q: positional %q", call.args, options.positional)
			}
		}
	})
}
