// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/actplane/actplane/internal/bundle"
)

const (
	defaultPeriod = 100_000   // microseconds, the kernel's
	longPeriod    = 1_000_000 // the longest, for small shares
	leastQuota    = 1_000     // the kernel refuses less
)

func resources(name, flags string, edit func(resources bundle.Object) error) modifier {
	return modifier{name, flags, func(root bundle.Object) error {
		return root.Update("linux", func(linux bundle.Object) error {
			return linux.Update("resources", edit)
		})
	}}
}

// lower sets a number to a limit, unless it is lower already. Zero and negative
// numbers stand for no limit.
func lower(object bundle.Object, key string, limit int64) (now int64, err error) {
	var current int64
	if _, err := object.Get(key, &current); err != nil {
		return 0, err
	}
	if current > 0 && current <= limit {
		return current, nil
	}
	return limit, object.Set(key, limit)
}

// unified lowers a raw cgroup v2 setting, which the runtime writes after all
// others; what is not there stays so.
func unified(resources bundle.Object, key string, limit func(string) string) error {
	var settings map[string]string
	if found, err := resources.Get("unified", &settings); err != nil || !found {
		return err
	}
	if value, ok := settings[key]; ok {
		settings[key] = limit(value)
		return resources.Set("unified", settings)
	}
	return nil
}

func atMost(limit int64) func(string) string {
	return func(value string) string {
		if current, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64); err == nil && current >= 0 && current <= limit {
			return value
		}
		return strconv.FormatInt(limit, 10)
	}
}

func limitPids(limit int64) modifier {
	return resources("limit pids", fmt.Sprintf("--pids-limit %d", limit), func(resources bundle.Object) error {
		err := resources.Update("pids", func(pids bundle.Object) error {
			_, err := lower(pids, "limit", limit)
			return err
		})
		if err != nil {
			return err
		}
		return unified(resources, "pids.max", atMost(limit))
	})
}

// limitMemory limits memory and, as far as the host has it, swap: in the spec,
// swap is the sum of both. On a host without swap the kernel may not account for
// it, and the runtime would fail to set it.
func limitMemory(limit int64, swap bool) modifier {
	return resources("limit memory", fmt.Sprintf("--memory %d --memory-swap %[1]d", limit), func(resources bundle.Object) error {
		err := resources.Update("memory", func(memory bundle.Object) error {
			now, err := lower(memory, "limit", limit)
			if err != nil {
				return err
			}
			var sum, reservation int64
			if _, err := memory.Get("swap", &sum); err != nil {
				return err
			}
			if swap || sum > 0 {
				if _, err := lower(memory, "swap", limit); err != nil {
					return err
				}
			}
			if _, err := memory.Get("reservation", &reservation); err != nil {
				return err
			}
			if reservation > now {
				return memory.Set("reservation", now)
			}
			return nil
		})
		if err != nil {
			return err
		}
		if err := unified(resources, "memory.max", atMost(limit)); err != nil {
			return err
		}
		return unified(resources, "memory.swap.max", atMost(0))
	})
}

func limitCPUs(limit float64) modifier {
	return resources("limit cpus", fmt.Sprintf("--cpus %g", limit), func(resources bundle.Object) error {
		err := resources.Update("cpu", func(cpu bundle.Object) error { return limitCPU(cpu, limit) })
		if err != nil {
			return err
		}
		return unified(resources, "cpu.max", rawCPUs(limit))
	})
}

// rawCPUs limits the text of cpu.max.
func rawCPUs(limit float64) func(string) string {
	return func(value string) string {
		words := strings.Fields(value)
		period := int64(defaultPeriod)
		if len(words) == 2 {
			if number, err := strconv.ParseInt(words[1], 10, 64); err == nil && number > 0 {
				period = number
			}
		}
		if len(words) > 0 {
			if quota, err := strconv.ParseInt(words[0], 10, 64); err == nil && float64(quota) <= limit*float64(period) {
				return value
			}
		}
		quota, period := quotaOf(limit, period)
		return fmt.Sprintf("%d %d", quota, period)
	}
}

func limitCPU(cpu bundle.Object, limit float64) error {
	var quota, period, burst int64
	for key, into := range map[string]*int64{"quota": &quota, "period": &period, "burst": &burst} {
		if _, err := cpu.Get(key, into); err != nil {
			return err
		}
	}
	if period <= 0 {
		period = defaultPeriod
	}
	if quota > 0 && float64(quota) <= limit*float64(period) {
		return nil
	}
	quota, period = quotaOf(limit, period)
	if err := cpu.Set("quota", quota); err != nil {
		return err
	}
	if burst > quota {
		if err := cpu.Set("burst", quota); err != nil {
			return err
		}
	}
	return cpu.Set("period", period)
}

func quotaOf(cpus float64, period int64) (int64, int64) {
	quota := int64(math.Floor(cpus * float64(period)))
	if quota < leastQuota {
		period = longPeriod
		quota = max(int64(math.Floor(cpus*float64(period))), leastQuota)
	}
	return quota, period
}
