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
import sys
import traceback

libc = ctypes.CDLL(None, use_errno=True)
OTHER = 255
# What went past the policy and then could not be done anyway.
UNSUPPORTED = ("ENOTSUP", "EAFNOSUPPORT")


def syscall(number, *args):
    """A system call that the C library or Python has no function for."""
    result = libc.syscall(number, *args)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def outcome(act):
    """Runs ACT in a child: "allowed", "denied" (EPERM), or what else happened.

    The child tells by its exit status alone: a pipe would carry its labels here.
    """
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        status = OTHER
        try:
            act()
            status = 0
        except OSError as error:
            status = error.errno or OTHER
        except BaseException:  # also sys.exit
            traceback.print_exc()
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    code = os.WEXITSTATUS(status)
    # EPERM is the kernel's; EACCES would be a mode's or AppArmor's.
    words = {0: "allowed", errno.EPERM: "denied", OTHER: "an exception, told above"}
    return words.get(code) or errno.errorcode.get(code, str(code))


def report(name, wanted, got):
    if got in wanted.split("|"):
        print(f"ok {name}", flush=True)
    elif got in UNSUPPORTED:
        print(f"skip {name}: not on this kernel and file system ({got})", flush=True)
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
