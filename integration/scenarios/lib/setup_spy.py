# SPDX-License-Identifier: Apache-2.0
"""setup_spy.py FOLDER: looks for processes of runc that enter the container, and tries
to get hold of them, until FOLDER/stop is there. Prints what it could do, and how many
such processes it met.

They still have the host's files open and are under no rule: the container must have
no way in. A success counts only if the process was runc's before and after it.
"""
import ctypes
import os
import sys

import attempts

PTRACE_SEIZE = 0x4206
seen, tries, got = set(), {}, {}


def is_setup(pid):
    try:
        with open(f"/proc/{pid}/comm") as file:
            return file.read().startswith("runc:[")
    except OSError:
        return False


def trace(pid):
    attempts.syscall(101, PTRACE_SEIZE, pid, 0, 0)


def read_memory(pid):
    buffer = ctypes.create_string_buffer(8)
    vector = (ctypes.c_uint64 * 2)(ctypes.addressof(buffer), 8)
    remote = (ctypes.c_uint64 * 2)(0x400000, 8)
    try:
        attempts.syscall(310, pid, vector, 1, remote, 1, 0)
    except OSError as error:
        if error.errno != 14:  # EFAULT: only the address is wrong
            raise


def take_descriptor(pid):
    pidfd = attempts.syscall(434, pid, 0)
    try:
        os.close(attempts.syscall(438, pidfd, 3, 0))
    finally:
        os.close(pidfd)


ACTS = {
    "open its memory": lambda pid: os.close(os.open(f"/proc/{pid}/mem", os.O_RDWR)),
    "read its memory": read_memory,
    "trace it": trace,
    "take its descriptor": take_descriptor,
    "look at its program": lambda pid: os.readlink(f"/proc/{pid}/exe"),
    "open its program": lambda pid: os.close(os.open(f"/proc/{pid}/exe", os.O_RDONLY)),
    "see its files": lambda pid: os.readlink(f"/proc/{pid}/fd/0"),
    "open its files": lambda pid: os.close(os.open(f"/proc/{pid}/fd/0", os.O_RDONLY)),
    "enter its root": lambda pid: os.listdir(f"/proc/{pid}/root/"),
    "read its environment": lambda pid: open(f"/proc/{pid}/environ").read(),
}

folder = sys.argv[1]
caught = False
while not caught and not os.path.exists(f"{folder}/stop"):
    for name in os.listdir("/proc"):
        if not name.isdigit() or not is_setup(pid := int(name)):
            continue
        for what, act in ACTS.items():
            if not is_setup(pid):
                break
            seen.add(pid)
            try:
                act(pid)
            except OSError:
                tries[what] = tries.get(what, 0) + 1
                continue
            if is_setup(pid):
                got[what] = got.get(what, 0) + 1
            if what == "trace it":
                caught = True  # it stops at its next signal until we are gone
for what in ACTS:
    if what in got:
        print(f"not ok the container could {what}: {got[what]} times")
    elif what in tries:
        print(f"ok the container could not {what}, {tries[what]} times")
    else:
        print(f"skip {what}: it was never quick enough")
print(f"met {len(seen)}")
attempts.done()
