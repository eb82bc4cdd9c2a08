# SPDX-License-Identifier: Apache-2.0
"""Every way to a program: `git push` is denied by all of them, `git version` by none.

Runs in a container whose policy has: block exec "git" "push". Each way is tried
with both, so that a denial is the policy's and not a mistake of the attempt's.
"""
import ctypes
import mmap
import os
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time

import attempts

REPO = "/workspace/repo"
GIT = "/usr/bin/git"
PUSH = ["-C", REPO, "push", "origin", "main"]
STATUS = ["-C", REPO, "version"]


def quiet(command, **options):
    """A command's outcome; shells tell EPERM by 126 and their words."""
    ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, **options)
    if ran.returncode == 0:
        return
    if ran.returncode == -signal.SIGKILL or "Killed" in ran.stderr:
        os.kill(os.getpid(), signal.SIGKILL)
    # The loader's own word for a mapping that is refused.
    said = ran.stderr + ran.stdout
    if "Operation not permitted" in said or "failed to map segment" in said:
        raise PermissionError(1, ran.stderr)
    raise RuntimeError(f"status {ran.returncode}: {ran.stderr} {ran.stdout}")


def waited(child):
    """The outcome of a child that has become git."""
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code == 77:
        raise PermissionError(1, "denied")
    if code == -signal.SIGKILL:
        os.kill(os.getpid(), signal.SIGKILL)
    if code != 0:
        raise RuntimeError(f"status {code}")


def becoming(act):
    """Forks; the child calls ACT, which becomes another program, without output."""
    child = os.fork()
    if child == 0:
        try:
            null = os.open("/dev/null", os.O_RDWR)
            for fd in (0, 1, 2):
                os.dup2(null, fd)
            act()
        except PermissionError as error:
            os._exit(77 if error.errno == 1 else 78)
        except BaseException:
            os._exit(79)
        os._exit(80)
    waited(child)


def words(args):
    return " ".join(args)


def directly(args):
    quiet([GIT, *args])


def by_vfork(args):
    # A static-looking helper in C would be the same call: vfork shares all memory.
    libc = ctypes.CDLL(None)
    argv = (ctypes.c_char_p * (len(args) + 2))(b"git", *[a.encode() for a in args], None)
    pid = ctypes.c_int()
    error = libc.posix_spawn(ctypes.byref(pid), GIT.encode(), None, None, argv, None)
    if error == 1:
        raise PermissionError(1, "denied")
    if error:
        raise OSError(error, "posix_spawn")
    waited(pid.value)


def by_execveat(args):
    """execveat(fd, "", AT_EMPTY_PATH): fexecve without /proc."""
    def act():
        fd = os.open(GIT, os.O_PATH)
        argv = (ctypes.c_char_p * (len(args) + 2))(b"git", *[a.encode() for a in args], None)
        envp = (ctypes.c_char_p * 1)(None)
        attempts.syscall(322, fd, b"", argv, envp, 0x1000)
    becoming(act)


def by_32_bits(args):
    """execve as a 32-bit program calls it: other numbers, registers and pointers."""
    def act():
        memory = mmap.mmap(-1, 8192, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40, prot=7)  # MAP_32BIT
        at = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        strings, pointers = b"", []
        for word in ["git", *args]:
            pointers.append(at + 4096 + len(strings))
            strings += word.encode() + b"\0"
        path = at + 4096 + len(strings)
        memory[4096:4096 + len(strings) + len(GIT) + 1] = strings + GIT.encode() + b"\0"
        argv = struct.pack(f"{len(pointers) + 1}I", *pointers, 0)
        memory[2048:2048 + len(argv)] = argv
        # push rbx; mov eax, 11; mov ebx, path; mov ecx, argv; xor edx, edx; int 0x80; pop rbx; ret
        code = b"\x53\xb8" + struct.pack("I", 11) + b"\xbb" + struct.pack("I", path) + b"\xb9" + struct.pack("I", at + 2048)
        code += b"\x31\xd2\xcd\x80\x5b\xc3"
        memory[:len(code)] = code
        error = -ctypes.CFUNCTYPE(ctypes.c_int)(at)()
        raise OSError(error, os.strerror(error))
    becoming(act)


def by_loader(args):
    quiet(["/lib64/ld-linux-x86-64.so.2", GIT, *args])


def by_memfd(args):
    """A copy in memory that has no path in any mount."""
    def act():
        fd = os.memfd_create("git")
        with open(GIT, "rb") as program:
            os.sendfile(fd, program.fileno(), 0, os.fstat(program.fileno()).st_size)
        os.execve(f"/proc/self/fd/{fd}", ["git", *args], os.environ)
    becoming(act)


def by_unlinked(args):
    """A copy whose name is gone when it runs."""
    def act():
        os.makedirs("/tmp/gone", exist_ok=True)
        shutil.copy(GIT, "/tmp/gone/git")
        fd = os.open("/tmp/gone/git", os.O_RDONLY)
        os.unlink("/tmp/gone/git")
        os.execve(fd, ["git", *args], os.environ)
    becoming(act)


def by_thread(args):
    """exec by a thread that is not the leader, while the leader waits."""
    def act():
        thread = threading.Thread(target=lambda: exec_or_exit(args))
        thread.start()
        thread.join()
    becoming(act)


def by_orphan_thread(args):
    """exec by a thread whose leader has exited."""
    def act():
        def late():
            time.sleep(0.3)
            exec_or_exit(args)
        threading.Thread(target=late).start()
        attempts.libc.pthread_exit(None)
    becoming(act)


def exec_or_exit(args):
    try:
        os.execv(GIT, ["git", *args])
    except PermissionError as error:
        os._exit(77 if error.errno == 1 else 78)


def by_daemon(args):
    """setsid and a double fork: the parent is 1, the group and the session are new."""
    read, write = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.close(read)
            try:
                directly(args)
                os.write(write, b"allowed")
            except PermissionError:
                os.write(write, b"denied")
            except BaseException as error:
                os.write(write, repr(error).encode())
            os._exit(0)
        os._exit(0)
    os.wait()
    os.close(write)
    said = os.fdopen(read, "rb").read().decode()
    if said == "denied":
        raise PermissionError(1, said)
    if said != "allowed":
        raise RuntimeError(said or "killed")


def script(text):
    """A script in a file, run by its first line."""
    def act(args):
        name = f"/tmp/script-{os.getpid()}"
        with open(name, "w") as file:
            # The kernel makes one argument of what stands behind an interpreter.
            file.write(text.format(words(args), args[2]))
        os.chmod(name, 0o755)
        quiet([name])
    return act


def as_user(command):
    def act(args):
        quiet([*command, *args], user=1000, group=1000, env={"HOME": "/tmp", "PATH": os.environ["PATH"]})
    return act


def prepare():
    os.makedirs("/tmp/copies", exist_ok=True)
    shutil.copy(GIT, "/tmp/copies/git")
    os.makedirs("/tmp/links", exist_ok=True)
    os.symlink(GIT, "/tmp/links/other")
    os.makedirs("/usr/hard", exist_ok=True)
    os.link(GIT, "/usr/hard/git")
    shutil.copy("/usr/bin/env", "/tmp/as-root")
    os.chmod("/tmp/as-root", 0o4755)
    os.symlink("/", "/tmp/root")


def ways():
    yield "directly", directly
    yield "by name in PATH", lambda a: quiet(["git", *a])
    yield "os.posix_spawn", by_vfork
    yield "os.fork and os.execve", lambda a: becoming(lambda: os.execve(GIT, ["git", *a], {}))
    yield "os.system", lambda a: quiet([sys.executable, "-S", "-c", "import os,sys; sys.exit(os.waitstatus_to_exitcode(os.system(sys.argv[1])))", words([GIT, *a])])
    yield "sh -c", lambda a: quiet(["sh", "-c", words(["git", *a])])
    yield "bash -c", lambda a: quiet(["bash", "-c", words(["git", *a]) + "; exit $?"])
    yield "exec -a", lambda a: quiet(["bash", "-c", words(["exec -a harmless git", *a])])
    yield "env -i", lambda a: quiet(["env", "-i", GIT, *a])
    yield "nohup", lambda a: quiet(["nohup", "git", *a])
    yield "timeout", lambda a: quiet(["timeout", "60", "git", *a])
    yield "xargs", lambda a: quiet(["sh", "-c", f"echo {words(a)} | xargs git"])
    yield "find -exec", lambda a: quiet(["sh", "-c", f"find /usr/bin/git -exec git {words(a)} ';' -quit 2>&1 | tee /tmp/find >&2; grep -q permitted /tmp/find && exit 126; exit 0"])
    yield "script", lambda a: quiet(["script", "-qec", words(["git", *a]), "/dev/null"])
    yield "setsid", lambda a: quiet(["setsid", "-w", "git", *a])
    yield "a daemon", by_daemon
    yield "a shell script", script("#!/bin/sh\nexec git {}\n")
    yield "an env script", script("#!/usr/bin/env -S git {}\n")
    yield "an interpreter's argument", script("#!/usr/bin/git {1}\n")
    yield "make", lambda a: quiet(["make", "-s", "-f", "/dev/fd/0", "--eval", f"x:;@{words(['git', *a])}", "x"])
    yield "a symlink of another name", lambda a: quiet(["/tmp/links/other", *a])
    yield "a hard link", lambda a: quiet(["/usr/hard/git", *a])
    yield "a copy", lambda a: quiet(["/tmp/copies/git", *a])
    yield "/proc/self/root", lambda a: quiet(["/proc/self/root/usr/bin/git", *a])
    yield "dots and links", lambda a: quiet(["/tmp/root/tmp/../usr/./bin//git", *a])
    yield "a relative path", lambda a: quiet(["./git", *a], cwd="/usr/bin")
    yield "fexecve", lambda a: becoming(lambda: os.execve(os.open(GIT, os.O_RDONLY), ["git", *a], os.environ))
    yield "execveat of an O_PATH descriptor", by_execveat
    yield "a 32-bit system call", by_32_bits
    yield "a thread", by_thread
    yield "a thread without leader", by_orphan_thread
    yield "another user", as_user([GIT])
    yield "a setuid program", as_user(["/tmp/as-root", GIT])
    yield "su", lambda a: quiet(["su", "-s", "/bin/sh", "-c", words(["git", *a])])
    yield "nsenter", lambda a: quiet(["nsenter", "git", *a])
    yield "nsenter into process 1", lambda a: quiet(["nsenter", "-t", "1", "-m", "-p", "-n", "git", *a])
    yield "unshare", lambda a: quiet(["unshare", "-m", "-n", "git", *a])
    yield "chroot", lambda a: quiet(["chroot", "/", "git", *a])
    yield "the loader", by_loader
    yield "a memfd", by_memfd
    yield "a file without a name", by_unlinked


def main():
    prepare()
    for name, way in ways():
        # Another program's exec can be seen too late for EPERM on the fmod_ret
        # tier: then it is killed before its first instruction.
        attempts.verdict(f"git push is denied: {name}", "denied|SIGKILL", lambda: way(PUSH))
        # What has no name may have any, so the rule on wget denies it too; what is
        # only mapped, not executed, is denied whatever its arguments.
        wanted = "denied|SIGKILL" if way in (by_memfd, by_loader) else "allowed"
        attempts.verdict(f"git version is {wanted.split('|')[0]}: {name}", wanted, lambda: way(STATUS))
    attempts.done()


main()
