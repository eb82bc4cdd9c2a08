// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/actplane/actplane/internal/bundle"
)

func TestLimitUpdate(t *testing.T) {
	limits := bundle.Limits{Pids: 100, Memory: 1000, CPUs: 0.5}
	for in, want := range map[string]string{
		`{}`: `{}`,
		`{"cpu":{"cpus":"0-1","shares":2},"blockIO":{"weight":5},"unified":{"memory.high":"9"}}`: `{"blockIO":{"weight":5},"cpu":{"cpus":"0-1","shares":2},"unified":{"memory.high":"9"}}`,
		// Zero is what stays as it is, but of pids to some runtimes no limit.
		`{"memory":{"limit":0,"swap":0},"pids":{"limit":0},"cpu":{"quota":0,"period":0}}`: `{"cpu":{"quota":0,"period":0},"memory":{"limit":0,"swap":0},"pids":{"limit":100}}`,
		`{"pids":{},"memory":null}`: `{"memory":null,"pids":{}}`,
		`{"memory":{"limit":900,"swap":1000,"reservation":5},"pids":{"limit":100},"cpu":{"quota":50000,"period":100000}}`: `{"cpu":{"quota":50000,"period":100000},"memory":{"limit":900,"swap":1000,"reservation":5},"pids":{"limit":100}}`,
		`{"memory":{"limit":1001,"swap":-1,"reservation":2000},"pids":{"limit":-1}}`:                                      `{"memory":{"limit":1000,"reservation":1000,"swap":1000},"pids":{"limit":100}}`,
		`{"cpu":{"quota":-1,"period":100000}}`:                                                                            `{"cpu":{"period":100000,"quota":50000}}`,
		`{"cpu":{"quota":60000,"period":100000}}`:                                                                         `{"cpu":{"period":100000,"quota":50000}}`,
		`{"cpu":{"quota":60000}}`:                                                                                         `{"cpu":{"period":100000,"quota":50000}}`,
		`{"cpu":{"quota":20000}}`:                                                                                         `{"cpu":{"period":100000,"quota":20000}}`, // not of a shorter period
		`{"cpu":{"period":10000}}`:                                                                                        `{"cpu":{"period":10000,"quota":5000}}`,
		`{"cpu":{"quota":99,"burst":7,"period":10}}`:                                                                      `{"cpu":{"burst":7,"period":1000000,"quota":500000}}`,
		`{"unified":{"memory.max":"max","pids.max":"max"}}`:                                                               `{"unified":{"memory.max":"1000","pids.max":"100"}}`,
		`{"unified":{"memory.max":"7","pids.max":"7","cpu.max":"5 1000","memory.swap.max":"0"}}`:                          `{"unified":{"memory.max":"7","pids.max":"7","cpu.max":"5 1000","memory.swap.max":"0"}}`,
		`{"unified":{"cpu.max":"max 1000","memory.swap.max":"1"}}`:                                                        `{"unified":{"cpu.max":"500000 1000000","memory.swap.max":"0"}}`,
	} {
		var resources bundle.Object
		if err := json.Unmarshal([]byte(in), &resources); err != nil {
			t.Fatal(err)
		}
		for _, run := range []string{"first", "second"} {
			if err := LimitUpdate(resources, limits); err != nil {
				t.Errorf("%s: %v", in, err)
			}
			if got, _ := json.Marshal(resources); !equalJSON(t, string(got), want) {
				t.Errorf("%s, %s run: %s instead of %s", in, run, got, want)
			}
		}
		var free bundle.Object
		json.Unmarshal([]byte(in), &free)
		if err := LimitUpdate(free, bundle.Limits{}); err != nil {
			t.Error(err)
		}
		if got, _ := json.Marshal(free); !equalJSON(t, string(got), in) {
			t.Errorf("%s: without limits %s", in, got)
		}
	}
	for in, want := range map[string]string{
		`{"memory":{"Limit":5000}}`:      "ambiguous key",
		`{"Pids":{"limit":5000}}`:        "ambiguous key",
		`{"cpu":{"quota":"many"}}`:       "quota",
		`{"unified":{"pids.max":5}}`:     "unified",
		`{"memory":{"limit":1e30}}`:      "limit",
		`{"memory":[]}`:                  "memory",
		`{"cpu":{"quota":1,"Period":1}}`: "ambiguous key",
	} {
		var resources bundle.Object
		if err := json.Unmarshal([]byte(in), &resources); err != nil {
			t.Fatal(err)
		}
		if err := LimitUpdate(resources, limits); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", in, err)
		}
	}
}

func equalJSON(t *testing.T, a, b string) bool {
	t.Helper()
	normal := func(text string) string {
		var value any
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			t.Fatal(err)
		}
		data, _ := json.Marshal(value)
		return string(data)
	}
	return normal(a) == normal(b)
}
