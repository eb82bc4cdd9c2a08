// SPDX-License-Identifier: Apache-2.0

package exposure

import (
	"bufio"
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Device is a device node that a container gets.
type Device struct {
	Path         string
	Block        bool
	Major, Minor int64
	At           string
}

// DeviceRule is one rule of which devices a container may use; of several the later
// one counts. Any stands for all numbers.
type DeviceRule struct {
	Allow        bool
	Type         string // a, b or c; empty is a
	Major, Minor int64
	Access       string // of r, w and m
	At           string
}

// Any is every number.
const Any int64 = -1

// number is a character device: which, or all minor numbers of a driver.
type number struct{ major, minor int64 }

// rawNumbers are character devices that reach memory, disks or other machines' memory,
// with the numbers that Linux gives them for good.
func rawNumbers() map[number]string {
	return map[number]string{
		{1, 1}: "/dev/mem", {1, 2}: "/dev/kmem", {1, 4}: "/dev/port", {1, 11}: "/dev/kmsg", {1, 12}: "/dev/oldmem",
		{10, 144}: "/dev/nvram", {10, 196}: "/dev/vfio/vfio", {10, 231}: "/dev/snapshot", {10, 236}: "/dev/mapper/control", {10, 237}: "/dev/loop-control",
		{21, Any}: "SCSI devices", {90, Any}: "flash memory", {162, Any}: "raw block devices", {202, Any}: "processor registers",
	}
}

// rawDrivers are those of which /proc/devices tells the number.
func rawDrivers() []string {
	return []string{"nvme", "nvme-generic", "bsg", "vfio", "raw", "sg", "mtd", "mei", "ipmidev", "cpu/msr", "megaraid_sas_ioctl"}
}

// parseDevices adds the drivers that this kernel has numbered by itself.
func parseDevices(text []byte) map[number]string {
	known := rawNumbers()
	lines := bufio.NewScanner(bytes.NewReader(text))
	characters := false
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) == 2 && fields[1] == "devices:" {
			characters = fields[0] == "Character"
		}
		if !characters || len(fields) != 2 || !slices.Contains(rawDrivers(), fields[1]) {
			continue
		}
		if major, err := strconv.ParseInt(fields[0], 10, 64); err == nil {
			known[number{major, Any}] = fields[1] + " devices"
		}
	}
	return known
}

// raw names what a device is, if it is one that no container should have.
func (h *Host) raw(block bool, major, minor int64) string {
	if block {
		return "a block device, by which a file system is written without its files being opened"
	}
	for _, n := range []number{{major, minor}, {major, Any}} {
		if name, ok := h.devices[n]; ok {
			return "one of the host's raw devices (" + name + ")"
		}
	}
	return ""
}

func (h *Host) judgeDevices(c *Container) []Finding {
	var found []Finding
	for _, d := range c.Devices {
		if what := h.raw(d.Block, d.Major, d.Minor); what != "" {
			found = append(found, Finding{HostDevices, d.At, fmt.Sprintf("it has the device %q, %s", d.Path, what), "start it without --device " + d.Path})
		}
	}
	for _, rule := range inForce(c.Rules) {
		if what := h.reaches(rule); what != "" {
			found = append(found, Finding{HostDevices, rule.At, fmt.Sprintf("it may use %s (device rule %q)", what, rule), "start it without --privileged or --device-cgroup-rule"})
		}
	}
	return found
}

func (r DeviceRule) String() string {
	figure := func(n int64) string {
		if n == Any {
			return "*"
		}
		return strconv.FormatInt(n, 10)
	}
	return fmt.Sprintf("%s %s:%s %s", r.kind(), figure(r.Major), figure(r.Minor), r.Access)
}

func (r DeviceRule) kind() string {
	if r.Type == "" {
		return "a"
	}
	return r.Type
}

// inForce are the rules that allow and that no later rule takes back. At first all is
// denied.
func inForce(rules []DeviceRule) []DeviceRule {
	var allowed []DeviceRule
	for _, rule := range rules {
		if rule.Allow {
			allowed = append(allowed, rule)
			continue
		}
		allowed = slices.DeleteFunc(allowed, rule.covers)
	}
	return allowed
}

func (r DeviceRule) covers(other DeviceRule) bool {
	within := func(mine, its int64) bool { return mine == Any || mine == its }
	return (r.kind() == "a" || r.kind() == other.kind()) && (r.kind() == "a" || within(r.Major, other.Major) && within(r.Minor, other.Minor)) &&
		strings.Contains(r.Access, "r") && strings.Contains(r.Access, "w")
}

// reaches names what of the raw devices a rule lets a container read or write. To make
// a node alone (m) opens none.
func (h *Host) reaches(rule DeviceRule) string {
	if !strings.ContainsAny(rule.Access, "rw") {
		return ""
	}
	switch rule.kind() {
	case "a":
		return "all devices of the host"
	case "b":
		return "block devices of the host"
	}
	if rule.Major == Any {
		return "character devices of the host, whatever they are"
	}
	var names []string
	for n, name := range h.devices {
		if rule.Major == n.major && (rule.Minor == Any || n.minor == Any || rule.Minor == n.minor) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return "raw devices of the host (" + strings.Join(names, ", ") + ")"
}

// DeviceByName is a device that is not on this machine, as Linux usually numbers it.
func DeviceByName(name string, block bool, at string) Device {
	device := Device{Path: name, Block: block, Major: -1, Minor: -1, At: at}
	for n, known := range rawNumbers() {
		if known == name {
			device.Major, device.Minor = n.major, n.minor
		}
	}
	return device
}
