// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/policy/ir"
)

// second is a time of day.
func second(n int) time.Time { return time.Date(2026, 3, 1, 10, 2, n, 0, time.UTC) }

var (
	envFile  = kernel.FileID{Device: 40, Inode: 7}
	copyFile = kernel.FileID{Device: 40, Inode: 8}
	thePipe  = kernel.FileID{Device: 12, Inode: 99}
)

// act is a gain of process id, called cat.
func act(id kernel.ProcessID, at int, g kernel.Gain) kernel.Gain {
	g.Process.ID, g.Time, g.Started = id, second(at), second(0)
	g.PID, g.Inside, g.Labels = 1000+int(id), int(id), 2
	if g.Comm == "" {
		g.Comm = "cat"
	}
	return g
}

func readSecret(id kernel.ProcessID, at int) kernel.Gain {
	return act(id, at, kernel.Gain{Way: kernel.BySourceFile, Object: "/src/.env", Objects: [2]kernel.FileID{envFile}})
}

// denied is a record of process id that carries SECRET.
func denied(id kernel.ProcessID, at int, ancestors ...kernel.ProcessID) kernel.Record {
	return kernel.Record{
		Op: ir.Connect, Object: "1.2.3.4:443", Time: second(at), Started: second(at), Comm: "curl", PID: 1000 + int(id),
		Process: kernel.Process{ID: id, Ancestors: ancestors, Labels: 2}, Carried: 2,
	}
}

func testScope(t *testing.T, gains ...kernel.Gain) *scope {
	t.Helper()
	p, err := newProvenance(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range gains {
		if err := p.add(g); err != nil {
			t.Fatal(err)
		}
	}
	return &scope{program: &ir.Program{Labels: []ir.Label{{Name: "AGENT"}, {Name: "SECRET"}}}, provenance: p}
}

func TestOrigins(t *testing.T) {
	const read = `"cat" (pid 4) read "/src/.env", a source of it, at 10:02:03Z`
	wrote := act(4, 4, kernel.Gain{Gives: true, Way: kernel.ByFile, Object: "/tmp/copy", Objects: [2]kernel.FileID{copyFile}})
	readCopy := act(5, 5, kernel.Gain{Way: kernel.ByFile, Object: "/tmp/copy", Objects: [2]kernel.FileID{copyFile}, Comm: "sort"})
	inPipe := act(4, 4, kernel.Gain{Gives: true, Way: kernel.ByPipe, Objects: [2]kernel.FileID{thePipe}})
	fromPipe := act(5, 5, kernel.Gain{Way: kernel.ByPipe, Objects: [2]kernel.FileID{thePipe}, Comm: "python3"})
	opening := denied(6, 9)
	opening.Op, opening.Object, opening.Carried, opening.File = ir.Read, "/tmp/copy", 0, copyFile
	source := opening
	source.Object, source.File, source.Sources = "/src/.env", envFile, 2
	orphan := act(5, 5, kernel.Gain{Way: kernel.ByPipe, Objects: [2]kernel.FileID{thePipe}})
	late := readSecret(1, 8)
	child := denied(6, 9, 1)
	child.Started = second(5)
	for _, test := range []struct {
		name  string
		gains []kernel.Gain
		rec   kernel.Record
		want  string
	}{
		{"nothing is recorded", nil, denied(6, 9, 5, 4), "how the process came by it was not recorded"},
		{"it has read it itself", []kernel.Gain{readSecret(6, 3)}, denied(6, 9), `this process read "/src/.env", a source of it, at 10:02:03Z`},
		{"an ancestor has", []kernel.Gain{readSecret(4, 3)}, denied(6, 9, 5, 4, 1), read + "; this process descends from that one"},
		{"a file in between", []kernel.Gain{readSecret(4, 3), wrote, readCopy}, denied(5, 9),
			read + `; "cat" (pid 4) wrote "/tmp/copy" at 10:02:04Z; this process read "/tmp/copy" at 10:02:05Z`},
		{"a pipe in between", []kernel.Gain{readSecret(4, 3), inPipe, fromPipe}, denied(6, 9, 5),
			read + `; "python3" (pid 5) got it through a pipe at 10:02:05Z; this process descends from that one`},
		{"by exec, of an ancestor's ancestor", []kernel.Gain{
			act(2, 0, kernel.Gain{Way: kernel.BySourceExec, Object: "/usr/bin/claude", Comm: "claude"}),
			func() kernel.Gain { g := inPipe; g.Process.Ancestors = []kernel.ProcessID{3, 2}; return g }(), fromPipe,
		}, denied(5, 9), `"claude" (pid 2) ran "/usr/bin/claude", a source of it, at 10:02:00Z; "cat" (pid 4) descends from that one; this process got it through a pipe at 10:02:05Z`},
		{"while it was waiting", []kernel.Gain{readSecret(4, 3), act(4, 4, kernel.Gain{Gives: true, Way: kernel.BySharedChannel, Other: 6})}, denied(6, 9),
			read + "; this process got it through what it was reading at 10:02:04Z"},
		{"it looked into another", []kernel.Gain{readSecret(4, 3), act(6, 4, kernel.Gain{Way: kernel.ByLooking, Other: 4})}, denied(6, 9),
			read + "; this process got it by looking into another process at 10:02:04Z"},
		{"another wrote into it", []kernel.Gain{readSecret(4, 3), act(4, 4, kernel.Gain{Gives: true, Way: kernel.ByLooking, Other: 6})}, denied(6, 9),
			read + "; this process got it when another process wrote into its memory at 10:02:04Z"},
		{"the operation brings it", []kernel.Gain{readSecret(4, 3), wrote}, opening, read + `; "cat" (pid 4) wrote "/tmp/copy" at 10:02:04Z; "/tmp/copy" carries it`},
		{"the operation names a source", nil, source, `"/src/.env" is a source of it`},
		{"a file has it by another name", []kernel.Gain{
			act(4, 3, kernel.Gain{Gives: true, Way: kernel.BySourceFile, Objects: [2]kernel.FileID{copyFile}}), readCopy,
		}, denied(5, 9), `the file has it by a name that is a source of it; this process read "/tmp/copy" at 10:02:05Z`},
		{"who filled the pipe is not recorded", []kernel.Gain{orphan}, denied(5, 9),
			"this process got it through a pipe at 10:02:05Z (how it came there was not recorded)"},
		{"what came later does not count", []kernel.Gain{readSecret(6, 3), readSecret(6, 20)}, denied(6, 9), `this process read "/src/.env", a source of it, at 10:02:03Z`},
		{"what an ancestor read after the fork does not", []kernel.Gain{late}, child, "how the process came by it was not recorded"},
		{"another label does not", []kernel.Gain{func() kernel.Gain { g := readSecret(6, 3); g.Labels = 1; return g }()}, denied(6, 9),
			"how the process came by it was not recorded"},
		{"in a circle", []kernel.Gain{
			act(5, 4, kernel.Gain{Gives: true, Way: kernel.BySharedMemory, Other: 6}), act(6, 4, kernel.Gain{Gives: true, Way: kernel.BySharedMemory, Other: 5}),
		}, denied(6, 9), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := testScope(t, test.gains...)
			origins := s.origins(test.rec, 2)
			if len(origins) != 1 || origins[0].Label != "SECRET" {
				t.Fatalf("%+v", origins)
			}
			if got := origins[0].Text(test.rec.Time, false); got != test.want && test.want != "" {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			if n := len(origins[0].Steps); n > maxSteps {
				t.Errorf("%d steps", n)
			}
			// The next daemon says the same.
			loaded, err := loadProvenance(strings.TrimSuffix(s.provenance.journal.path, "/provenance.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			s.provenance = loaded
			if again := s.origins(test.rec, 2); fmt.Sprint(again) != fmt.Sprint(origins) {
				t.Errorf("after a restart %+v, before %+v", again, origins)
			}
		})
	}
}

// A flood of one kind leaves what else is known, and all of it is bounded.
func TestProvenanceIsBounded(t *testing.T) {
	s := testScope(t, readSecret(4, 3), act(4, 4, kernel.Gain{Gives: true, Way: kernel.ByFile, Object: "/tmp/copy", Objects: [2]kernel.FileID{copyFile}}))
	for i := range 5 * maxPassages {
		g := readSecret(kernel.ProcessID(1000+i), 5)
		g.Object, g.Objects[0].Inode = "/src/other/.env", 1000
		if i%2 == 0 { // and one that writes everywhere
			g = act(7, 5, kernel.Gain{Gives: true, Way: kernel.ByFile, Object: fmt.Sprint("/out/", i), Objects: [2]kernel.FileID{{Inode: uint64(i)}}})
		}
		if err := s.provenance.add(g); err != nil {
			t.Fatal(err)
		}
		if n := len(s.provenance.list()); n > maxPassages {
			t.Fatalf("%d passages", n)
		}
	}
	got := s.origins(denied(6, 9, 4), 2)[0].Text(second(9), false)
	if want := `"cat" (pid 4) read "/src/.env", a source of it, at 10:02:03Z; this process descends from that one`; got != want {
		t.Errorf("got %s", got)
	}
	if info, err := os.Stat(s.provenance.journal.path); err != nil || info.Size() > maxProvenanceFile {
		t.Errorf("%v %v", info, err)
	}
}

// What a file got in an earlier start of the container is told of it, and of no other
// file that has its number by now; what processes did then is forgotten.
func TestProvenanceOfEarlierStarts(t *testing.T) {
	old := testScope(t, readSecret(4, 3), act(4, 4, kernel.Gain{Gives: true, Way: kernel.ByFile, Object: "/tmp/copy", Objects: [2]kernel.FileID{copyFile}}))
	p, err := newProvenance(t.TempDir(), old.provenance.list())
	if err != nil {
		t.Fatal(err)
	}
	old.provenance = p
	moved := kernel.FileID{Device: 41, Inode: copyFile.Inode}
	for object, want := range map[string]string{
		"/tmp/copy": `"cat" (pid 4) wrote "/tmp/copy" at 10:02:04Z, in an earlier start of the container (how it came there was not recorded); this process read "/tmp/copy" at 10:02:05Z`,
		"/tmp/new":  `this process read "/tmp/new" at 10:02:05Z (how it came there was not recorded)`,
	} {
		if err := p.add(act(4, 5, kernel.Gain{Way: kernel.ByFile, Object: object, Objects: [2]kernel.FileID{moved}})); err != nil {
			t.Fatal(err)
		}
		if got := old.origins(denied(4, 9), 2)[0].Text(second(9), false); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// From the kernel's records to the API: a chain in the event, and as a graph; over a
// restart of the daemon.
func TestChainOfAnEvent(t *testing.T) {
	m := newMachine(t)
	_, client, stop := m.start()
	m.container("c", 100)
	m.prepare(client, "c")
	m.attach(client, "c", 100)
	slot := kernel.Slot{Index: 1, Generation: 7}
	for _, g := range []kernel.Gain{
		readSecret(4, 3),
		act(4, 4, kernel.Gain{Gives: true, Way: kernel.ByPipe, Objects: [2]kernel.FileID{thePipe}}),
		act(9, 5, kernel.Gain{Way: kernel.ByPipe, Objects: [2]kernel.FileID{thePipe}, Comm: "\x1b[2J\xff"}),
	} {
		g.Slot = slot
		m.kernel.gains <- g
	}
	stop()
	_, client, _ = m.start()
	m.kernel.records <- kernel.Record{
		Slot: slot, Time: second(9), Effect: ir.Block, Op: ir.Exec, Clause: 1, Object: "/usr/bin/git", PID: 1009, Comm: "git",
		Process: kernel.Process{ID: 9, Labels: 3}, Carried: 3,
		Parents: []kernel.Parent{{PID: 1008, Inside: 8, Comm: "sh"}},
	}
	e := waitEvents(t, client, "c", 1)[0]
	if len(e.Parents) != 1 || e.Parents[0].Program != "sh" || e.Parents[0].Pid != 1008 || e.Parents[0].PidInside != 8 {
		t.Errorf("parents %v", e.Parents)
	}
	if len(e.Chain) != 1 || e.Chain[0].Label != "SECRET" || len(e.Chain[0].Steps) != 2 {
		t.Fatalf("chain %v", e.Chain)
	}
	if first := e.Chain[0].Steps[0]; first.Way != "read" || !first.Source || first.Object != "/src/.env" || first.Pid != 1004 || first.PidInside != 4 || first.TimeUnixMs != second(3).UnixMilli() {
		t.Errorf("first step %v", first)
	}
	if last := e.Chain[0].Steps[1]; last.Way != "pipe" || !last.Self || last.Program != "\x1b[2J\uFFFD" {
		t.Errorf("last step %v", last)
	}
	g, err := client.Provenance(context.Background(), &api.ProvenanceRequest{Scope: "c", Sequence: e.Sequence})
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]*api.Node{}
	var kinds []string
	for _, node := range g.Nodes {
		names[node.Id] = node
		kinds = append(kinds, node.Kind)
	}
	var lines []string
	for _, edge := range g.Edges {
		lines = append(lines, names[edge.From].Kind+">"+names[edge.To].Kind)
		if edge.Label != "SECRET" {
			t.Errorf("edge %v", edge)
		}
	}
	if want := "file>process process>channel channel>process process>event"; strings.Join(lines, " ") != want {
		t.Errorf("edges %v between %v", lines, kinds)
	}
	for word, number := range map[string]uint64{"c": 99, "": 1, "x": 1} {
		if _, err := client.Provenance(context.Background(), &api.ProvenanceRequest{Scope: word, Sequence: number}); err == nil {
			t.Errorf("%q %d: no error", word, number)
		}
	}
}
