# SPDX-License-Identifier: Apache-2.0
"""locked.py FOLDER: tries a bit of everything, over and over, and ends when FOLDER/stop can be
seen to be there. What was opened before is used as well.

Writes to FOLDER/log, for each round in which something succeeded, the names of it, and to
FOLDER/computed how far it has come, through a mapping of memory.
"""
import mmap
import os
import signal
import socket
import sys
import time

folder = sys.argv[1]
log = os.open(f"{folder}/log", os.O_WRONLY | os.O_APPEND)
counter = mmap.mmap(os.open(f"{folder}/computed", os.O_RDWR), 4096)
source = open("/etc/hostname")
ours, theirs = socket.socketpair()
ours.setblocking(False)
signal.signal(signal.SIGTERM, lambda *_: os._exit(7))


def fork():
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


ATTEMPTS = {
    "open": lambda: open("/etc/hostname").close(),
    "read": lambda: os.pread(source.fileno(), 1, 0),
    "create": lambda: open("/tmp/x", "w").close(),
    "fork": fork,
    "send": lambda: theirs.send(b"x"),
    "signal": lambda: os.kill(os.getpid(), 0),
    "connect": lambda: socket.socket().connect_ex(("127.0.0.1", 81)) == 1 and os.open("/nothing", 0),
}
rounds = 0
while True:
    succeeded = []
    for name, act in ATTEMPTS.items():
        try:
            act()
            succeeded.append(name)
        except OSError:
            pass
    rounds += 1
    counter[0:16] = f"{rounds:16d}".encode()
    try:
        while ours.recv(4096):
            pass
    except OSError:
        pass
    try:
        os.write(log, f"{' '.join(succeeded)}\n".encode())
    except OSError:
        pass
    if os.path.exists(f"{folder}/stop"):
        os._exit(0)
    time.sleep(0.005)
