# SPDX-License-Identifier: Apache-2.0
#
# As held-go, in Python: steps run in threads.
import os
import socket
import sys
import threading
import time


def step(op, what):
    if op == "open":
        open(what).close()
    elif op == "unlink":
        os.unlink(what)
    elif op == "exec":
        os.execv(what, [what])
    else:
        host, port = what.split(":")
        kind = socket.SOCK_STREAM if op == "connect" else socket.SOCK_DGRAM
        with socket.socket(socket.AF_INET, kind) as s:
            if op == "connect":
                s.connect((host, int(port)))
            else:
                s.sendto(b"x", (host, int(port)))


def tell(op, what):
    try:
        step(op, what)
        print(op, "ok", flush=True)
    except ConnectionRefusedError:
        print(op, "ok", flush=True)
    except PermissionError:
        print(op, "EPERM", flush=True)
    except OSError as e:
        print(op, e, flush=True)


def busy():
    while True:
        time.sleep(0.01)


threading.Thread(target=busy, daemon=True).start()
arguments = sys.argv[1:]
for op, what in zip(arguments[::2], arguments[1::2]):
    if op == "exec":
        tell(op, what)  # all other threads end with it
        continue
    thread = threading.Thread(target=tell, args=(op, what))
    thread.start()
    thread.join()
