# SPDX-License-Identifier: Apache-2.0
"""Every change of a file and its name, on each kind of file system.

files.py KIND FOLDER: FOLDER has "free" and "nowrite", "keep", "noappend", "noread",
"noopen", "fixed", each with the files a and b. The policy denies writing below
"nowrite", removing below "keep", and so on; the same in "free" goes through.
"""
import os
import socket
import struct
import sys

import attempts
from attempts import syscall

KIND, TOP = sys.argv[1], sys.argv[2]
FREE = f"{TOP}/free"
AT_FDCWD = -100
RENAME_NOREPLACE, RENAME_EXCHANGE = 1, 2


def touch(name, flags=0):
    os.close(os.open(name, os.O_WRONLY | os.O_CREAT | flags, 0o644))


def opened(name, flags, then=lambda fd: None):
    fd = os.open(name, flags, 0o644)
    then(fd)
    os.close(fd)


def openat2(name, flags):
    how = struct.pack("QQQ", flags, 0o644 if flags & os.O_CREAT else 0, 0)
    os.close(syscall(437, AT_FDCWD, name.encode(), how, len(how)))


def renameat2(old, new, flags):
    syscall(316, AT_FDCWD, old.encode(), AT_FDCWD, new.encode(), flags)


def bind_socket(name):
    os.chdir(os.path.dirname(name))
    socket.socket(socket.AF_UNIX).bind(os.path.basename(name))


def name_it(fd, name):
    """linkat with AT_SYMLINK_FOLLOW, which os.link leaves out."""
    syscall(265, AT_FDCWD, f"/proc/self/fd/{fd}".encode(), AT_FDCWD, name.encode(), 0x400)


def link_unnamed(folder, name):
    """A file made without a name gets one."""
    fd = os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o644)
    os.write(fd, b"unnamed")
    name_it(fd, name)


def in_root(root, act):
    os.chroot(root)
    os.chdir("/")
    act()


def writes(d, other):
    """Acts that change the folder D or what is in it; OTHER is a folder for the other end."""
    yield "open for writing", lambda: opened(f"{d}/a", os.O_WRONLY)
    yield "open for both", lambda: opened(f"{d}/a", os.O_RDWR)
    yield "open with O_TRUNC", lambda: opened(f"{d}/a", os.O_WRONLY | os.O_TRUNC)
    yield "open read-only with O_TRUNC", lambda: opened(f"{d}/a", os.O_RDONLY | os.O_TRUNC)
    yield "open with O_APPEND and O_TRUNC", lambda: opened(f"{d}/a", os.O_WRONLY | os.O_APPEND | os.O_TRUNC)
    yield "open with O_APPEND and O_RDWR", lambda: opened(f"{d}/a", os.O_RDWR | os.O_APPEND)
    yield "openat2", lambda: openat2(f"{d}/a", os.O_WRONLY)
    yield "create", lambda: touch(f"{d}/new1")
    yield "create exclusively", lambda: touch(f"{d}/new2", os.O_EXCL)
    yield "create with openat2", lambda: openat2(f"{d}/new3", os.O_WRONLY | os.O_CREAT)
    yield "creat(2)", lambda: os.close(syscall(85, f"{d}/new4".encode(), 0o644))
    yield "create with O_APPEND", lambda: touch(f"{d}/new5", os.O_APPEND)
    yield "link an unnamed file in", lambda: link_unnamed(other, f"{d}/new6")
    yield "mkdir", lambda: os.mkdir(f"{d}/folder")
    yield "mkfifo", lambda: os.mkfifo(f"{d}/fifo")
    yield "bind a socket", lambda: bind_socket(f"{d}/socket")
    yield "symlink", lambda: os.symlink("/nowhere", f"{d}/symlink")
    yield "link in", lambda: os.link(f"{other}/a", f"{d}/linked")
    yield "link out", lambda: os.link(f"{d}/b", f"{other}/from-{os.path.basename(d)}")
    yield "truncate(2)", lambda: os.truncate(f"{d}/b", 1)
    yield "truncate(2) to a greater size", lambda: os.truncate(f"{d}/b", 100)
    yield "chmod", lambda: os.chmod(f"{d}/a", 0o600)
    yield "fchmod", lambda: opened(f"{d}/a", os.O_RDONLY, lambda fd: os.fchmod(fd, 0o640))
    yield "chown", lambda: os.chown(f"{d}/a", 1, 1)
    yield "fchown", lambda: opened(f"{d}/a", os.O_RDONLY, lambda fd: os.fchown(fd, 2, 2))
    yield "utimes", lambda: os.utime(f"{d}/a", (1, 1))
    yield "utimes of a descriptor", lambda: opened(f"{d}/a", os.O_RDONLY, lambda fd: os.utime(fd, (2, 2)))
    if KIND != "tmpfs":  # which has user.* from 6.6 on
        yield "setxattr", lambda: os.setxattr(f"{d}/a", "user.x", b"1")
        yield "fsetxattr", lambda: opened(f"{d}/a", os.O_RDONLY, lambda fd: os.setxattr(fd, "user.y", b"1"))
    yield "by a path with dots", lambda: opened(f"{other}/../{os.path.basename(d)}/./a", os.O_WRONLY)
    yield "by a relative path", lambda: (os.chdir(d), opened("a", os.O_WRONLY))
    yield "by a linked folder", lambda: opened(f"{TOP}/to-{os.path.basename(d)}/a", os.O_WRONLY)
    yield "by /proc/self/root", lambda: opened(f"/proc/self/root{d}/a", os.O_WRONLY)
    yield "by /proc/self/cwd", lambda: (os.chdir(d), opened("/proc/self/cwd/a", os.O_WRONLY))
    yield "by an O_PATH descriptor", lambda: opened(f"{d}/a", os.O_PATH, lambda fd: opened(f"/proc/self/fd/{fd}", os.O_WRONLY))
    yield "by reopening a descriptor", lambda: opened(f"{d}/a", os.O_RDONLY, lambda fd: opened(f"/proc/self/fd/{fd}", os.O_WRONLY))
    yield "in a chroot", lambda: in_root(TOP, lambda: opened(f"/{os.path.basename(d)}/a", os.O_WRONLY))
    yield "in a chroot into the folder", lambda: in_root(d, lambda: opened("/a", os.O_WRONLY))
    yield from removals(d, other)


def removals(d, other):
    """Acts that remove a name of the folder D, the last ones of it."""
    for number in range(6):
        yield None, lambda number=number: touch(f"{other}/r{number}")
    yield "rename out", lambda: os.rename(f"{d}/a", f"{other}/out")
    yield "exchange", lambda: renameat2(f"{d}/b", f"{other}/r0", RENAME_EXCHANGE)
    yield "exchange the other way", lambda: renameat2(f"{other}/r1", f"{d}/b", RENAME_EXCHANGE)
    yield "rename over", lambda: os.rename(f"{other}/r2", f"{d}/b")
    yield "unlink", lambda: os.unlink(f"{d}/b")
    yield "rmdir", lambda: os.rmdir(f"{d}/empty")


def snapshot(top):
    """All there is to see below a folder but access times."""
    seen = {}
    for folder, folders, files in os.walk(top):
        for name in ["", *folders, *files]:
            path = os.path.join(folder, name)
            stat = os.lstat(path)
            # A link count changes by a link elsewhere, which is none of these files' names.
            seen[path] = (stat.st_ino, stat.st_mode, stat.st_uid, stat.st_gid, stat.st_size, stat.st_mtime_ns, stat.st_nlink)
    return seen


def attempt_all(verdict, word, acts):
    for name, act in acts:
        if name is None:
            attempts.outcome(act)
        else:
            verdict(f"{KIND}: {word}: {name}", act)


def names():
    """Denied and permitted changes of contents, names and attributes."""
    before = snapshot(f"{TOP}/nowrite")
    os.symlink(f"{TOP}/nowrite", f"{TOP}/to-nowrite")
    os.symlink(FREE, f"{TOP}/to-free")
    os.mkdir(f"{TOP}/other")
    os.mkdir(f"{FREE}/empty")
    for name in "ab":
        touch(f"{TOP}/other/{name}")
    attempt_all(attempts.denied, "denied", writes(f"{TOP}/nowrite", f"{TOP}/other"))
    after = snapshot(f"{TOP}/nowrite")
    attempts.report(f"{KIND}: what was denied changed nothing", "same", "same" if before == after else f"{sorted(set(before.items()) ^ set(after.items()))}")
    attempts.allowed(f"{KIND}: reading where writing is denied", lambda: opened(f"{TOP}/nowrite/a", os.O_RDONLY))
    attempts.allowed(f"{KIND}: appending where writing is denied", lambda: opened(f"{TOP}/nowrite/a", os.O_WRONLY | os.O_APPEND))
    attempt_all(attempts.allowed, "permitted", writes(FREE, f"{TOP}/other"))


def operations():
    """Rules on the other operations."""
    before = snapshot(f"{TOP}/keep")
    attempt_all(attempts.denied, "keep", removals(f"{TOP}/keep", f"{TOP}/other"))
    after = snapshot(f"{TOP}/keep")
    attempts.report(f"{KIND}: keep: nothing is gone", "same", "same" if before == after else f"{sorted(set(before.items()) ^ set(after.items()))}")
    attempts.allowed(f"{KIND}: keep: writing", lambda: opened(f"{TOP}/keep/a", os.O_WRONLY | os.O_TRUNC))
    attempts.allowed(f"{KIND}: keep: creating", lambda: touch(f"{TOP}/keep/c"))
    attempts.denied(f"{KIND}: noappend: appending", lambda: opened(f"{TOP}/noappend/a", os.O_WRONLY | os.O_APPEND))
    attempts.allowed(f"{KIND}: noappend: writing", lambda: opened(f"{TOP}/noappend/a", os.O_WRONLY))
    attempts.denied(f"{KIND}: noread: reading", lambda: opened(f"{TOP}/noread/a", os.O_RDONLY))
    attempts.denied(f"{KIND}: noread: reading and writing", lambda: opened(f"{TOP}/noread/a", os.O_RDWR))
    attempts.allowed(f"{KIND}: noread: writing", lambda: opened(f"{TOP}/noread/a", os.O_WRONLY))
    attempts.denied(f"{KIND}: noopen: reading", lambda: opened(f"{TOP}/noopen/a", os.O_RDONLY))
    attempts.denied(f"{KIND}: noopen: writing", lambda: opened(f"{TOP}/noopen/a", os.O_WRONLY))
    attempts.denied(f"{KIND}: noopen: creating", lambda: touch(f"{TOP}/noopen/c"))
    attempts.report(f"{KIND}: noopen: no empty file stays", "no", "yes" if os.path.exists(f"{TOP}/noopen/c") else "no")


def taint():
    opened(f"{TOP}/secret", os.O_RDONLY, lambda fd: os.read(fd, 100))


def tainted(act):
    """ACT after the secret was read."""
    return lambda: (taint(), act())


def leaks(name):
    """An act that is denied if the file makes its reader tainted."""
    return lambda: (opened(name, os.O_RDONLY, lambda fd: os.read(fd, 100)), opened(f"{TOP}/out/a", os.O_WRONLY))


def after(fd_act):
    """FD_ACT on a descriptor that was opened for writing before the secret was read."""
    def act():
        fd = os.open(f"{TOP}/out/a", os.O_WRONLY)
        taint()
        fd_act(fd)
    return act


def through_pipe(fd):
    read, write = os.pipe()
    os.write(write, b"xx")
    os.splice(read, fd, 2)


def labels():
    """What has read a secret writes to no file of "out"; the label sticks to copies."""
    with open(f"{TOP}/secret", "w") as file:
        file.write("token")
    source = os.open(f"{FREE}/source", os.O_RDWR | os.O_CREAT, 0o644)
    os.write(source, b"clean")
    attempts.allowed(f"{KIND}: label: without", lambda: opened(f"{TOP}/out/a", os.O_WRONLY))
    attempts.denied(f"{KIND}: label: open", tainted(lambda: opened(f"{TOP}/out/a", os.O_WRONLY)))
    attempts.denied(f"{KIND}: label: create", tainted(lambda: touch(f"{TOP}/out/new")))
    attempts.denied(f"{KIND}: label: unlink", tainted(lambda: os.unlink(f"{TOP}/out/a")))
    attempts.denied(f"{KIND}: label: write(2) later", after(lambda fd: os.write(fd, b"x")))
    attempts.denied(f"{KIND}: label: pwrite(2) later", after(lambda fd: os.pwrite(fd, b"x", 0)))
    attempts.denied(f"{KIND}: label: writev(2) later", after(lambda fd: os.writev(fd, [b"x", b"y"])))
    attempts.denied(f"{KIND}: label: sendfile(2) later", after(lambda fd: os.sendfile(fd, source, 0, 5)))
    attempts.denied(f"{KIND}: label: copy_file_range(2) later", after(lambda fd: os.copy_file_range(source, fd, 5, 0, 0)))
    attempts.denied(f"{KIND}: label: splice(2) later", after(through_pipe))
    attempts.denied(f"{KIND}: label: ftruncate(2) later", after(lambda fd: os.ftruncate(fd, 0)))
    os.close(source)

    copy = f"{FREE}/copy"
    attempts.allowed(f"{KIND}: label: a copy", tainted(lambda: touch(copy)))
    attempts.denied(f"{KIND}: label: the copy carries it", leaks(copy))
    os.rename(copy, f"{FREE}/renamed")
    attempts.denied(f"{KIND}: label: carried through a rename", leaks(f"{FREE}/renamed"))
    os.link(f"{FREE}/renamed", f"{FREE}/hard")
    os.unlink(f"{FREE}/renamed")
    attempts.denied(f"{KIND}: label: carried through a hard link", leaks(f"{FREE}/hard"))
    os.symlink("hard", f"{FREE}/soft")
    attempts.denied(f"{KIND}: label: carried through a symlink", leaks(f"{FREE}/soft"))
    os.link(f"{TOP}/secret", f"{FREE}/innocent")
    attempts.denied(f"{KIND}: label: the secret by a hard link", leaks(f"{FREE}/innocent"))
    os.rename(f"{TOP}/secret", f"{FREE}/moved")
    attempts.denied(f"{KIND}: label: the secret by another name", leaks(f"{FREE}/moved"))
    attempts.allowed(f"{KIND}: label: others are clean", leaks(f"{FREE}/source"))
    os.rename(f"{FREE}/moved", f"{TOP}/secret")

    def unnamed():
        fd = os.open(FREE, os.O_TMPFILE | os.O_RDWR, 0o644)
        taint()
        os.write(fd, b"token")
        name_it(fd, f"{FREE}/named")
    attempts.allowed(f"{KIND}: label: an unnamed file gets a name", unnamed)
    if os.path.exists(f"{FREE}/named"):
        attempts.denied(f"{KIND}: label: carried by a file that had no name", leaks(f"{FREE}/named"))


def lower():
    """Overlay: files of the image, which are copied up on the first change."""
    docs = "/usr/lib/locked"
    attempts.denied("image: first write", lambda: opened(f"{docs}/a", os.O_WRONLY))
    attempts.denied("image: chmod", lambda: os.chmod(f"{docs}/a", 0o600))
    attempts.denied("image: utimes", lambda: os.utime(f"{docs}/a", (1, 1)))
    attempts.denied("image: setxattr", lambda: os.setxattr(f"{docs}/a", "user.x", b"1"))
    attempts.denied("image: unlink", lambda: os.unlink(f"{docs}/a"))
    attempts.denied("image: rename", lambda: os.rename(f"{docs}/a", f"{docs}/b"))
    attempts.denied("image: link", lambda: os.link(f"{docs}/a", "/tmp/a"))
    free = "/usr/lib/unlocked"
    attempts.allowed("image: permitted: first write", lambda: opened(f"{free}/a", os.O_WRONLY))
    attempts.allowed("image: permitted: chmod", lambda: os.chmod(f"{free}/b", 0o600))
    attempts.allowed("image: permitted: unlink", lambda: os.unlink(f"{free}/a"))
    attempts.allowed("image: permitted: rename", lambda: os.rename(f"{free}/b", f"{free}/c"))

    # Read (which labels the inode of the image), copied up, renamed, read again.
    read = lambda name: lambda: opened(name, os.O_RDONLY, lambda fd: os.read(fd, 100))
    attempts.allowed("image: a secret is read", read("/usr/lib/hidden/secret"))
    os.chmod("/usr/lib/hidden/secret", 0o600)
    attempts.denied("image: label kept through copy-up", leaks("/usr/lib/hidden/secret"))
    os.rename("/usr/lib/hidden/secret", "/usr/lib/hidden/moved")
    attempts.denied("image: label kept through copy-up and rename", leaks("/usr/lib/hidden/moved"))
    # The other name of a hard link in the image becomes a file of its own when one is copied up.
    attempts.allowed("image: a hard-linked secret is read", read("/usr/lib/hidden/secret-linked"))
    attempts.denied("image: label by the other name", leaks("/usr/lib/hidden/other"))
    os.chmod("/usr/lib/hidden/other", 0o600)
    attempts.denied("image: label by the other name, copied up", leaks("/usr/lib/hidden/other"))
    attempts.denied("image: label by the name that was not copied up", leaks("/usr/lib/hidden/secret-linked"))


names()
operations()
labels()
if KIND == "overlay":
    lower()
attempts.done()
