// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
)

// Machine code of programs that need no library.
var (
	exits0 = []byte{0xbf, 0, 0, 0, 0, 0xb8, 60, 0, 0, 0, 0x0f, 5}
	exits1 = []byte{0xbf, 1, 0, 0, 0, 0xb8, 60, 0, 0, 0, 0x0f, 5}
	// opensFirst opens its first argument for writing, and exits with 0 or 3.
	opensFirst = []byte{
		0x48, 0x8b, 0x7c, 0x24, 16, // rdi = argv[1]
		0xbe, 1, 0, 0, 0, // O_WRONLY
		0xb8, 2, 0, 0, 0, 0x0f, 5,
		0x85, 0xc0, 0xbf, 0, 0, 0, 0, 0x79, 5, 0xbf, 3, 0, 0, 0,
		0xb8, 60, 0, 0, 0, 0x0f, 5,
	}
)

// program makes a program from outside of the scope: of code, and with a loader if it is
// to have one, which then runs instead of the code.
func (b *bench) program(name, loader string, code []byte) string {
	b.t.Helper()
	const header, entry = 64, 56
	headers := uint64(header + entry)
	if loader != "" {
		headers += entry
	}
	interpreter := append([]byte(loader), 0)
	at := headers + uint64(len(interpreter))
	size := at + uint64(len(code))
	const base = 0x400000
	var out bytes.Buffer
	write := func(v any) {
		if err := binary.Write(&out, binary.LittleEndian, v); err != nil {
			b.t.Fatal(err)
		}
	}
	ident := [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)}
	kind, origin := elf.ET_DYN, uint64(0)
	if loader != "" {
		kind, origin = elf.ET_EXEC, base
	}
	write(elf.Header64{
		Ident: ident, Type: uint16(kind), Machine: uint16(elf.EM_X86_64), Version: 1, Entry: origin + at, Phoff: header,
		Ehsize: header, Phentsize: entry, Phnum: uint16((headers - header) / entry),
	})
	if loader != "" {
		write(elf.Prog64{Type: uint32(elf.PT_INTERP), Flags: 4, Off: headers, Vaddr: origin + headers, Filesz: uint64(len(interpreter)), Memsz: uint64(len(interpreter)), Align: 1})
	}
	// Writable, since kernel 6.1 clears the rest of a loader's last page.
	write(elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: 7, Vaddr: origin, Paddr: origin, Filesz: size, Memsz: size, Align: 0x1000})
	out.Write(interpreter)
	out.Write(code)
	path := b.script(name, "")
	if err := os.WriteFile(path, out.Bytes(), 0o755); err != nil {
		b.t.Fatal(err)
	}
	return path
}

// The loader of a program is code that it runs, though nobody executes it.
func TestLoader(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBench(t, tier, `
source SECRET = file "$D/secret-ld"
rule stay:
  block write file "$D/kept" if SECRET
rule push:
  block exec "git" "push"
rule place:
  block exec "$D/forbidden/*"
rule person:
  ask exec "$D/asked-ld"
`)
		kept := b.file("kept")
		secret := b.program("secret-ld", "", opensFirst)
		plain := b.program("plain-ld", "", opensFirst)
		a := b.actor()
		a.want("ok", "run", b.program("plain", plain, exits1), kept)
		a.want("exit 3", "run", b.program("labelled", secret, exits1), kept)
		b.record()

		// One that a labelled process has written.
		a.want("ok", "run", "/bin/cp", secret, b.dir+"/made-ld")
		a.want("exit 3", "run", b.program("made", b.dir+"/made-ld", exits1), kept)
		b.record()

		for _, loader := range []string{"git", "forbidden/ld"} {
			path := b.program(loader, "", exits0)
			a.want("EPERM", "run", b.program("by-"+filepath.Base(loader), path, exits1), "status")
			if r := b.record(); r.Object != path || !r.Mapped {
				t.Errorf("record %+v", r)
			}
		}

		// An exec that fails for its loader has nothing to do with the next one.
		b.program("broken/git", b.dir+"/nowhere", exits1)
		path := "PATH=" + b.dir + "/broken:" + b.dir
		a.want("ok", "run", "/bin/busybox", "env", path, "git", "status")
		a.want("exit 126", "run", "/bin/busybox", "env", path, "git", "push")
		b.record()

		asks := b.program("asks", b.program("asked-ld", "", exits0), exits1)
		a.want("EPERM", "run", asks)
		b.answer(b.record(), Answer{Count: 1})
		a.want("ok", "run", asks)
		b.record() // its use
		a.want("EPERM", "run", asks)
	})
}

// A rule against what was made inside holds for loaders too.
func TestLoaderMadeInside(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBench(t, tier, `
rule own:
  block exec any unless target not modified
`)
		loader := b.program("ld", "", exits0)
		program := b.program("program", loader, exits1)
		a := b.actor()
		a.want("ok", "run", program)
		a.want("ok", "run", "/bin/busybox", "dd", "if="+b.program("other", "", exits0), "of="+loader)
		a.want("EPERM", "run", program)
	})
}

// What loads or interprets a program must be what it was, by whatever links and renames it
// comes to its name, for the program to open a gate.
func TestForeignLoader(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBench(t, tier, `
rule tested:
  block exec "commit" unless after exec "tests" exits 0 since exec "commit"
`)
		commit := b.script("commit", "exit 0")
		yes, no := b.program("yes", "", exits0), b.program("no", "", exits1)
		link := func(to, name string) string {
			path := filepath.Join(b.dir, name)
			if err := os.Symlink(to, path); err != nil {
				t.Fatal(err)
			}
			return path
		}
		a := b.actor()
		rounds := []struct {
			name string
			by   string // what loads or interprets the program
			edit func(by string)
			runs string // the answer
			open bool
		}{
			{"as it is", b.program("ld-1", "", exits0), func(string) {}, "ok", true},
			{"renamed over", b.program("ld-2", "", exits1), func(by string) { a.want("ok", "rename", b.program("yes-2", "", exits0), by) }, "ok", false},
			{"by a link of the image", link(yes, "ld-3"), func(string) {}, "ok", true},
			{"by a link that was made", b.program("ld-4", "", exits1), func(by string) {
				a.want("ok", "unlink", by)
				a.want("ok", "symlink", yes, by)
			}, "ok", false},
			{"by a link that was renamed", link(no, "ld-5"), func(by string) { a.want("ok", "rename", link(yes, "yes-5"), by) }, "ok", false},
			{"by links of which one was made", link(b.dir+"/to-6", "ld-6"), func(string) {
				a.want("ok", "symlink", link(yes, "yes-6"), b.dir+"/to-6")
			}, "ok", false},
			{"by a folder that was moved", b.program("old-7/ld", "", exits0), func(by string) {
				a.want("ok", "rename", filepath.Dir(by), b.dir+"/aside-7")
				a.want("ok", "rename", b.dir+"/aside-7", filepath.Dir(by))
			}, "ok", false},
			{"written", b.program("ld-8", "", exits1), func(by string) { a.want("ok", "run", "/bin/busybox", "dd", "if="+yes, "of="+by) }, "ok", false},
		}
		for _, r := range rounds {
			dir := filepath.Base(r.by)
			program := b.program("loaded/"+dir+"/tests", r.by, exits1)
			script := b.script("scripts/"+dir+"/tests", "")
			if err := os.WriteFile(script, []byte("#!"+r.by+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			r.edit(r.by)
			for _, path := range []string{program, script} {
				a.want("EPERM", "run", commit)
				a.want(r.runs, "run", path)
				if got := a.do("run", commit) == "ok"; got != r.open {
					t.Errorf("%s, %s: open %t", r.name, path, got)
				}
			}
		}
	})
}
