// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/actplane/actplane/internal/bundle"
	"github.com/actplane/actplane/policy/ir"
)

// limits are those of all layers together: of each the strictest. Zero is none.
type limits struct {
	pids            int64
	memory          int64
	cpus            float64
	filters         []bundle.CapabilityFilter // a capability has to pass all
	noNewPrivileges bool
}

func (l *limits) tighten(other ir.Limits) {
	if other.Pids > 0 && (l.pids == 0 || other.Pids < l.pids) {
		l.pids = other.Pids
	}
	if other.Memory > 0 && (l.memory == 0 || other.Memory < l.memory) {
		l.memory = other.Memory
	}
	if other.CPUs > 0 && (l.cpus == 0 || other.CPUs < l.cpus) {
		l.cpus = other.CPUs
	}
	if other.Capabilities != nil {
		l.filters = append(l.filters, bundle.CapabilityFilter{Drop: other.Capabilities.Drop, Add: other.Capabilities.Add})
	}
	l.noNewPrivileges = l.noNewPrivileges || other.NoNewPrivileges
}

// keeps says whether a capability passes all filters.
func keeps(filters []bundle.CapabilityFilter, capability string) bool {
	capability = canonical(capability)
	for _, filter := range filters {
		dropped := false
		for _, name := range filter.Drop {
			dropped = dropped || canonical(name) == capabilityAll || canonical(name) == capability
		}
		for _, name := range filter.Add {
			dropped = dropped && canonical(name) != capability
		}
		if dropped {
			return false
		}
	}
	return true
}

const capabilityAll = "ALL"

// canonical is a capability's name with its prefix.
func canonical(name string) string {
	name = strings.ToUpper(name)
	if name == capabilityAll || strings.HasPrefix(name, "CAP_") {
		return name
	}
	return "CAP_" + name
}

// limitKey is a single limit that a setting can give.
type limitKey struct {
	name string
	set  func(*ir.Limits, string) error
}

func limitKeys() []limitKey {
	return []limitKey{
		{"pids", func(l *ir.Limits, text string) (err error) {
			l.Pids, err = strconv.ParseInt(text, 10, 64)
			if err != nil || l.Pids <= 0 {
				return errors.New("expected a positive number, such as 512")
			}
			return nil
		}},
		{"memory", func(l *ir.Limits, text string) (err error) {
			l.Memory, err = ParseBytes(text)
			return err
		}},
		{"cpus", func(l *ir.Limits, text string) (err error) {
			l.CPUs, err = strconv.ParseFloat(text, 64)
			if err != nil || !(l.CPUs > 0) || l.CPUs > 1<<20 {
				return errors.New("expected a positive number, such as 1.5")
			}
			return nil
		}},
		{"no_new_privileges", func(l *ir.Limits, text string) error {
			if text != "true" && text != "false" {
				return errors.New("expected true or false")
			}
			l.NoNewPrivileges = text == "true"
			return nil
		}},
		{"capabilities.drop", func(l *ir.Limits, text string) (err error) {
			if l.Capabilities == nil {
				l.Capabilities = &ir.Capabilities{}
			}
			l.Capabilities.Drop, err = parseCapabilities(text)
			return err
		}},
		{"capabilities.add", func(l *ir.Limits, text string) (err error) {
			if l.Capabilities == nil {
				l.Capabilities = &ir.Capabilities{}
			}
			l.Capabilities.Add, err = parseCapabilities(text)
			if contains(l.Capabilities.Add, capabilityAll) {
				return errors.New("ALL cannot be added; name the capabilities that are needed")
			}
			return err
		}},
	}
}

func setLimit(l *ir.Limits, name, text string) error {
	for _, key := range limitKeys() {
		if key.name == name {
			if err := key.set(l, strings.TrimSpace(text)); err != nil {
				return fmt.Errorf("%q: %w", printable(text), err)
			}
			return nil
		}
	}
	return errors.New("unknown limit")
}

// ParseBytes reads 2GiB, 512m or 1073741824, as a policy's limits: KB, MB, GB and
// TB are powers of 1000.
func ParseBytes(text string) (int64, error) {
	number := strings.TrimRight(text, "kKmMgGtTiIbB ")
	unit := strings.ToLower(strings.TrimSpace(text[len(number):]))
	base := 1024.0
	switch {
	case unit == "b" || strings.HasSuffix(unit, "ib"):
		unit = strings.TrimSuffix(strings.TrimSuffix(unit, "b"), "i")
	case strings.HasSuffix(unit, "b"):
		unit, base = strings.TrimSuffix(unit, "b"), 1000
	default:
		unit = strings.TrimSuffix(unit, "i")
	}
	power := slices.Index([]string{"", "k", "m", "g", "t"}, unit)
	value, err := strconv.ParseFloat(number, 64)
	if err != nil || power < 0 || !(value > 0) {
		return 0, errors.New("expected a size, such as 512MiB or 2GiB")
	}
	value *= math.Pow(base, float64(power))
	if value < 1 || value >= math.MaxInt64 {
		return 0, errors.New("the size is out of range")
	}
	return int64(value), nil
}

func parseCapabilities(text string) ([]string, error) {
	var list []string
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		name := canonical(word)
		if known := capabilities(); !contains(known, name) {
			return nil, fmt.Errorf("unknown capability %q%s", word, didYouMean(name, known))
		}
		list = append(list, name)
	}
	return list, nil
}

// capabilities are those of Linux up to 6.x, by number, and ALL.
func capabilities() []string {
	return append(strings.Fields(`
		CAP_CHOWN CAP_DAC_OVERRIDE CAP_DAC_READ_SEARCH CAP_FOWNER CAP_FSETID CAP_KILL
		CAP_SETGID CAP_SETUID CAP_SETPCAP CAP_LINUX_IMMUTABLE CAP_NET_BIND_SERVICE
		CAP_NET_BROADCAST CAP_NET_ADMIN CAP_NET_RAW CAP_IPC_LOCK CAP_IPC_OWNER
		CAP_SYS_MODULE CAP_SYS_RAWIO CAP_SYS_CHROOT CAP_SYS_PTRACE CAP_SYS_PACCT
		CAP_SYS_ADMIN CAP_SYS_BOOT CAP_SYS_NICE CAP_SYS_RESOURCE CAP_SYS_TIME
		CAP_SYS_TTY_CONFIG CAP_MKNOD CAP_LEASE CAP_AUDIT_WRITE CAP_AUDIT_CONTROL
		CAP_SETFCAP CAP_MAC_OVERRIDE CAP_MAC_ADMIN CAP_SYSLOG CAP_WAKE_ALARM
		CAP_BLOCK_SUSPEND CAP_AUDIT_READ CAP_PERFMON CAP_BPF CAP_CHECKPOINT_RESTORE`), capabilityAll)
}
