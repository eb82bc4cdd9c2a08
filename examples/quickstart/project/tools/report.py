# SPDX-License-Identifier: Apache-2.0
"""report.py HOST PORT [--token]: tells a server that the work is done.

With --token it tells it twice: first without, then with what is in .env. The
result is the exit code alone: 0, 1 if the first time fails, 100 and the error's
number if the second does.
"""

import socket
import sys


def tell(path):
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=20) as peer:
        peer.sendall(b"GET /%s HTTP/1.0\r\n\r\n" % path)
        peer.recv(64)


tell(b"done")
if "--token" in sys.argv:
    with open(".env", "rb") as file:
        token = file.read().strip()
    try:
        tell(token)
    except OSError as error:
        sys.exit(100 + error.errno)
