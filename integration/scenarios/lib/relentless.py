# SPDX-License-Identifier: Apache-2.0
"""relentless.py FOLDER: tries what is forbidden, without end, until FOLDER/stop is there; then
makes FOLDER/stopped.

Counts in FOLDER/tries what was tried; every success goes to FOLDER/successes.
"""
import os
import socket
import subprocess
import sys

folder = sys.argv[1]
tries = 0
successes = open(f"{folder}/successes", "w")


def attempt(name, act):
    global tries
    tries += 1
    try:
        act()
    except PermissionError as error:
        if error.errno == 1:
            return
        print(name, error, file=successes, flush=True)
    except OSError as error:
        # Refused by the peer, or whatever: it went past the policy.
        print(name, error, file=successes, flush=True)
    else:
        print(name, "succeeded", file=successes, flush=True)


def connect():
    with socket.socket() as client:
        client.connect(("127.0.0.1", 81))


while not os.path.exists(f"{folder}/stop"):
    for _ in range(50):
        attempt("create", lambda: os.close(os.open("/tmp/forbidden", os.O_WRONLY | os.O_CREAT)))
        attempt("open", lambda: os.close(os.open("/etc/hostname", os.O_RDONLY)))
        attempt("unlink", lambda: os.unlink("/etc/debian_version"))
        attempt("rename", lambda: os.rename("/etc/debian_version", "/etc/debian_version2"))
        attempt("connect", connect)
    attempt("exec", lambda: subprocess.run(["touch", "/tmp/x"], check=True))
    with open(f"{folder}/tries.new", "w") as file:
        file.write(str(tries))
    os.rename(f"{folder}/tries.new", f"{folder}/tries")
open(f"{folder}/stopped", "w").close()
