// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"time"

	"github.com/actplane/actplane/policy/ir"
)

func when(set bool, text string) string {
	if set {
		return text
	}
	return ""
}

func patternText(p ir.Pattern) string {
	if p.Any {
		return "any"
	}
	return fmt.Sprintf("%s%q", when(p.Host, "host "), p.Text)
}

func eventText(e ir.Event) string {
	return e.Op.String() + " " + patternText(e.Pattern) + argsText(e.Args)
}

func argsText(args []string) string {
	out := ""
	for _, a := range args {
		out += fmt.Sprintf(" %q", a)
	}
	return out
}

func exitText(status int) string {
	if status < 0 {
		return ""
	}
	return fmt.Sprintf(" exits %d", status)
}

func holdText(hold int64) string {
	if hold == 0 {
		return ""
	}
	return " hold " + time.Duration(hold).String()
}
