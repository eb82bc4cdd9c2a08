// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// What splice, tee and sendfile put into a pipe has the labels of where it comes from: of
// a socket, of a pipe, and of a file that was opened before it had them; also when it
// comes only after they have begun to wait for it.
func TestPassedIntoPipes(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newChannelBench(t, tier)
		for _, c := range []struct{ from, by string }{
			{"socket", "splice"}, {"socket", "sendfile"}, {"file", "splice"}, {"file", "sendfile"}, {"pipe", "splice"}, {"pipe", "tee"},
		} {
			for _, late := range []bool{false, true} {
				if late && c.from == "file" {
					continue // nobody waits for a file
				}
				b.passed(c.from, c.by, late)
			}
		}
	})
}

// passed has an actor pass on what another one writes, into a pipe that a third one reads.
func (b *channelBench) passed(source, by string, late bool) {
	b.t.Helper()
	how := by + " from a " + source
	if late {
		how += " that waits"
	}
	from, passes, to, other := b.actor(), b.actor(), b.actor(), b.actor()
	put, get := "s", "s"
	switch source {
	case "socket":
		from, passes = b.connected("stream")
	case "pipe":
		put, get = "w", "r"
		b.fifo(from, passes)
	case "file":
		path := b.file("passed-" + by)
		from.want("ok", "openfd", "s", path, "w")
		passes.want("ok", "openfd", "s", path, "r")
	}
	b.fifo(passes, to)
	step := []string{by, get, "w"}
	if by == "sendfile" {
		step = []string{by, "w", get}
	}
	from.want("ok", "putfd", put)
	passes.want("ok", step...)
	to.want("ok", "get", "r")
	b.clean(to, how+", clean data")
	if late {
		passes.want("ok", "get", get) // the rest
	}
	if late {
		passes.want("ok", append([]string{"begin"}, step...)...)
		passes.want("ok", "passing")
		from.want("ok", "read", b.secret)
		from.want("ok", "putfd", put)
		passes.want("ok", "finish")
	} else {
		from.want("ok", "read", b.secret)
		from.want("ok", "putfd", put)
		passes.want("ok", step...)
	}
	to.want("ok", "get", "r")
	b.labelled(to, how)
	b.clean(other, how)
}

// What a process learns after it has passed something on is not in the pipe.
func TestPassedOn(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newChannelBench(t, tier)
		for _, step := range [][]string{{"splice", "s", "w"}, {"sendfile", "w", "s"}, {"splice", "q", "w"}, {"tee", "q", "w"}} {
			from, passes := b.connected("stream")
			to := b.actor()
			b.fifo(passes, to)
			passes.want("ok", "pipe", "q", "p")
			passes.want("ok", "putfd", "p")
			from.want("ok", "putfd", "s")
			passes.want("ok", "begin", step[0], step[1], step[2]) // in a thread of its own
			passes.want("ok", "finish")
			passes.want("ok", "read", b.secret)
			to.want("ok", "get", "r")
			b.clean(to, step[0])
			b.labelled(passes, step[0])
		}
	})
}

// What is put into a pipe without a copy can be changed afterwards.
func TestLentPages(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newChannelBench(t, tier)
		other := b.actor()
		for _, by := range []string{"vmsplice", "vmsplice32"} {
			from, to := b.actor(), b.actor()
			b.fifo(from, to)
			from.want("ok", by, "w")
			to.want("ok", "get", "r")
			b.clean(to, by+" of clean data")
			from.want("ok", by, "w")
			from.want("ok", "read", b.secret)
			b.clean(to, by+", before it has read")
			to.want("ok", "get", "r")
			b.labelled(to, by+" before the label came")
		}
		b.clean(other, "another process")
	})
}

// A socket sends no pages that can be changed later.
func TestZeroCopy(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newChannelBench(t, tier)
		from, _ := b.tcp()
		from.want("EPERM", "zerocopy", "s")
		from.want("EPERM", "sendzerocopy", "s")
		from.want("ok", "putfd", "s")
	})
	tiers(t, func(t *testing.T, tier Tier) {
		b := &channelBench{bench: newBench(t, tier, "rule r:\n  block send \"127.0.0.9\"\n")}
		from, _ := b.tcp()
		from.want("ok", "zerocopy", "s")
		from.want("ok", "sendzerocopy", "s")
	})
}

// tcp returns two actors with a connection between them, called s by both.
func (b *channelBench) tcp() (from, to *actor) {
	b.t.Helper()
	port, err := freePort()
	if err != nil {
		b.t.Fatal(err)
	}
	from, to = b.actor(), b.actor()
	from.want("ok", "serve", "l", "tcp", "127.0.0.1:"+port)
	to.want("ok", "reach", "s", "tcp", "127.0.0.1:"+port)
	from.want("ok", "accept", "s", "l")
	return from, to
}

// TCP_ZEROCOPY_RECEIVE takes data from a socket by asking for an option.
func TestZeroCopyReceive(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newChannelBench(t, tier)
		from, to := b.tcp()
		other, clean := b.tcp()
		other.want("ok", "putfd", "s")
		clean.want("ok", "zcreceive", "s")
		from.want("ok", "read", b.secret)
		from.want("ok", "putfd", "s")
		b.clean(to, "before it has read")
		to.want("ok", "zcreceive", "s")
		b.labelled(to, "zcreceive")
		b.clean(clean, "another connection")
	})
	tiers(t, func(t *testing.T, tier Tier) {
		b := &channelBench{bench: newBench(t, tier, "rule r:\n  block recv \"127.0.0.1\"\n")}
		from, to := b.tcp()
		from.want("ok", "putfd", "s")
		to.want("EPERM", "receive", "s")
		to.want("EPERM", "zcreceive", "s")
	})
}

// A ring of io_uring is memory, which a child shares as long as it runs no program, and
// which whoever gets the ring can map.
func TestRingMemory(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newChannelBench(t, tier)
		a, bare, other := b.actor(), b.actor(), b.actor()
		bare.want("ok", "ring", "q")
		bare.want("ok", "forked", b.secret)
		b.clean(bare, "a ring whose memory nobody has")
		a.want("ok", "ring", "q")
		a.want("ok", "mapring", "q")
		a.want("ok", "run", "/bin/cat", b.secret)
		b.clean(a, "a child that has run a program")
		a.want("ok", "forked", b.secret)
		b.labelled(a, "a fork that shares a ring")
		aio := b.actor()
		aio.want("ok", "completions")
		aio.want("ok", "forked", b.secret)
		b.labelled(aio, "a fork that shares a ring of AIO")

		maker, gets, late := b.actor(), b.actor(), b.actor()
		maker.want("ok", "ring", "q")
		maker.want("ok", "mapring", "q")
		for _, who := range []*actor{gets, late} {
			who.want("ok", "borrow", "q", strconv.Itoa(maker.cmd.Process.Pid), maker.do("number", "q"))
		}
		gets.want("ok", "mapring", "q")
		maker.want("ok", "read", b.secret)
		b.labelled(gets, "who has mapped the ring of another")
		b.clean(late, "who has it and has not mapped it")
		late.want("ok", "mapring", "q")
		b.labelled(late, "who maps it later")
		for range 10 { // where the memory of rings that are gone may be used again
			maker.want("ok", "ring", "p")
			maker.want("ok", "mapring", "p")
			maker.want("ok", "closefd", "p")
			other.want("ok", "ring", "p")
			other.want("ok", "mapring", "p")
			other.want("ok", "closefd", "p")
		}
		b.clean(other, "another process")
	})
}

// What a ring's thread does it does as who made the ring, so that nobody else may ask it.
func TestPolledRingOfAnother(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newChannelBench(t, tier)
		maker, gets := b.actor(), b.actor()
		maker.want("ok", "ring", "q", "polled")
		gets.want("ok", "borrow", "q", strconv.Itoa(maker.cmd.Process.Pid), maker.do("number", "q"))
		gets.want("EPERM", "mapring", "q")
		maker.want("ok", "mapring", "q")
	})
}

// A program of 32 bits that looks into another process gets its labels.
func TestEnviron32(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newChannelBench(t, tier)
		clean, target, reader := b.actor(), b.actor(), b.actor()
		reader.want("ok", "environ32", strconv.Itoa(clean.cmd.Process.Pid))
		b.clean(reader, "looking into a clean process")
		target.want("ok", "read", b.secret)
		reader.want("ok", "environ32", strconv.Itoa(target.cmd.Process.Pid))
		b.labelled(reader, "environ32")
		b.clean(clean, "environ32")
	})
}

// Of another process's memory it matters what is there when it is read, whoever has opened
// the file by then; and what is written there is written to the process.
func TestMemoryOpenedBefore(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newChannelBench(t, tier)
		for _, c := range []struct{ file, open string }{{"environ", ""}, {"environ", "uring"}, {"environ", "worker"}, {"environ", "polled"}, {"mem", ""}} {
			how := c.file + " " + c.open
			target, clean := b.actor(), b.actor()
			opener, gets := b.connected("stream")
			for _, of := range []struct {
				name   string
				target *actor
			}{{"e", target}, {"other", clean}} {
				path := "/proc/" + strconv.Itoa(of.target.cmd.Process.Pid) + "/" + c.file
				switch {
				case c.file == "mem":
					gets.want("ok", "openfd", of.name, path, "rw")
				case c.open == "":
					opener.want("ok", "openfd", of.name, path, "r")
					opener.want("ok", "give", "s", of.name)
					gets.want("ok", "take", "s", of.name)
				default:
					opener.want("ok", "uringopen", strings.TrimPrefix(c.open, "uring"), of.name, path)
					opener.want("ok", "give", "s", of.name)
					gets.want("ok", "take", "s", of.name)
				}
				gets.want("ok", "look at", of.name)
			}
			b.clean(gets, how+" of clean memory")
			target.want("ok", "read", b.secret)
			gets.want("ok", "look at", "other")
			if c.file == "environ" { // else they have each other's labels
				b.clean(gets, how+", before it has read")
			}
			gets.want("ok", "look at", "e")
			b.labelled(gets, how)
			b.clean(opener, how+", who has opened it and not read")
			if c.file == "environ" {
				b.clean(clean, how+" of another process")
			}
		}
	})
}

// A descriptor of a process's memory that is passed on moves labels as well, both ways.
func TestMemoryPassedOn(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newChannelBench(t, tier)
		target, late, other := b.actor(), b.actor(), b.actor()
		opener, gets := b.connected("stream")
		opener.want("ok", "openfd", "m", "/proc/"+strconv.Itoa(target.cmd.Process.Pid)+"/mem", "rw")
		opener.want("ok", "give", "s", "m")
		gets.want("ok", "take", "s", "m")
		late.want("ok", "borrow", "m", strconv.Itoa(opener.cmd.Process.Pid), opener.do("number", "m"))
		gets.want("ok", "look at", "m")
		gets.want("ok", "change", "m")
		b.clean(target, "written to by a clean process")
		b.clean(gets, "before")
		gets.want("ok", "read", b.secret)
		b.clean(target, "before it is written to")
		gets.want("ok", "change", "m")
		b.labelled(target, "written to through a descriptor that was passed on")
		b.clean(late, "who has it and does not read")
		late.want("ok", "look at", "m")
		b.labelled(late, "read through a descriptor that was passed on")
		b.clean(other, "another process")
	})
}

// Through a descriptor that was opened to append, what may not be written is appended
// to by plain writes, and not changed by any other way to write.
func TestOnlyPlainWritesAppend(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := &channelBench{bench: newBench(t, tier, channelPolicy+`
rule log:
  block write file "$D/log"
`)}
		log := b.file("log")
		a := b.actor()
		a.want("ok", "openfd", "l", log, "a")
		a.want("ok", "putfd", "l")
		a.want("ok", "pwrite", "l") // Linux appends
		for _, step := range [][]string{
			{"punch", "l"}, {"punch32", "l"}, {"free", "l"}, {"aio", "l"},
			{"uring", "", "write", "l"}, {"uring", "worker", "write", "l"}, {"uring", "polled", "write", "l"},
			{"uring", "", "fallocate", "l"}, {"uring", "worker", "fallocate", "l"}, {"uring", "polled", "fallocate", "l"},
		} {
			a.want("EPERM", step...)
		}
		if data, err := os.ReadFile(log); err != nil || string(data) != "texthello\ny" {
			t.Errorf("%q %v", data, err)
		}
		// The same are allowed where nothing refuses them.
		a.want("ok", "openfd", "l", b.file("free"), "a")
		for _, step := range [][]string{{"aio", "l"}, {"uring", "", "write", "l"}, {"uring", "polled", "write", "l"}} {
			a.want("ok", step...)
		}
	})
}

// Who may write through a descriptor is asked again when its file comes to be protected.
func TestProtectOpened(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBenchOf(t, tier, `
protect: ["$D/kept"]
policy: |
  source S = file "$D/s"
  rule r:
    block write "$D/k" if S
`)
		kept, name, free := b.file("kept"), b.dir+"/name", b.file("free")
		if err := os.Link(kept, name); err != nil {
			t.Fatal(err)
		}
		a, reader := b.actor(), b.actor()
		for _, path := range []string{name, free} {
			a.want("ok", "open", path)
			a.want("ok", "put", path)
			a.want("ok", "put", path)
		}
		a.want("ok", "put", name) // the last use is remembered
		reader.want("ok", "read", kept)
		a.want("EPERM", "put", name)
		a.want("EPERM", "open", name)
		a.want("ok", "put", free)
	})
}
