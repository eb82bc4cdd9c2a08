// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/actplane/actplane/bpf"
)

// gain waits for the next gain that is about a way, and leaves out others.
func (b *bench) gain(way Way, gives bool) Gain {
	b.t.Helper()
	deadline := time.After(10 * time.Second)
	for {
		select {
		case g := <-b.gains:
			if g.Way == way && g.Gives == gives {
				return g
			}
		case <-deadline:
			b.t.Fatalf("no gain of way %d, gives %v", way, gives)
			return Gain{}
		}
	}
}

// Each way by which a label comes to a process is told once, with what it came from; and
// so is what a process that carries it gives it to.
func TestGains(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBench(t, tier, `
source SECRET = file "$D/secret"
source AGENT = exec "agent"
rule stay:
  block write file "$D/kept" if SECRET
  block write file "$D/kept" if AGENT
rule copied:
  notify read file "$D/copy" if SECRET
`)
		secret, kept, copied := b.file("secret"), b.file("kept"), b.dir+"/copy"
		agent := b.script("agent", "exec cat "+kept)
		a := b.actor()
		a.want("ok", "read", secret)
		g := b.gain(BySourceFile, false)
		if g.Object != secret || g.Labels != 1 || g.PID != a.cmd.Process.Pid || g.Inside != g.PID || g.Comm == "" {
			t.Errorf("read: %+v", g)
		}
		if since := time.Since(g.Started); since < 0 || since > time.Minute || g.Time.Before(g.Started) {
			t.Errorf("started %v, gained %v", g.Started, g.Time)
		}
		reader := g.Process
		again := b.actor() // the path's rows are known to the kernel side by now
		again.want("ok", "read", secret)
		if g := b.gain(BySourceFile, false); g.Object != secret || g.Process.ID == reader.ID {
			t.Errorf("read by another: %+v", g)
		}
		// Only once.
		a.want("ok", "read", secret)
		a.want("ok", "write", copied)
		g = b.gain(ByFile, true)
		if g.Object != copied || g.Labels != 1 || g.Process.ID != reader.ID || g.Objects[0] == (FileID{}) {
			t.Errorf("write: %+v", g)
		}
		file := g.Objects[0]
		other := b.actor()
		other.want("ok", "read", copied)
		r := b.record()
		if r.File != file || r.Process.Labels != 1 {
			t.Errorf("record of reading the copy: %+v", r)
		}
		g = b.gain(ByFile, false)
		if g.Object != copied || g.Objects[0] != file || g.Process.ID == reader.ID {
			t.Errorf("read of the copy: %+v", g)
		}
		other.want("EPERM", "write", kept)
		if r := b.record(); r.Carried != 1 || r.Process.ID != g.Process.ID || !r.Started.Equal(g.Started) {
			t.Errorf("record %+v, gain %+v", r, g)
		}

		other.want("EPERM", "fork", "write", kept)
		if r := b.record(); len(r.Parents) != 1 || r.Parents[0].PID != other.cmd.Process.Pid || r.Parents[0].Comm != g.Comm {
			t.Errorf("its parent is %d, above it are %+v", other.cmd.Process.Pid, r.Parents)
		}

		p := b.actor()
		p.want("ok", "run", agent)
		g = b.gain(BySourceExec, false)
		if g.Object != agent || g.Labels != 2 || len(g.Process.Ancestors) == 0 {
			t.Errorf("exec: %+v", g)
		}
	})
}

// Labels that come through a pipe, to a reader that waits, by looking into another
// process, and by writing into one.
func TestGainsOfChannels(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newChannelBench(t, tier)
		from, to := b.connected("stream")
		from.want("ok", "read", b.secret)
		giver := b.gain(BySourceFile, false).Process.ID
		from.want("ok", "putfd", "s")
		given := b.gain(BySocket, true)
		to.want("ok", "get", "s")
		g := b.gain(BySocket, false)
		if given.Process.ID != giver || g.Objects[0] != given.Objects[0] || g.Process.ID == giver {
			t.Errorf("given %+v, gained %+v", given, g)
		}

		from, to = b.connected("stream")
		to.want("ok", "begin", "get", "s")
		to.want("ok", "waits", "s")
		from.want("ok", "read", b.secret)
		giver = b.gain(BySourceFile, false).Process.ID
		from.want("ok", "putfd", "s")
		if g = b.gain(BySharedChannel, true); g.Process.ID != giver || g.Other == 0 || g.Other == giver {
			t.Errorf("a reader that waits: %+v", g)
		}
		to.want("ok", "finish")

		reader, target := b.actor(), b.actor()
		harmless := b.file("harmless")
		for _, a := range []*actor{reader, target} { // until they are there
			a.want("ok", "read", harmless)
		}
		reader.want("ok", "vmread", strconv.Itoa(from.cmd.Process.Pid))
		if g = b.gain(ByLooking, false); g.Other != giver || g.Process.ID == giver {
			t.Errorf("looking: %+v", g)
		}
		from.want("ok", "vmwrite", strconv.Itoa(target.cmd.Process.Pid))
		if g = b.gain(ByLooking, true); g.Process.ID != giver || g.Other == 0 {
			t.Errorf("writing into: %+v", g)
		}
	})
}

// A flood of gains takes no more than its share, and is counted; what is denied
// meanwhile is told.
func TestGainsAreBounded(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newChannelBench(t, tier)
		a := b.actor()
		a.want("ok", "read", b.secret)
		const files = 2000
		folder := filepath.Join(b.dir, "many")
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		go func() {
			for range b.gains { // else their reader would wait
			}
		}()
		defer func() { b.stopRecords(); close(b.gains); b.readRecords() }()
		for i := range files {
			a.want("ok", "write", filepath.Join(folder, strconv.Itoa(i)))
		}
		a.want("EPERM", "write", b.kept)
		b.record()
		stats, err := b.k.Stats(b.slot)
		if err != nil || stats.Lost != 0 {
			t.Errorf("%+v %v", stats, err)
		}
		t.Logf("of %d, %d without a record", files, stats.Unnoted)
	})
}

// What the kernel side sends is taken apart with its sizes checked.
func TestDecodeGain(t *testing.T) {
	raw := bpf.EnforcerOrigin{Kind: recordGain, Way: uint8(ByFile), Labels: 5, Process: 7, Other: 9, ObjectKind: objectPath, ObjectSize: 5}
	for i, c := range "/a\nb\x01" {
		raw.Object[i] = int8(c)
	}
	sample := make([]byte, unsafe.Sizeof(raw))
	if _, err := binary.Encode(sample, binary.NativeEndian, raw); err != nil {
		t.Fatal(err)
	}
	if !isGain(sample) || isGain(nil) {
		t.Error("not known as a gain")
	}
	g, err := decodeGain(sample, time.Time{})
	if err != nil || g.Object != "/a\nb\x01" || g.Way != ByFile || g.Labels != 5 || g.Process.ID != 7 || g.Other != 9 || g.Gives {
		t.Errorf("%+v %v", g, err)
	}
	if _, err := decodeGain(sample[:40], time.Time{}); err == nil || !strings.Contains(err.Error(), "40 bytes") {
		t.Errorf("a short one: %v", err)
	}
	raw.ObjectSize = 60000
	if _, err := binary.Encode(sample, binary.NativeEndian, raw); err != nil {
		t.Fatal(err)
	}
	if g, err = decodeGain(sample, time.Time{}); err != nil || g.Object != "" {
		t.Errorf("a size that cannot be: %+v %v", g, err)
	}
}
