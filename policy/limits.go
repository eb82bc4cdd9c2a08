// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/actplane/actplane/policy/diag"
	"github.com/actplane/actplane/policy/ir"
)

var (
	limitKeys      = []string{"pids", "memory", "cpus", "capabilities", "no_new_privileges"}
	capabilityKeys = []string{"drop", "add"}
)

// capabilityNames are the kernel's, without CAP_.
var capabilityNames = strings.Fields(`
AUDIT_CONTROL AUDIT_READ AUDIT_WRITE BLOCK_SUSPEND BPF CHECKPOINT_RESTORE CHOWN
DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID IPC_LOCK IPC_OWNER KILL LEASE
LINUX_IMMUTABLE MAC_ADMIN MAC_OVERRIDE MKNOD NET_ADMIN NET_BIND_SERVICE
NET_BROADCAST NET_RAW PERFMON SETFCAP SETGID SETPCAP SETUID SYSLOG SYS_ADMIN
SYS_BOOT SYS_CHROOT SYS_MODULE SYS_NICE SYS_PACCT SYS_PTRACE SYS_RAWIO
SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG WAKE_ALARM`)

// limits reads `limits:`.
func (r *reader) limits(n *yaml.Node) ir.Limits {
	var out ir.Limits
	r.mapping(n, "limits", "limits: {pids: 512, memory: 2GiB}", func(key, value *yaml.Node) {
		switch key.Value {
		case "pids":
			v, ok := figure(value, "0123456789")
			if !ok || v < 1 || v > 1<<22 || v != math.Trunc(v) {
				r.badLimit(value, "pids", "write a number from 1 to 4194304")
				return
			}
			out.Pids = int64(v)
		case "memory":
			v, ok := memory(value)
			if !ok {
				r.badLimit(value, "memory", "write bytes, or a number with a unit: 512MiB, 2GiB")
				return
			}
			out.Memory = v
		case "cpus":
			v, ok := figure(value, "0123456789.")
			if !ok || !(v >= 0.01 && v <= 4096) {
				r.badLimit(value, "cpus", "write a number such as 2 or 0.5")
				return
			}
			out.CPUs = v
		case "capabilities":
			out.Capabilities = r.capabilities(value)
		case "no_new_privileges":
			if value.ShortTag() != "!!bool" || value.Decode(&out.NoNewPrivileges) != nil {
				r.badLimit(value, "no_new_privileges", "write true or false")
			}
		default:
			r.unknownKey(key, "limits.", limitKeys)
		}
	})
	return out
}

func (r *reader) badLimit(n *yaml.Node, what, hint string) {
	if n.Kind == yaml.ScalarNode {
		r.report(diag.BadLimit, n, "%q is no value for limits.%s", n.Value, what).Hint = hint
		return
	}
	r.report(diag.BadLimit, n, "%s is no value for limits.%s", kindName(n), what).Hint = hint
}

// number reads a number as YAML writes them, as an editor that goes by the schema does:
// 1.0 and 1e9, too.
func number(n *yaml.Node) (v float64, ok bool) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" && n.ShortTag() != "!!float" || strings.Contains(n.Value, "_") {
		return 0, false
	}
	if strings.Trim(n.Value, "0123456789") == "" { // also with zeros before it
		v, err := strconv.ParseFloat(n.Value, 64)
		return v, err == nil
	}
	err := n.Decode(&v)
	return v, err == nil && !math.IsInf(v, 0) && !math.IsNaN(v)
}

// figure reads a number, or a text of some characters that is one.
func figure(n *yaml.Node, characters string) (v float64, ok bool) {
	if v, ok = number(n); ok || n.Kind != yaml.ScalarNode {
		return v, ok
	}
	digits := strings.TrimPrefix(n.Value, "+")
	v, err := strconv.ParseFloat(digits, 64)
	return v, err == nil && strings.Trim(digits, characters) == ""
}

// memory reads bytes, as a number or a text.
func memory(n *yaml.Node) (int64, bool) {
	if v, ok := number(n); ok {
		return int64(v), v >= 1 && v == math.Trunc(v) && v < math.MaxInt64
	}
	if n.Kind != yaml.ScalarNode {
		return 0, false
	}
	return parseMemory(n.Value)
}

// parseMemory reads bytes: a number, with a unit or without. KiB, Ki and k are
// 1024 as with Docker, KB is 1000.
func parseMemory(s string) (int64, bool) {
	digits := strings.TrimRight(s, "KMGTkmgtiBb ")
	v, err := strconv.ParseFloat(digits, 64)
	if err != nil || !(v > 0) || strings.Trim(digits, "0123456789.") != "" {
		return 0, false
	}
	unit := strings.ToUpper(strings.TrimSpace(s[len(digits):]))
	if unit == "" || unit == "B" {
		return int64(v), v == math.Trunc(v) && v < math.MaxInt64
	}
	power := strings.IndexByte("KMGT", unit[0]) + 1
	base := 1024.0
	switch unit[1:] {
	case "", "I", "IB":
	case "B":
		base = 1000
	default:
		return 0, false
	}
	v *= math.Pow(base, float64(power))
	return int64(v), power > 0 && v >= 1 && v < math.MaxInt64
}

func (r *reader) capabilities(n *yaml.Node) *ir.Capabilities {
	out := &ir.Capabilities{}
	r.mapping(n, "limits.capabilities", "capabilities: {drop: [ALL], add: [CHOWN]}", func(key, value *yaml.Node) {
		switch key.Value {
		case "drop":
			out.Drop = r.capabilityList(value, true)
		case "add":
			out.Add = r.capabilityList(value, false)
		default:
			r.unknownKey(key, "limits.capabilities.", capabilityKeys)
		}
	})
	return out
}

func (r *reader) capabilityList(n *yaml.Node, all bool) []string {
	if n.Kind != yaml.SequenceNode {
		r.report(diag.BadLimit, n, "capabilities are a list, not %s", kindName(n)).Hint = "write [CHOWN, SETUID]"
		return nil
	}
	var out []string
	for _, item := range n.Content {
		item = resolve(item)
		name := strings.TrimPrefix(strings.ToUpper(item.Value), "CAP_")
		switch {
		case item.Kind == yaml.ScalarNode && name == "ALL" && all:
			out = append(out, "ALL")
		case item.Kind == yaml.ScalarNode && known(name):
			out = append(out, "CAP_"+name)
		case name == "ALL":
			r.report(diag.BadLimit, item, "ALL cannot be added").Hint = "name the capabilities that are needed"
		default:
			d := r.report(diag.BadLimit, item, "%q is no capability", item.Value)
			if s := diag.Suggest(name, capabilityNames); s != "" {
				d.Hint = "did you mean \"" + s + "\"?"
			}
		}
	}
	return out
}

func known(capability string) bool {
	for _, n := range capabilityNames {
		if n == capability {
			return true
		}
	}
	return false
}
