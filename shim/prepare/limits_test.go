// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"encoding/json"
	"testing"

	"github.com/actplane/actplane/internal/bundle"
	"github.com/actplane/actplane/policy/ir"
)

func TestKeeps(t *testing.T) {
	drop := func(names ...string) bundle.CapabilityFilter { return bundle.CapabilityFilter{Drop: names} }
	allBut := bundle.CapabilityFilter{Drop: []string{"ALL"}, Add: []string{"CHOWN", "CAP_KILL"}}
	for _, test := range []struct {
		filters    []bundle.CapabilityFilter
		capability string
		want       bool
	}{
		{nil, "CAP_SYS_ADMIN", true},
		{[]bundle.CapabilityFilter{drop("NET_RAW")}, "CAP_NET_RAW", false},
		{[]bundle.CapabilityFilter{drop("net_raw")}, "cap_net_raw", false},
		{[]bundle.CapabilityFilter{drop("NET_RAW")}, "CAP_CHOWN", true},
		{[]bundle.CapabilityFilter{drop("ALL")}, "CAP_ANYTHING_NEW", false},
		{[]bundle.CapabilityFilter{allBut}, "CAP_CHOWN", true},
		{[]bundle.CapabilityFilter{allBut}, "CAP_MKNOD", false},
		// A lower layer's add does not bring back what a higher one drops, nor the reverse.
		{[]bundle.CapabilityFilter{drop("CHOWN"), allBut}, "CAP_CHOWN", false},
		{[]bundle.CapabilityFilter{allBut, drop("CHOWN")}, "CAP_CHOWN", false},
		{[]bundle.CapabilityFilter{{Add: []string{"CHOWN"}}}, "CAP_SYS_ADMIN", true},
	} {
		if got := keeps(test.filters, test.capability); got != test.want {
			t.Errorf("%v keeps %s: %v", test.filters, test.capability, got)
		}
	}
}

func TestTighten(t *testing.T) {
	var l limits
	l.tighten(ir.Limits{Pids: 100, Memory: 10})
	l.tighten(ir.Limits{Pids: 200, Memory: 5, CPUs: 2, NoNewPrivileges: true})
	l.tighten(ir.Limits{CPUs: 3})
	if l.pids != 100 || l.memory != 5 || l.cpus != 2 || !l.noNewPrivileges {
		t.Errorf("limits %+v", l)
	}
}

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 1, "512m": 512 << 20, "2GiB": 2 << 30, "1.5 GiB": 3 << 29, "4K": 4096, "1TB": 1e12, "1Ti": 1 << 40, "2kb": 2000, "10b": 10,
		"": 0, "GiB": 0, "-1": 0, "1x": 0, "1GiBi": 0, "NaN": 0, "Inf": 0, "1e30": 0, "0": 0, "0.1": 0, "9999999T": 0,
	} {
		got, err := ParseBytes(text)
		if got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %d, error %v", text, got, err)
		}
	}
}

// Each case is resources before and after limits of 100 processes, 1000 bytes and 2 CPUs.
func TestResources(t *testing.T) {
	all := limits{pids: 100, memory: 1000, cpus: 2}
	for _, test := range []struct {
		name, in, want string
		swap           bool
	}{
		{"nothing", `{}`, `{"cpu":{"period":100000,"quota":200000},"memory":{"limit":1000,"swap":1000},"pids":{"limit":100}}`, true},
		{"no swap", `{}`, `{"cpu":{"period":100000,"quota":200000},"memory":{"limit":1000},"pids":{"limit":100}}`, false},
		{"unlimited", `{"pids":{"limit":0},"memory":{"limit":-1,"swap":-1},"cpu":{"quota":-1}}`,
			`{"cpu":{"period":100000,"quota":200000},"memory":{"limit":1000,"swap":1000},"pids":{"limit":100}}`, true},
		{"stricter", `{"pids":{"limit":1},"memory":{"limit":10,"swap":20},"cpu":{"quota":100,"period":1000}}`,
			`{"cpu":{"quota":100,"period":1000},"memory":{"limit":10,"swap":20},"pids":{"limit":1}}`, true},
		{"stricter memory, more swap", `{"pids":{"limit":1},"memory":{"limit":10,"swap":2000},"cpu":{"quota":1,"period":1000}}`,
			`{"cpu":{"quota":1,"period":1000},"memory":{"limit":10,"swap":1000},"pids":{"limit":1}}`, false},
		{"null", `{"pids":null,"memory":null,"cpu":null,"unified":null}`,
			`{"cpu":{"period":100000,"quota":200000},"memory":{"limit":1000,"swap":1000},"pids":{"limit":100},"unified":null}`, true},
		{"own period", `{"cpu":{"quota":90000,"period":20000,"x":1}}`,
			`{"cpu":{"period":20000,"quota":40000,"x":1},"memory":{"limit":1000,"swap":1000},"pids":{"limit":100}}`, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			root := bundle.Object{}
			if err := json.Unmarshal([]byte(`{"linux":{"resources":`+test.in+`}}`), &root); err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second time changes nothing
				for _, modifier := range all.modifiers(func() bool { return test.swap }) {
					if err := modifier.apply(root); err != nil {
						t.Fatal(err)
					}
				}
			}
			var got, want any
			if err := json.Unmarshal(root["linux"], &got); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(`{"resources":`+test.want+`}`), &want); err != nil {
				t.Fatal(err)
			}
			a, _ := json.Marshal(got)
			b, _ := json.Marshal(want)
			if string(a) != string(b) {
				t.Errorf("got  %s\nwant %s", a, b)
			}
		})
	}
}
