# SPDX-License-Identifier: Apache-2.0
"""Attempts: acts that must go through or must not, reported in the scenarios' form.

Imported by the programs that scenarios run inside of containers. Each attempt is
made in a child of its own, so that what it gains (labels, limits, directories)
goes with it.
"""
import ctypes
import errno
import os
import signal
import traceback

libc = ctypes.CDLL(None, use_errno=True)
UNSUPPORTED = repr(OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP)))


def syscall(number, *args):
    """A system call that the C library or Python has no function for."""
    result = libc.syscall(number, *args)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def outcome(act):
    """Runs ACT in a child: "allowed", "denied" (EPERM), or what else happened."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            act()
            os.write(write, b"allowed")
        except OSError as error:
            # EPERM is the kernel's; EACCES would be a mode's or AppArmor's.
            os.write(write, b"denied" if error.errno == errno.EPERM else repr(error).encode())
        except BaseException:  # also sys.exit
            os.write(write, traceback.format_exc(limit=-2).replace("\n", " | ").encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        said = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    return said


def report(name, wanted, got):
    if got in wanted.split("|"):
        print(f"ok {name}", flush=True)
    elif got == UNSUPPORTED:
        print(f"skip {name}: this file system cannot do it on this kernel", flush=True)
    else:
        print(f"not ok {name}: wanted {wanted}, got {got}", flush=True)


def allowed(name, act):
    report(name, "allowed", outcome(act))


def denied(name, act):
    report(name, "denied", outcome(act))


def verdict(name, wanted, act):
    report(name, wanted, outcome(act))


def done():
    """The last word: whoever relays the results looks for it."""
    print("done", flush=True)
