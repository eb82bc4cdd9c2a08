// SPDX-License-Identifier: Apache-2.0

package prepare

import "github.com/actplane/actplane/internal/bundle"

// LimitUpdate lowers the resources that an update of a container asks for to the limits of
// its policy, as those that it was created with. What is not asked for stays as it is.
func LimitUpdate(resources bundle.Object, limits bundle.Limits) error {
	if limits.Pids > 0 {
		if err := updatePids(resources, limits.Pids); err != nil {
			return err
		}
	}
	if limits.Memory > 0 {
		if err := updateMemory(resources, limits.Memory); err != nil {
			return err
		}
	}
	if limits.CPUs > 0 {
		return updateCPUs(resources, limits.CPUs)
	}
	return nil
}

// updatePids takes zero for no limit, which it is to some runtimes.
func updatePids(resources bundle.Object, limit int64) error {
	err := resources.Update("pids", func(pids bundle.Object) error {
		if _, asked := pids["limit"]; !asked {
			return nil
		}
		_, err := lower(pids, "limit", limit)
		return err
	})
	if err != nil {
		return err
	}
	return unified(resources, "pids.max", atMost(limit))
}

func updateMemory(resources bundle.Object, limit int64) error {
	err := resources.Update("memory", func(memory bundle.Object) error {
		for _, key := range []string{"limit", "swap", "reservation"} {
			var asked int64
			if _, err := memory.Get(key, &asked); err != nil {
				return err
			}
			if asked == 0 {
				continue // stays as it is
			}
			if _, err := lower(memory, key, limit); err != nil {
				return err
			}
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
}

// updateCPUs writes quota and period together: one of them alone would go with one that
// is not known here.
func updateCPUs(resources bundle.Object, limit float64) error {
	err := resources.Update("cpu", func(cpu bundle.Object) error {
		var quota, period int64
		for key, into := range map[string]*int64{"quota": &quota, "period": &period} {
			if _, err := cpu.Get(key, into); err != nil {
				return err
			}
		}
		if quota == 0 && period == 0 {
			return nil
		}
		if err := limitCPU(cpu, limit); err != nil || period != 0 {
			return err
		}
		_, err := cpu.Get("period", &period)
		if err != nil || period != 0 {
			return err
		}
		return cpu.Set("period", int64(defaultPeriod))
	})
	if err != nil {
		return err
	}
	return unified(resources, "cpu.max", rawCPUs(limit))
}
