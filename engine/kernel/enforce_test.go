// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/actplane/actplane/policy/ir"
)

func TestNames(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBench(t, tier, `
rule safe:
  block write file "$D/safe/**"
  block unlink file "$D/safe/**"
rule log:
  block write file "$D/log/**"
rule secret:
  kill read file "$D/killer"
`)
		f, free := b.file("safe/f"), b.file("free/f")
		log := b.file("log/l")
		b.file("killer")
		_ = os.Mkdir(filepath.Join(b.dir, "safe/d"), 0o755)
		_ = os.Mkdir(filepath.Join(b.dir, "safe/e"), 0o755)
		safe := filepath.Join(b.dir, "safe")
		a := b.actor()
		a.want("ok", "read", f)
		a.want("EPERM", "write", f)
		r := b.record()
		if r.Object != f || b.policy.Program.Rules[b.policy.Image.Clauses[r.Clause].Rule].Name != "safe" {
			t.Errorf("record %+v", r)
		}
		a.want("EPERM", "create", safe+"/new")
		if exists(safe + "/new") {
			t.Error("a refused create left a file")
		}
		a.want("EPERM", "unlink", f)
		a.want("EPERM", "rmdir", safe+"/e")
		a.want("EPERM", "mkdir", safe+"/x")
		a.want("EPERM", "mknod", safe+"/x")
		a.want("EPERM", "symlink", "/x", safe+"/x")
		a.want("EPERM", "rename", f, free+"2")
		a.want("EPERM", "rename", free, safe+"/x")
		a.want("EPERM", "link", f, free+"2")
		a.want("EPERM", "link", free, safe+"/x")
		a.want("EPERM", "chmod", f)
		a.want("EPERM", "chown", f)
		a.want("EPERM", "truncate", f)
		a.want("EPERM", "emptyreadonly", f)
		a.want("EPERM", "utimes", f)
		a.want("EPERM", "setxattr", f)
		a.want("ok", "append", log)
		a.want("ok", "put", log)
		a.want("EPERM", "ftruncate", log)
		a.want("EPERM", "keep", log)
		a.want("EPERM", "write", log)
		for _, step := range []string{"write", "chmod", "chown", "truncate", "utimes", "setxattr", "unlink"} {
			a.want("ok", step, free)
		}
		a.want("ok", "mkdir", b.dir+"/free/d")
		a.want("ok", "rmdir", b.dir+"/free/d")
		a.want("dead", "read", b.dir+"/killer")
		if data, err := os.ReadFile(f); err != nil || string(data) != "text" {
			t.Errorf("%q %v", data, err)
		}
	})
}

func TestExec(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBench(t, tier, `
rule push:
  block exec "git" "push"
rule never:
  kill exec "$D/bin/bad"
rule interp:
  block exec "sh" "*evil*"
`)
		refused := "EPERM"
		git := b.script("bin/git", "exit 0")
		other := b.script("bin/other", "exit 3")
		bad := b.script("bin/bad", "exit 0")
		evil := b.script("bin/evil", "exit 0")
		_ = os.Symlink("other", filepath.Join(b.dir, "bin/link"))
		_ = os.Mkdir(filepath.Join(b.dir, "link"), 0o755)
		_ = os.Symlink("../bin/other", filepath.Join(b.dir, "link/git"))
		a := b.actor()
		a.want("ok", "run", git, "status")
		a.want(refused, "run", git, "push")
		r := b.record()
		if r.Object != git || len(r.Args) != 2 || r.Args[1] != "push" {
			t.Errorf("record %+v", r)
		}
		a.want(refused, "run", git, "-C", strings.Repeat("long", 200), "push", "origin")
		a.want("ok", "run", git, "-C", strings.Repeat("long", 200), "pushy")
		a.want("ok", "run", git, strings.Repeat("x", 255), strings.Repeat("y", 254)+"push")
		a.want("ok", "run", git, "", "x", "")
		a.want(refused, "run", git, "", "push")
		a.want("ok", "runlong", git, "x")
		a.want(refused, "runlong", git, "push")
		a.want("exit 3", "run", other, "push")
		a.want("exit 3", "run", filepath.Join(b.dir, "bin/link"), "push")
		a.want(refused, "run", filepath.Join(b.dir, "link/git"), "push")
		a.want(refused, "run", evil)
		a.want("SIGKILL", "fork", "run", bad)
		a.want("exit 126", "run", "/bin/sh", "-c", git+" push")
	})
}

func TestLabelsAndGates(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBench(t, tier, `
source SECRET = file "**/.env"
rule stay:
  block connect any if SECRET
  block write file "$D/shared/**" if SECRET
rule tested:
  block exec "commit" unless after exec "tests" "-a" exits 0 since write "$D/src/**"
rule mediated:
  block read file "$D/db" unless lineage-includes exec "$D/bin/migrate"
`)
		env := b.file("w/.env")
		shared, src := b.file("shared/x"), b.file("src/x")
		commit := b.script("bin/commit", "exit 0")
		tests := b.script("bin/tests", `exit "$2"`)
		db := b.file("db")
		zero, nought := b.script("prog/zero", "exit 0"), b.script("prog/nought", "exit 0")
		empty := b.script("truncated/tests", "exit 1")
		for _, dir := range []string{"linked", "renamed"} {
			if err := os.Mkdir(filepath.Join(b.dir, dir), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		migrate := b.script("bin/migrate", "cat "+db)
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		address := listener.Addr().String()
		go func() {
			for {
				c, err := listener.Accept()
				if err != nil {
					return
				}
				defer c.Close()
			}
		}()
		a := b.actor()
		a.want("ok", "dial", "tcp", address)
		a.want("ok", "say")
		a.want("ok", "open", shared)
		a.want("ok", "put", shared)
		q := b.actor()
		q.want("ok", "dial", "tcp", address)
		q.want("ok", "fork", "read", env)
		q.want("EPERM", "say") // the child has answered through a pipe
		a.want("ok", "say")
		a.want("ok", "read", env)
		a.want("EPERM", "say")
		a.want("EPERM", "decoy", "127.0.0.1:1")
		a.want("EPERM", "put", shared)
		a.want("EPERM", "dial", "tcp", address)
		a.want("EPERM", "write", shared)
		a.want("ok", "write", b.dir+"/out")
		a.want("EPERM", "fork", "dial", "tcp", address)
		p := b.actor()
		p.want("ok", "run", "/bin/sh", "-c", "cat "+b.file("harmless")+" | { read x; echo > "+shared+"; }")
		p.want("exit 1", "run", "/bin/sh", "-c", "(read x < "+env+"; echo $x) | { read y; echo > "+shared+"; }")
		p.want("ok", "dial", "tcp", address)
		c := b.actor()
		c.want("ok", "dial", "tcp", address)
		c.want("ok", "read", b.dir+"/out")
		c.want("EPERM", "dial", "tcp", address)
		d := b.actor()
		d.want("ok", "dial", "tcp", address)
		d.want("ok", "rename", env, b.dir+"/other")
		d.want("ok", "read", b.dir+"/other")
		d.want("EPERM", "dial", "tcp", address)

		g := b.actor()
		g.want("EPERM", "run", commit)
		g.want("exit 1", "run", tests, "-a", "1")
		g.want("EPERM", "run", commit)
		g.want("ok", "run", tests, "-b", "0")
		g.want("EPERM", "run", commit)
		g.want("ok", "run", tests, "-a", "0")
		g.want("ok", "run", commit)
		g.want("ok", "write", src)
		g.want("EPERM", "run", commit)
		g.want("ok", "run", tests, "-a", "0")
		g.want("ok", "run", commit)
		g.want("ok", "write", src)
		g.want("ok", "open", src)
		g.want("ok", "run", tests, "-a", "0")
		g.want("ok", "run", commit)
		g.want("ok", "put", src)
		g.want("EPERM", "run", commit)
		g.want("ok", "link", zero, b.dir+"/linked/tests")
		g.want("ok", "run", b.dir+"/linked/tests", "-a", "0")
		g.want("EPERM", "run", commit)
		g.want("ok", "rename", nought, b.dir+"/renamed/tests")
		g.want("ok", "run", b.dir+"/renamed/tests", "-a", "0")
		g.want("EPERM", "run", commit)
		g.want("ok", "truncate", empty)
		g.want("ok", "run", "/bin/sh", empty, "-a", "0")
		g.want("EPERM", "run", commit)
		g.want("ok", "run", "/bin/cp", tests, b.dir+"/forged")
		g.want("ok", "rename", b.dir+"/forged", b.dir+"/tests")
		g.want("ok", "run", b.dir+"/tests", "-a", "0")
		g.want("EPERM", "run", commit)
		g.want("EPERM", "read", db)
		g.want("ok", "run", migrate)
		g.want("EPERM", "read", db)
	})
}

func TestSockets(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBench(t, tier, `
rule net:
  block connect "127.0.0.1:1-1000"
  block connect "[::1]:7"
  block send "127.0.0.1:2000"
  block connect "unix:$D/safe/**"
  block connect "unix:@hidden"
  notify connect "127.0.0.1:3000-3999"
`)
		_ = os.Mkdir(filepath.Join(b.dir, "safe"), 0o755)
		safe, free := filepath.Join(b.dir, "safe/s"), filepath.Join(b.dir, "s")
		for _, name := range []string{safe, free, "@hidden", "@seen"} {
			listener, err := net.Listen("unix", name)
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
		}
		datagrams, err := net.ListenPacket("unixgram", safe+"d")
		if err != nil {
			t.Fatal(err)
		}
		defer datagrams.Close()
		a := b.actor()
		a.want("EPERM", "dial", "tcp", "127.0.0.1:7")
		if r := b.record(); r.Object != "127.0.0.1:7" {
			t.Errorf("record %+v", r)
		}
		a.want("ECONNREFUSED", "dial", "tcp", "127.0.0.1:1001")
		a.want("EPERM", "dial", "tcp", "[::1]:7")
		a.want("EPERM", "mapped", "127.0.0.1:7")
		a.want("EPERM", "dial", "udp", "127.0.0.1:7")
		a.want("EPERM", "dial", "tcp", "0.0.0.0:7")
		a.want("EPERM", "mapped", "0.0.0.0:7")
		a.want("EPERM", "dial", "tcp6", "[::]:7")
		a.want("EPERM", "sendto", "0.0.0.0:2000")
		a.want("ECONNREFUSED", "dial", "tcp", "[::1]:8")
		a.want("EPERM", "sendto", "127.0.0.1:2000")
		a.want("ok", "sendto", "127.0.0.1:2001")
		a.want("EPERM", "sendto", "127.0.0.1:7")
		a.want("EPERM", "dial", "unix", safe)
		a.want("EPERM", "dial", "unixgram", safe+"d")
		a.want("ok", "dial", "unix", free)
		a.want("EPERM", "dial", "unix", "@hidden")
		a.want("ok", "dial", "unix", "@seen")
		a.want("ECONNREFUSED", "dial", "tcp", "127.0.0.1:3000")
		for r := b.record(); r.Effect != ir.Notify; r = b.record() {
		}
		if err := b.k.SetExempt(b.slot, safe, ""); err != nil {
			t.Fatal(err)
		}
		a.want("ok", "dial", "unix", safe)
	})
}

func TestProcesses(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBench(t, tier, `
source SECRET = file "$D/secret"
source AGENT = exec "agent"
rule stay:
  block write file "$D/shared" if SECRET
rule agent:
  block read file "$D/f" if AGENT
rule code:
  block exec "git" "push"
`)
		secret, shared, f := b.file("secret"), b.file("shared"), b.file("f")
		git := b.script("git", "exit 0")
		agent := b.script("agent", "cat "+f)
		cat := b.script("cat", "cat "+f)
		write := b.script("write", "echo > "+shared)

		a := b.actor()
		a.want("ok", "mapcode", f)
		a.want("EPERM", "mapcode", git)
		a.want("ok", "run", cat)
		a.want("exit 1", "run", agent)
		a.want("exit 1", "runthread", agent)
		a.want("ok", "runthread", cat)
		a.want("ok", "read", secret)
		a.want("exit 1", "run", write)
		a.want("exit 1", "runthread", write)
		a.want("exit 1", "runthread", git, "push")

		// Out of the scope's cgroup is not out of the scope.
		other := b.cgroup + "-other"
		if err := os.Mkdir(other, 0o755); err != nil {
			t.Fatal(err)
		}
		a.want("EPERM", "forkinto", other, "write", shared)
		if err := os.WriteFile(other+"/cgroup.procs", []byte(strconv.Itoa(a.cmd.Process.Pid)), 0); err != nil {
			t.Fatal(err)
		}
		a.want("EPERM", "write", shared)
		a.want("EPERM", "fork", "write", shared)
		_ = a.stdin.Close()
		_ = a.cmd.Wait()
		if err := os.Remove(other); err != nil {
			t.Error(err)
		}
	})
}

// A thread that changes argv while it is looked at gains nothing: the second look
// sees what the kernel took.
func TestRacingArguments(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBench(t, tier, `
rule push:
  block exec "git" "push"
`)
		ran := filepath.Join(b.dir, "ran")
		git := b.script("git", `echo "$1" >> `+ran)
		a := b.actor()
		a.want("ok", "race", git, "pull", "push")
		data, err := os.ReadFile(ran)
		if err != nil {
			t.Fatal(err)
		}
		if words := string(data); strings.Contains(words, "push") || !strings.Contains(words, "pull") {
			t.Errorf("ran with %q", words)
		}
	})
}

// What has no path that fits is denied where any rule could mean it.
func TestUnnameable(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBench(t, tier, `
rule safe:
  block write file "$D/safe/**"
`)
		b.actor().want("EPERM", "deep", b.dir)
	})
}

// A new process takes over what a former one has installed.
func TestAdopt(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBench(t, tier, `
rule safe:
  block read file "$D/f"
`)
		f := b.file("f")
		a := b.actor()
		a.want("EPERM", "read", f)
		b.k.config.Linger = 0
		next, err := Open(b.k.config)
		if err != nil {
			t.Fatal(err)
		}
		_ = b.k.Close() // as if its process had died
		b.k = next
		a.want("EPERM", "read", f)
		slots, err := next.Slots()
		if err != nil || len(slots) != 1 || slots[0] != b.slot || next.Tier() != tier {
			t.Fatalf("slots %v, tier %s, %v", slots, next.Tier(), err)
		}
		id, err := next.Cgroup(b.slot)
		if want, _ := cgroupID(b.cgroup); err != nil || id != want {
			t.Errorf("cgroup %d, want %d, %v", id, want, err)
		}
		if stats, err := next.Stats(b.slot); err != nil || stats.Denied != 2 {
			t.Errorf("stats %+v %v", stats, err)
		}
		process, ok, err := next.Process(a.cmd.Process.Pid)
		if err != nil || !ok || process.Slot != b.slot || process.Setup {
			t.Errorf("process %+v %v %v", process, ok, err)
		}
		if err := next.Remove(b.slot); err != nil {
			t.Fatal(err)
		}
		a.want("ok", "read", f)
		if links, err := os.ReadDir(next.dir("links")); err != nil || len(links) != 0 {
			t.Errorf("%d links are left, %v", len(links), err)
		}
	})
}
