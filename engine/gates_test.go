// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/policy/ir"
)

// move is what a process does to gates.
func move(id kernel.ProcessID, at int, kind kernel.GateMove, gates uint64, comm, object string, status uint32) kernel.Gain {
	g := act(id, at, kernel.Gain{Comm: comm, Object: object, Gate: kind, Status: status})
	g.Labels = gates
	return g
}

func gateScope(t *testing.T, gains ...kernel.Gain) *scope {
	s := testScope(t, gains...)
	s.program.Gates = []ir.Gate{{Exit: 0, Text: `after exec "make" exits 0 since write "**/*.py"`}, {Exit: -1, Text: `after exec "check"`}}
	return s
}

// A condition that did not excuse is told with what made it hold last and what ended that.
func TestGateOrigins(t *testing.T) {
	opened := move(41, 1, kernel.GateOpened, 3, "make", "", 0)
	staled := move(55, 4, kernel.GateStaled, 1, "python3", "/w/a.py", 0)
	for _, test := range []struct {
		name  string
		gains []kernel.Gain
		want  string
	}{
		{"never", nil, ""},
		{"of another", []kernel.Gain{move(41, 1, kernel.GateOpened, 2, "check", "", 0)}, ""},
		{"ended", []kernel.Gain{opened, staled},
			`"make" (pid 41) ended with status 0 at 10:02:01Z, and it held; "python3" (pid 55) ended that with "/w/a.py" at 10:02:04Z`},
		{"by itself", []kernel.Gain{opened, move(9, 4, kernel.GateStaled, 1, "vi", "", 0)},
			`"make" (pid 41) ended with status 0 at 10:02:01Z, and it held; this process ended that at 10:02:04Z`},
		{"missed", []kernel.Gain{move(41, 3, kernel.GateMissed, 1, "make", "", 2<<8)}, `"make" (pid 41) ended with status 2 at 10:02:03Z, which is not what it asks for`},
		{"killed", []kernel.Gain{move(41, 3, kernel.GateMissed, 1, "make", "", 9)}, `"make" (pid 41) was ended by signal 9 at 10:02:03Z, which is not what it asks for`},
		{"late", []kernel.Gain{staled, move(41, 5, kernel.GateLate, 1, "make", "", 0)},
			`"make" (pid 41) ended with status 0 at 10:02:05Z, and what it depends on had been changed meanwhile`},
		{"closed", []kernel.Gain{opened, move(60, 5, kernel.GateClosed, 1, "gdb", "", 0)},
			`"make" (pid 41) ended with status 0 at 10:02:01Z, and it held; "gdb" (pid 60) changed or traced what had done that at 10:02:05Z`},
		{"lost", []kernel.Gain{staled, move(41, 5, kernel.GateOpened, 1, "make", "", 0)},
			`"make" (pid 41) ended with status 0 at 10:02:05Z, and it held; what ended that was not recorded`},
		{"later", []kernel.Gain{opened, staled, move(41, 20, kernel.GateMissed, 1, "make", "", 256)},
			`"make" (pid 41) ended with status 0 at 10:02:01Z, and it held; "python3" (pid 55) ended that with "/w/a.py" at 10:02:04Z`},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := gateScope(t, test.gains...)
			rec := denied(9, 10)
			got := ""
			for _, origin := range s.gateOrigins(rec, ir.Clause{Unless: ir.Unless{Gates: []int{0}}}) {
				if origin.Gate != s.program.Gates[0].Text || origin.Label != "" {
					t.Errorf("%+v", origin)
				}
				got += origin.Text(rec.Time, false)
			}
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			again, err := loadProvenance(strings.TrimSuffix(s.provenance.journal.path, "/provenance.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			s.provenance = again
			if origins := s.gateOrigins(rec, ir.Clause{Unless: ir.Unless{Gates: []int{0}}}); len(origins) > 0 && origins[0].Text(rec.Time, false) != got {
				t.Errorf("after a restart %+v", origins)
			}
		})
	}
}

// A flood of what one kind of program does leaves what is known of gates, and of labels.
func TestGatesStayKnown(t *testing.T) {
	s := gateScope(t, readSecret(4, 0), move(41, 1, kernel.GateOpened, 1, "make", "", 0))
	for i := range 3 * maxPassages {
		if err := s.provenance.add(move(kernel.ProcessID(100+i), 2, kernel.GateMissed, 2, "x", fmt.Sprint(i), 256)); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.provenance.list()); n > maxPassages {
		t.Errorf("%d passages", n)
	}
	both := s.gateOrigins(denied(9, 10), ir.Clause{Unless: ir.Unless{Gates: []int{0, 1, 7}}})
	if len(both) != 2 || both[0].Steps[0].Program != "make" || both[1].Steps[0].Program != "x" {
		t.Errorf("%+v", both)
	}
	if origins := s.origins(denied(4, 9), 2); len(origins) != 1 || len(origins[0].Steps) == 0 {
		t.Errorf("%+v", origins)
	}
	// Gates of an earlier start are another policy's, perhaps.
	p, err := newProvenance(t.TempDir(), s.provenance.list())
	if err != nil || len(p.gates) != 0 {
		t.Errorf("%v, %v", p.gates, err)
	}
}

// In the picture a condition that does not hold is a thing of its own.
func TestGateGraph(t *testing.T) {
	s := gateScope(t, move(41, 1, kernel.GateOpened, 1, "make", "", 0), move(55, 4, kernel.GateStaled, 1, "python3", "/w/a.py", 0))
	rec := denied(9, 10)
	item := s.item(rec)
	item.Origins = s.gateOrigins(rec, ir.Clause{Unless: ir.Unless{Gates: []int{0}}})
	g := newGraph()
	g.draw(item)
	var lines []string
	for _, line := range g.lines {
		lines = append(lines, line.From+" -"+line.Way+"> "+line.To)
	}
	gate := "gate:" + s.program.Gates[0].Text
	want := []string{"process:41 -opened> " + gate, "process:55 -> file:/w/a.py", "file:/w/a.py -staled> " + gate, gate + " -> event"}
	if strings.Join(lines, "\n") != strings.Join(want, "\n") {
		t.Errorf("got  %q\nwant %q", lines, want)
	}
}
