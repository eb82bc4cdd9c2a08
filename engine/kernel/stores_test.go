// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// storeStep is about what is kept beside contents, and about commands to files.
func (s *actorState) storeStep(op string, args []string) error {
	text := make([]byte, 256)
	switch op {
	case "getxattr": // PATH
		_, err := unix.Getxattr(args[0], "trusted.x", text)
		return err
	case "listxattr": // PATH
		_, err := unix.Listxattr(args[0], text)
		return err
	case "fsetxattr": // FD
		return unix.Fsetxattr(s.fd(args[0]), "trusted.x", []byte("1"), 0)
	case "fgetxattr": // FD
		_, err := unix.Fgetxattr(s.fd(args[0]), "trusted.x", text)
		return err
	case "setacl": // PATH
		return unix.Setxattr(args[0], "system.posix_acl_access", accessList(4711), 0)
	case "getacl": // PATH
		_, err := unix.Getxattr(args[0], "system.posix_acl_access", text)
		return err
	case "readlink": // PATH
		_, err := unix.Readlink(args[0], text)
		return err
	case "setfilter": // SOCKET
		filter := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: ^uint32(0)}}
		return unix.SetsockoptSockFprog(s.fd(args[0]), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &filter[0]})
	case "getfilter": // SOCKET
		filter, length := make([]unix.SockFilter, 8), uint32(8)
		_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(s.fd(args[0])), unix.SOL_SOCKET, unix.SO_GET_FILTER,
			uintptr(unsafe.Pointer(&filter[0])), uintptr(unsafe.Pointer(&length)), 0)
		if errno == 0 && length == 0 {
			return errors.New("there is no filter")
		}
		return errnoError(errno)
	case "setbuffer": // SOCKET
		return unix.SetsockoptInt(s.fd(args[0]), unix.SOL_SOCKET, unix.SO_RCVBUF, 4711)
	case "getbuffer": // SOCKET
		_, err := unix.GetsockoptInt(s.fd(args[0]), unix.SOL_SOCKET, unix.SO_RCVBUF)
		return err
	case "command": // PATH NUMBER
		return command(args[0], args[1])
	case "supervise":
		return supervise()
	case "faults": // NAME: a userfaultfd
		fd, _, errno := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC, 0, 0)
		return s.keep(args[0], int(fd), errnoError(errno))
	case "answerfaults": // FD
		const handshake = 0xc018aa3f // UFFDIO_API
		version := [3]uint64{0xaa}
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(s.fd(args[0])), handshake, uintptr(unsafe.Pointer(&version)))
		return errnoError(errno)
	}
	return errNoStep
}

// accessList is a list of three classes and of one user who may read, in the form of
// include/uapi/linux/posix_acl_xattr.h.
func accessList(user uint32) []byte {
	const none = ^uint32(0)
	list := binary.LittleEndian.AppendUint32(nil, 2)
	for _, entry := range [][3]uint32{{1, 6, none}, {2, 4, user}, {4, 4, none}, {16, 4, none}, {32, 4, none}} {
		list = binary.LittleEndian.AppendUint16(list, uint16(entry[0]))
		list = binary.LittleEndian.AppendUint16(list, uint16(entry[1]))
		list = binary.LittleEndian.AppendUint32(list, entry[2])
	}
	return list
}

// command gives a file or directory a command.
func command(path, number string) error {
	n, err := strconv.ParseUint(number, 0, 32)
	if err != nil {
		return err
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var argument [4096]byte
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(n), uintptr(unsafe.Pointer(&argument)))
	return errnoError(errno)
}

// Extended attributes and lists of access are read with the labels of who has set them.
func TestAttributes(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newChannelBench(t, tier)
		other, beside := b.actor(), b.file("beside")
		other.want("ok", "setxattr", beside)
		for _, c := range [][2]string{{"setxattr", "getxattr"}, {"setxattr", "listxattr"}, {"setacl", "getacl"}} {
			path := b.file(c[1])
			from, to := b.actor(), b.actor()
			from.want("ok", c[0], path)
			to.want("ok", c[1], path)
			b.clean(to, c[1]+" of what is clean")
			from.want("ok", "read", b.secret)
			from.want("ok", c[0], path)
			b.clean(to, c[1]+", before")
			to.want("ok", c[1], path)
			b.labelled(to, c[1])
			other.want("ok", "getxattr", beside)
		}
		b.clean(other, "another file")
		from, to := b.connected("stream")
		from.want("ok", "memory", "m")
		if got := from.do("fsetxattr", "m"); got == "EOPNOTSUPP" {
			t.Log("memfds have no attributes on this kernel")
			return
		}
		from.want("ok", "give", "s", "m")
		to.want("ok", "take", "s", "m")
		to.want("ok", "fgetxattr", "m")
		b.clean(to, "a memfd's attribute")
		from.want("ok", "read", b.secret)
		from.want("ok", "fsetxattr", "m")
		to.want("ok", "fgetxattr", "m")
		b.labelled(to, "a memfd's attribute")
	})
}

// Who reads the target of a symbolic link has the labels of who has made it, wherever the
// link is then. Listing its directory tells no targets.
func TestLinkTargets(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newChannelBench(t, tier)
		for _, dir := range []string{"clean", "links", "else"} {
			if err := os.Mkdir(b.dir+"/"+dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		from, other := b.actor(), b.actor()
		other.want("ok", "symlink", "x", b.dir+"/clean/l")
		from.want("ok", "symlink", "x", b.dir+"/links/first")
		from.want("ok", "read", b.secret)
		for _, name := range []string{"l", "renamed", "linked", "exchanged"} {
			from.want("ok", "symlink", "what it has read", b.dir+"/links/"+name)
		}
		other.want("ok", "rename", b.dir+"/links/renamed", b.dir+"/else/renamed")
		other.want("ok", "link", b.dir+"/links/linked", b.dir+"/else/linked")
		b.file("else/exchanged")
		other.want("ok", "exchange", b.dir+"/else/exchanged", b.dir+"/links/exchanged")
		for _, path := range []string{"links/l", "else/renamed", "else/linked", "else/exchanged"} {
			reader := b.actor()
			b.clean(reader, path+", before")
			reader.want("ok", "readlink", b.dir+"/"+path)
			b.labelled(reader, path)
		}
		other.want("ok", "readlink", b.dir+"/clean/l")
		other.want("ok", "readlink", b.dir+"/links/first") // made before the label came
		other.want("ok", "openfd", "d", b.dir+"/links", "r")
		b.clean(other, "another link")
		other.want("ok", "symlink", "x", b.dir+"/else/new")
		other.want("ok", "readlink", b.dir+"/else/new")
		from.want("EEXIST", "symlink", "x", b.dir+"/clean/l")
		other.want("ok", "readlink", b.dir+"/clean/l")
		b.clean(other, "a link beside those that came, and one that was there before")
	})
}

// To follow a link is not to read its target, though an overlay reads it from below.
func TestLinkTargetsOnOverlay(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		mount, _ := overlay(t, t.TempDir())
		defer func() { _ = unix.Unmount(mount, unix.MNT_DETACH) }()
		b := newChannelBench(t, tier)
		if err := os.WriteFile(mount+"/there", []byte("text"), 0o644); err != nil {
			t.Fatal(err)
		}
		from, to := b.actor(), b.actor()
		from.want("ok", "read", b.secret)
		from.want("ok", "symlink", "there", mount+"/l")
		to.want("ok", "read", mount+"/l")
		b.clean(to, "a link that is followed")
		to.want("ok", "readlink", mount+"/l")
		b.labelled(to, "a link that is read")
	})
}

// The options of a socket, its filter above all, are read with the labels of who has set
// them; a connection has those of the socket that was listened on.
func TestSocketOptions(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newChannelBench(t, tier)
		for _, c := range [][2]string{{"setfilter", "getfilter"}, {"setbuffer", "getbuffer"}} {
			from, to := b.actor(), b.actor()
			_, other := b.connected("dgram")
			from.want("ok", "pair", "dgram", "s", "t")
			to.want("ok", "borrow", "s", strconv.Itoa(from.cmd.Process.Pid), from.do("number", "s"))
			to.want("ok", "borrow", "t", strconv.Itoa(from.cmd.Process.Pid), from.do("number", "t"))
			from.want("ok", c[0], "s")
			to.want("ok", c[1], "s")
			b.clean(to, c[1]+" of what is clean")
			from.want("ok", "read", b.secret)
			from.want("ok", c[0], "s")
			to.want("ok", "getbuffer", "t")
			b.clean(to, c[1]+" of another socket")
			to.want("ok", c[1], "s")
			b.labelled(to, c[1])
			other.want("ok", "getbuffer", "s")
			b.clean(other, c[1])
		}
		port, err := freePort()
		if err != nil {
			t.Fatal(err)
		}
		from, to, client := b.actor(), b.actor(), b.actor()
		from.want("ok", "serve", "l", "tcp", "127.0.0.1:"+port)
		to.want("ok", "borrow", "l", strconv.Itoa(from.cmd.Process.Pid), from.do("number", "l"))
		client.want("ok", "reach", "s", "tcp", "127.0.0.1:"+port)
		from.want("ok", "read", b.secret)
		from.want("ok", "setfilter", "l")
		b.clean(to, "before it accepts")
		to.want("ok", "accept", "s", "l")
		b.labelled(to, "accepting with a filter")
		b.clean(client, "who has connected before")
	})
}

// A supervisor of system calls is told their arguments: there is none where labels are
// asked for, and no one who fills the memory of another.
func TestSupervisors(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newChannelBench(t, tier)
		a := b.actor()
		a.want("EPERM", "supervise")
		from, to := b.connected("stream")
		from.want("ok", "faults", "u")
		from.want("ok", "give", "s", "u")
		to.want("ok", "take", "s", "u")
		to.want("EPERM", "answerfaults", "u")
		from.want("ok", "answerfaults", "u")
	})
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBench(t, tier, "rule r:\n  block write file \"$D/never\"\n")
		b.actor().want("ok", "supervise")
	})
}

// The commands that change files unseen are refused where a policy is about files.
func TestUnseenCommands(t *testing.T) {
	commands := map[string]string{
		"EXT4_IOC_SETVERSION": "0x40086604", "FS_IOC_SETVERSION": "0x40087602", "FS_IOC32_SETVERSION": "0x40047602",
		"EXT4_IOC_MOVE_EXT": "0xc028660f", "EXT4_IOC_SWAP_BOOT": "0x6611", "F2FS_IOC_MOVE_RANGE": "0xc020f509",
		"XFS_IOC_SWAPEXT": "0xc0c0586d", "XFS_IOC_EXCHANGE_RANGE": "0x40285881", "XFS_IOC_COMMIT_RANGE": "0x40585883",
		"BTRFS_IOC_SNAP_CREATE": "0x50009401", "BTRFS_IOC_SUBVOL_CREATE": "0x5000940e", "BTRFS_IOC_SNAP_DESTROY": "0x5000940f",
		"BTRFS_IOC_SNAP_CREATE_V2": "0x50009417", "BTRFS_IOC_SUBVOL_CREATE_V2": "0x50009418", "BTRFS_IOC_SNAP_DESTROY_V2": "0x5000943f",
	}
	for policy, answer := range map[string]string{
		"rule r:\n  block read file \"$D/never\"\n":                        "EPERM",
		"source S = file \"$D/s\"\nrule r:\n  block connect any if S\n":    "EPERM",
		"rule r:\n  block connect \"127.0.0.9\"\n  block exec \"never\"\n": "ENOTTY",
	} {
		tiers(t, func(t *testing.T, tier Tier) {
			b := newBench(t, tier, policy)
			file, a := b.file("f"), b.actor()
			for name, number := range commands {
				for _, path := range []string{file, b.dir} {
					if got := a.do("command", path, number); got != answer {
						t.Errorf("%s of %s: %s, want %s", name, path, got, answer)
					}
				}
			}
			if answer == "EPERM" {
				if r := b.record(); r.Reason == "" || (r.Object != file && r.Object != b.dir) {
					t.Errorf("record %+v", r)
				}
			}
			a.want("ok", "command", file, "0x80086601") // FS_IOC_GETFLAGS
		})
	}
}

// A directory cannot be made to take capitals for small letters.
func TestCasefold(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBench(t, tier, "rule r:\n  block read file \"**/locked\"\n")
		dir := b.dir + "/folded"
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "casefold"); err != nil {
			if os.Getenv("ACTPLANE_TEST_KERNEL") == "new" {
				t.Fatal(err)
			}
			t.Skipf("this kernel's tmpfs does not take capitals for small letters: %v", err)
		}
		t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
		a := b.actor()
		a.want("EPERM", "command", dir, fmt.Sprint(0x40086602)) // FS_IOC_SETFLAGS
		a.want("ok", "command", b.dir, fmt.Sprint(0x40086602))
	})
}
