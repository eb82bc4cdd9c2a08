// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"os"
	"strconv"
	"testing"
)

// Files, memfds and System V segments that two processes have mapped before the label
// comes: who shares memory with a process gains its labels at once, others do not.
func TestSharedMemory(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newChannelBench(t, tier)
		file, second := b.file("shared"), b.file("second")
		for name, shares := range map[string]func(a *actor){
			"a file": func(a *actor) {
				a.want("ok", "openfd", "m", file, "rw")
				a.want("ok", "mapwrite", "m")
				a.want("ok", "closefd", "m")
			},
			"a segment": func(a *actor) { a.want("ok", "segment", "4711") },
		} {
			from, to, third, reader, other := b.actor(), b.actor(), b.actor(), b.actor(), b.actor()
			shares(from)
			shares(to)
			for _, a := range []*actor{to, third} { // a chain: from, to, third
				a.want("ok", "openfd", "n", second, "rw")
				a.want("ok", "mapwrite", "n")
			}
			reader.want("ok", "openfd", "n", second, "r")
			reader.want("ok", "mapread", "n")
			b.clean(to, name+", before")
			from.want("ok", "read", b.secret)
			b.labelled(to, name)
			b.labelled(third, name+", over another mapping")
			b.labelled(reader, name+", only to read")
			b.clean(other, name)
			file, second = b.file("shared2"), b.file("second2")
		}
		from, to := b.connected("stream")
		from.want("ok", "memory", "m")
		from.want("ok", "mapwrite", "m")
		from.want("ok", "give", "s", "m")
		to.want("ok", "take", "s", "m")
		to.want("ok", "mapread", "m")
		b.clean(to, "memfd, before")
		to.want("ok", "closefd", "m")
		from.want("ok", "read", b.secret)
		b.labelled(to, "memfd")
	})
}

// A mapping shows what others write to the file by system calls, a private one as well;
// and two processes that map the same library do not exchange labels.
func TestMappedFiles(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newChannelBench(t, tier)
		for _, step := range []string{"mapread", "mapprivate"} {
			file, library := b.file(step+"/f"), b.file(step+"/library")
			writer, mapper, other := b.actor(), b.actor(), b.actor()
			for _, a := range []*actor{writer, mapper, other} {
				a.want("ok", "openfd", "l", library, "r")
				a.want("ok", step, "l")
			}
			mapper.want("ok", "openfd", "f", file, "r")
			mapper.want("ok", step, "f")
			writer.want("ok", "openfd", "f", file, "w")
			writer.want("ok", "putfd", "f")
			b.clean(mapper, step+", clean data")
			writer.want("ok", "read", b.secret)
			b.clean(mapper, step+", the same library")
			writer.want("ok", "putfd", "f")
			b.labelled(mapper, step)
			b.clean(other, step)
		}
	})
}

// A descriptor that is received and mapped has been read.
func TestReceivedAndMapped(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newChannelBench(t, tier)
		from, to := b.connected("stream")
		file := b.file("f")
		writer := b.actor()
		writer.want("ok", "read", b.secret)
		from.want("ok", "openfd", "f", file, "r")
		from.want("ok", "give", "s", "f")
		to.want("ok", "take", "s", "f")
		writer.want("ok", "write", file)
		b.clean(to, "a descriptor that is only had")
		to.want("ok", "mapprivate", "f")
		b.labelled(to, "a descriptor that is mapped")
		b.clean(from, "who opened it before")
	})
}

// A gate that writing spoils stays closed while somebody may write.
func TestMappingHoldsGates(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := &channelBench{bench: newBench(t, tier, `
rule tested:
  block exec "git" "commit" unless after exec "check" since write "$D/src/**"
`)}
		source, git, check := b.file("src/f"), b.script("git", "exit 0"), b.script("check", "exit 0")
		a := b.actor()
		a.want("EPERM", "run", git, "commit")
		a.want("ok", "run", check)
		a.want("ok", "run", git, "commit")
		reader := b.actor()
		reader.want("ok", "openfd", "f", source, "r")
		reader.want("ok", "mapread", "f")
		a.want("ok", "run", git, "commit")
		writer := b.actor()
		writer.want("ok", "openfd", "f", source, "rw")
		writer.want("ok", "mapwrite", "f")
		a.want("EPERM", "run", git, "commit")
		a.want("ok", "run", check)
		a.want("EPERM", "run", git, "commit")
		_ = writer.stdin.Close()
		_ = writer.cmd.Wait()
		a.want("EPERM", "run", git, "commit") // it may have been written to until then
		a.want("ok", "run", check)
		a.want("ok", "run", git, "commit")
	})
}

// What a mapping spoils it does not open, though the same event would.
func TestMappingHoldsWhatItArms(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := &channelBench{bench: newBench(t, tier, `
rule written:
  block exec "git" "commit" unless after write "$D/src/**" since write "$D/src/**"
`)}
		source, git := b.file("src/f"), b.script("git", "exit 0")
		a := b.actor()
		a.want("EPERM", "run", git, "commit")
		a.want("ok", "write", source)
		a.want("ok", "run", git, "commit")
		writer := b.actor()
		writer.want("ok", "openfd", "f", source, "rw")
		writer.want("ok", "mapwrite", "f")
		a.want("EPERM", "run", git, "commit")
	})
}

// An open that makes its own gate stale is not refused what another thread of the process
// then does with it, as in programs whose threads share the work; others are.
func TestOpenedByAnotherThread(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBench(t, tier, `
rule once:
  block write "$D/src/**" unless after exec "check" since write "$D/src/**"
`)
		source, a := b.file("src/f"), b.actor()
		a.want("EPERM", "openfd", "f", source, "w")
		a.want("ok", "run", b.script("check", "exit 0"))
		a.want("ok", "openfd", "f", source, "w")
		a.want("ok", "writeelsewhere", "f")
		a.want("EPERM", "openfd", "g", source, "w")
		b.actor().want("EPERM", "write", source)
	})
}

// An exec spoils first, by whatever name, and then arms.
func TestExecSpoilsFirst(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBench(t, tier, `
rule run:
  block unlink "$D/f" unless after exec any since exec "check"
`)
		a := b.actor()
		a.want("ok", "run", b.script("check", "exit 0"))
		a.want("ok", "unlink", b.file("f"))
	})
}

// Who looks into a process gets its labels, who writes into it gives its own, and who
// traces it or has its memory open both, from then on.
func TestReachingInto(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newChannelBench(t, tier)
		other := b.actor()
		for _, step := range []string{"vmread", "environ", "getfd", "memfile", "seize"} {
			target, reader := b.actor(), b.actor()
			target.want("ok", "read", b.secret)
			reader.want("ok", step, strconv.Itoa(target.cmd.Process.Pid))
			b.labelled(reader, step)
		}
		for _, step := range []string{"vmread", "environ", "getfd"} {
			target, reader := b.actor(), b.actor()
			reader.want("ok", "read", b.secret)
			reader.want("ok", step, strconv.Itoa(target.cmd.Process.Pid))
			b.clean(target, step)
			b.clean(target, step)
		}
		for _, step := range []string{"vmwrite", "memfile", "seize"} {
			target, writer := b.actor(), b.actor()
			writer.want("ok", "read", b.secret)
			writer.want("ok", step, strconv.Itoa(target.cmd.Process.Pid))
			b.labelled(target, step)
		}
		target, writer := b.actor(), b.actor()
		target.want("ok", "read", b.secret)
		writer.want("ok", "vmwrite", strconv.Itoa(target.cmd.Process.Pid))
		b.clean(writer, "vmwrite")
		for _, step := range []string{"memfile", "seize"} {
			target, tracer := b.actor(), b.actor()
			tracer.want("ok", step, strconv.Itoa(target.cmd.Process.Pid))
			b.clean(target, step+", before")
			tracer.want("ok", "read", b.secret)
			b.labelled(target, step+", later")
		}
		b.clean(other, "reaching into others")
		for step, answer := range map[string]string{
			"vmread": "EPERM", "vmwrite": "EPERM", "getfd": "EPERM", "memfile": "EACCES", "seize": "EPERM",
		} {
			other.want(answer, step, strconv.Itoa(os.Getpid())) // outside
		}
	})
}

// System V queues carry labels; POSIX queues, which no hook sees, can't be opened.
func TestQueues(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newChannelBench(t, tier)
		from, to, other := b.actor(), b.actor(), b.actor()
		from.want("ok", "queue", "put", "5001")
		to.want("ok", "queue", "get", "5001")
		from.want("ok", "queue", "put", "5002")
		other.want("ok", "queue", "get", "5002")
		from.want("ok", "read", b.secret)
		from.want("ok", "queue", "put", "5001")
		to.want("ok", "queue", "get", "5001")
		b.labelled(to, "a queue")
		b.clean(other, "another queue")
		other.want("EPERM", "mailbox", "box")
		if r := b.record(); r.Reason == "" {
			for r.Reason == "" {
				r = b.record()
			}
		}
	})
}
