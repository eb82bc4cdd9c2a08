// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"os"
	"strings"
	"testing"

	"github.com/actplane/actplane/policy/diag"
)

// TestRejected: each case of rejected.txt has a golden file in testdata/diag that
// says what the case is refused with; TestDiagnostics compares it.
func TestRejected(t *testing.T) {
	type golden struct {
		file string
		code diag.Code
	}
	goldens := map[string]golden{
		"mixes-policy-and-domains":      {"p013-mixes-policy-and-domains", diag.Code("P013")},
		"unknown-rule-in-bind":          {"p014-unknown-rule-in-bind", diag.Code("P014")},
		"disable-a-locked-binding":      {"p015-disable-a-locked-binding", diag.Code("P015")},
		"disable-what-is-not-inherited": {"p015-disable-a-locked-binding", diag.Code("P015")},
		"domain-cycle":                  {"p016-domain-cycle", diag.Code("P016")},
		"two-domains-no-default":        {"p017-two-domains-no-default", diag.Code("P017")},
		"empty-rule":                    {"p106-empty-rule", diag.Code("P106")},
		"duplicate-rule-name":           {"p201-duplicate-rule", diag.Code("P201")},
		"exits-on-a-non-exec-event":     {"p204-exits", diag.Code("P204")},
		"since-a-connect":               {"p205-events", diag.Code("P205")},
		"exec-op-with-file-kind":        {"p202-kind", diag.Code("P202")},
		"unknown-key":                   {"p006-unknown-key", diag.Code("P006")},
		"label-never-produced":          {"p301-never-produced", diag.Code("P301")},
		"unterminated-string":           {"p102-string", diag.Code("P102")},
		"bad-cidr":                      {"p209-address", diag.Code("P209")},
		"bad-port-range":                {"p210-port", diag.Code("P210")},
		"too-large":                     {"p401-labels", diag.Code("P401")},
		"yaml-bomb":                     {"p010-bomb", diag.Code("P010")},
		"not-utf8":                      {"p001-not-utf8", diag.Code("P001")},
		"lower-layer-declassifies":      {"p213-lower-layer-declassifies", diag.Code("P213")},
	}
	text, err := os.ReadFile("testdata/conformance/rejected.txt")
	if err != nil {
		t.Fatal(err)
	}
	cases := 0
	for _, line := range strings.Split(string(text), "\n") {
		name, ok := strings.CutPrefix(line, "== ")
		if !ok {
			continue
		}
		cases++
		name = strings.Fields(name)[0]
		g, ok := goldens[name]
		if !ok {
			t.Errorf("%s has no golden file", name)
			continue
		}
		archive, err := os.ReadFile("testdata/diag/" + g.file + ".txtar")
		if err != nil {
			t.Error(err)
			continue
		}
		_, want, _ := strings.Cut(string(archive), "-- want --")
		if !strings.Contains(want, "["+string(g.code)+"]") {
			t.Errorf("%s: %s does not say %s", name, g.file, g.code)
		}
	}
	if cases != len(goldens) {
		t.Errorf("%d cases and %d golden files", cases, len(goldens))
	}
}
