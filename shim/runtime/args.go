// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"errors"
	"fmt"
	"strings"
)

// call is a command line up to the subcommand.
type call struct {
	root      string
	log       string
	logFormat string
	command   string
	args      []string // behind the subcommand
}

// kind is what is to be done for a subcommand.
type kind int

const (
	unknown   kind = iota
	preparing      // the container is put under policy first
	executing      // its process is limited first
	starting       // its policy has to be in force
	updating       // its resources are limited first
	deleting       // the engine is told first
	passing        // nothing
)

func kindOf(command string) kind {
	switch command {
	case "create", "run":
		return preparing
	case "exec":
		return executing
	case "delete":
		return deleting
	case "start":
		return starting
	case "update":
		return updating
	case "", "state", "kill", "pause", "resume", "events", "ps", "list", "spec",
		"features", "checkpoint", "help", "h":
		return passing
	}
	return unknown
}

// table says of each option whether it takes a value, and by which name it goes.
type table map[string]option

type option struct {
	name  string
	value bool
	// refused is why the option cannot be used.
	refused string
}

// options are those of a subcommand.
type options struct {
	values     map[string][]string
	positional []string
	help       bool
}

// value is that of an option which parseOptions has seen at most once.
func (o *options) value(name string) string {
	if list := o.values[name]; len(list) > 0 {
		return list[len(list)-1]
	}
	return ""
}

// globalOptions are those of runc, crun and youki.
func globalOptions() table {
	return makeTable("root= log= log-format= log-level= criu= rootless= cgroup-manager= debug systemd-cgroup" +
		" help h:help ?:help usage:help version:help v:help V:help")
}

func createOptions() table {
	t := makeTable("bundle= b:bundle= console-socket= pid-file= pidfd-socket= preserve-fds= no-pivot no-new-keyring" +
		" detach d:detach keep no-subreaper no-mount-fallback help h:help ?:help usage:help")
	t["config"] = option{name: "config", value: true, refused: "only the bundle's config.json can be put under policy"}
	t["f"] = t["config"]
	return t
}

func execOptions() table {
	return makeTable("console-socket= cwd= env= e:env= user= u:user= additional-gids= g:additional-gids= process= p:process=" +
		" pid-file= pidfd-socket= process-label= apparmor= cap= c:cap= preserve-fds= cgroup=" +
		" tty t:tty detach d:detach no-new-privs ignore-paused help h:help ?:help usage:help")
}

func startOptions() table {
	return makeTable("help h:help ?:help usage:help")
}

func deleteOptions() table {
	return makeTable("force f:force help h:help ?:help usage:help")
}

// makeTable reads words like "bundle=" (takes a value), "b:bundle=" (another
// name) and "debug".
func makeTable(words string) table {
	t := table{}
	for _, word := range strings.Fields(words) {
		key, name, other := strings.Cut(word, ":")
		if !other {
			name = key
		}
		name, value := strings.CutSuffix(name, "=")
		t[strings.TrimSuffix(key, "=")] = option{name: name, value: value}
	}
	return t
}

// parseGlobal finds the subcommand. An option that is not known could take the
// next argument as its value, or not: then nobody can tell what the subcommand
// is. What was understood so far is returned with an error, for the log.
func parseGlobal(args []string) (*call, error) {
	call := &call{}
	known := globalOptions()
	for i := 0; i < len(args); i++ {
		if args[i] == "--" {
			call.args = args[i+1:]
			break
		}
		if !isOption(args[i]) {
			call.args = args[i:]
			break
		}
		option, value, n, err := takeOption(known, args[i:])
		if err != nil {
			return call, err
		}
		i += n
		switch option.name {
		case "help":
			return call, nil // the next runtime prints it and ends
		case "root":
			call.root = value
		case "log":
			call.log = value
		case "log-format":
			call.logFormat = value
		}
	}
	if len(call.args) > 0 {
		call.command, call.args = call.args[0], call.args[1:]
	}
	return call, nil
}

func isOption(arg string) bool { return len(arg) > 1 && arg[0] == '-' }

// takeOption reads an option with its value; n is how many further arguments it
// takes. One dash is as good as two, as in Go's flag package, which runc uses.
func takeOption(known table, args []string) (option option, value string, n int, err error) {
	name := strings.TrimPrefix(strings.TrimPrefix(args[0], "-"), "-")
	name, value, attached := strings.Cut(name, "=")
	option, ok := known[name]
	switch {
	case !ok:
		return option, "", 0, fmt.Errorf("unknown option %q is not passed on, since it could hide the subcommand or the bundle", args[0])
	case option.refused != "":
		return option, "", 0, fmt.Errorf("option %q: %s", args[0], option.refused)
	case attached && option.name == "help":
		return option, "", 0, fmt.Errorf("option %q takes no value", args[0])
	case attached:
		return option, value, 0, nil
	case !option.value:
		return option, "true", 0, nil
	case len(args) < 2:
		return option, "", 0, fmt.Errorf("option %q needs a value", args[0])
	}
	return option, args[1], 1, nil
}

// parseOptions reads what stands behind a subcommand. Runtimes differ in what
// they make of an option behind the first other argument, of two values and of
// two names of an option: these are errors where it matters.
func parseOptions(args []string, known table) (*options, error) {
	options := &options{values: map[string][]string{}}
	for i := 0; i < len(args); i++ {
		if args[i] == "--" || !isOption(args[i]) {
			options.positional = args[i:]
			if args[i] == "--" {
				options.positional = args[i+1:]
			}
			break
		}
		option, value, n, err := takeOption(known, args[i:])
		if err != nil {
			return nil, err
		}
		i += n
		if option.name == "help" {
			options.help = true
			return options, nil
		}
		options.values[option.name] = append(options.values[option.name], value)
		if once := option.name == "bundle" || option.name == "process"; once && len(options.values[option.name]) > 1 {
			return nil, fmt.Errorf("option --%s is given twice", option.name)
		}
	}
	// The arguments of exec's program are its own; nothing else has two.
	if _, exec := known["process"]; !exec && len(options.positional) > 1 {
		for _, arg := range options.positional[1:] {
			if isOption(arg) {
				return nil, fmt.Errorf("option %q must stand before the container id", arg)
			}
		}
		return nil, errors.New("more than one container id")
	}
	return options, nil
}
