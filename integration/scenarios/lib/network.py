# SPDX-License-Identifier: Apache-2.0
"""Connections and datagrams, by address and by Unix name.

network.py some: by a policy that blocks ports 81 of 127.0.0.1 and ::1, the sockets
/tmp/blocked.sock and @blocked, and all connections of who has read /tmp/secret.
network.py any: by a policy that blocks all of them.
"""
import ctypes
import os
import socket
import struct
import subprocess
import sys
import threading

import attempts
from attempts import allowed, denied

V4, V6, UNIX = socket.AF_INET, socket.AF_INET6, socket.AF_UNIX
TCP, UDP = socket.SOCK_STREAM, socket.SOCK_DGRAM
GUEST = "/run/actplane/bin/actplane-guest"


def listen(family, kind, address):
    """A server that takes whatever comes."""
    server = socket.socket(family, kind)
    if family == V6:
        server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    server.bind(address)
    if kind == TCP:
        server.listen(64)
    return server


def connect(family, kind, address):
    with socket.socket(family, kind) as client:
        client.connect(address)


def connect_nonblocking(address):
    with socket.socket(V4, TCP) as client:
        client.setblocking(False)
        try:
            client.connect(address)
        except BlockingIOError:
            pass


def fast_open(address):
    """TCP Fast Open: the connection comes with the first data."""
    with socket.socket(V4, TCP) as client:
        client.sendto(b"x", 0x20000000, address)


def send_to(family, address):
    with socket.socket(family, UDP) as client:
        client.sendto(b"x", address)


def send_unspecified(address):
    """The kernel takes AF_UNSPEC for AF_INET here."""
    with socket.socket(V4, UDP) as client:
        name = struct.pack("=HH4s8x", 0, socket.htons(address[1]), socket.inet_aton(address[0]))
        attempts.syscall(44, client.fileno(), b"x", 1, 0, name, 16)


def send_many(address):
    """sendmmsg of one datagram to a free port and one to ADDRESS."""
    with socket.socket(V4, UDP) as client:
        data = ctypes.create_string_buffer(b"x")
        iov = struct.pack("QQ", ctypes.addressof(data), 1)
        iov_buffer = ctypes.create_string_buffer(iov)
        headers, keep = b"", []
        for port in (82, address[1]):
            name = ctypes.create_string_buffer(struct.pack("=HH4s8x", V4, socket.htons(port), socket.inet_aton(address[0])))
            keep.append(name)
            headers += struct.pack("QIxxxxQQQQIxxxxIxxxx", ctypes.addressof(name), 16, ctypes.addressof(iov_buffer), 1, 0, 0, 0, 0)
        vector = ctypes.create_string_buffer(headers)
        # The error of a later datagram is told by the next call.
        if attempts.syscall(307, client.fileno(), vector, 2, 0) == 1:
            attempts.syscall(307, client.fileno(), ctypes.byref(vector, 64), 1, 0)


def connected_udp(address, act):
    with socket.socket(V4, UDP) as client:
        client.connect(address)
        act(client)


def taint():
    with open("/tmp/secret") as file:
        file.read()


def later(family, kind, address, act):
    """ACT on a socket that was connected before the secret was read."""
    def attempt():
        with socket.socket(family, kind) as client:
            client.connect(address)
            act(client)
            taint()
            act(client)
    return attempt


def on_accepted(act):
    """ACT on a socket that was accepted before the secret was read."""
    def attempt():
        server = listen(V4, TCP, ("127.0.0.1", 0))
        client = socket.socket(V4, TCP)
        client.connect(server.getsockname())
        accepted, _ = server.accept()
        taint()
        act(accepted)
    return attempt


def by_splice(client):
    read, write = os.pipe()
    os.write(write, b"xx")
    os.splice(read, client.fileno(), 2)


def by_sendfile(client):
    with open("/etc/passwd", "rb") as file:
        os.sendfile(client.fileno(), file.fileno(), 0, 10)


def in_thread(act):
    """The secret is read by one thread and ACT done by another: labels are the process's."""
    def attempt():
        reader = threading.Thread(target=taint)
        reader.start()
        reader.join()
        act()
    return attempt


def feedback():
    with socket.socket(UNIX, TCP) as client:
        client.connect("/run/actplane/feedback.sock")
        client.sendall(b"GET /v1/status HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        answer = b""
        while part := client.recv(4096):
            answer += part
    if b'"enforcing":true' not in answer.replace(b" ", b""):
        raise RuntimeError(answer.decode())


def by_guest():
    ran = subprocess.run([GUEST, "feedback", "--all"], capture_output=True, text=True, timeout=60)
    if ran.returncode or "was blocked" not in ran.stdout:
        raise RuntimeError(f"status {ran.returncode}: {ran.stdout} {ran.stderr}")


def by_curl():
    subprocess.run(["curl", "-sf", "--unix-socket", "/run/actplane/feedback.sock", "http://x/v1/policy"], check=True, capture_output=True, timeout=60)


SERVERS = [listen(family, kind, (host, port)) for family, host in ((V4, "127.0.0.1"), (V6, "::1")) for kind in (TCP, UDP) for port in (81, 82)]
SERVERS += [listen(UNIX, TCP, f"{lead}{name}.sock") for lead in ("/tmp/", "\0") for name in ("blocked", "free")]
SERVERS += [listen(UNIX, UDP, f"{lead}{name}.dgram") for lead in ("/tmp/", "\0") for name in ("blocked", "free")]
# The mapped addresses are served by the IPv4 sockets.


def addresses(verdict, word, port, name):
    verdict(f"{word}: TCP", lambda: connect(V4, TCP, ("127.0.0.1", port)))
    verdict(f"{word}: TCP without waiting", lambda: connect_nonblocking(("127.0.0.1", port)))
    verdict(f"{word}: TCP Fast Open", lambda: fast_open(("127.0.0.1", port)))
    verdict(f"{word}: TCP over IPv6", lambda: connect(V6, TCP, ("::1", port)))
    verdict(f"{word}: TCP to a mapped address", lambda: connect(V6, TCP, ("::ffff:127.0.0.1", port)))
    verdict(f"{word}: connected UDP", lambda: connect(V4, UDP, ("127.0.0.1", port)))
    verdict(f"{word}: connected UDP over IPv6", lambda: connect(V6, UDP, ("::1", port)))
    verdict(f"{word}: a datagram", lambda: send_to(V4, ("127.0.0.1", port)))
    verdict(f"{word}: a datagram over IPv6", lambda: send_to(V6, ("::1", port)))
    verdict(f"{word}: a datagram to a mapped address", lambda: send_to(V6, ("::ffff:127.0.0.1", port)))
    verdict(f"{word}: a datagram to no family", lambda: send_unspecified(("127.0.0.1", port)))
    verdict(f"{word}: sendmmsg", lambda: send_many(("127.0.0.1", port)))
    verdict(f"{word}: a Unix socket", lambda: connect(UNIX, TCP, f"/tmp/{name}.sock"))
    verdict(f"{word}: a Unix socket by a relative path", lambda: (os.chdir("/tmp"), connect(UNIX, TCP, f"./{name}.sock")))
    verdict(f"{word}: a Unix socket by a link", lambda: (os.symlink(f"/tmp/{name}.sock", f"/tmp/{name}-link"), connect(UNIX, TCP, f"/tmp/{name}-link")))
    verdict(f"{word}: an abstract Unix socket", lambda: connect(UNIX, TCP, f"\0{name}.sock"))
    verdict(f"{word}: a Unix datagram", lambda: send_to(UNIX, f"/tmp/{name}.dgram"))
    verdict(f"{word}: an abstract Unix datagram", lambda: send_to(UNIX, f"\0{name}.dgram"))


def by_label():
    free = ("127.0.0.1", 82)
    denied("after reading the secret: TCP", lambda: (taint(), connect(V4, TCP, free)))
    denied("after reading the secret: a datagram", lambda: (taint(), send_to(V4, free)))
    denied("after reading the secret: a Unix socket", lambda: (taint(), connect(UNIX, TCP, "/tmp/free.sock")))
    denied("after reading the secret: another thread", in_thread(lambda: connect(V4, TCP, free)))
    denied("after reading the secret: a child", lambda: (taint(), attempts_in_child(lambda: connect(V4, TCP, free))))
    for family, host in ((V4, "127.0.0.1"), (V6, "::1")):
        denied(f"connected before: send to {host}", later(family, TCP, (host, 82), lambda s: s.send(b"x")))
        denied(f"connected before: write to {host}", later(family, TCP, (host, 82), lambda s: os.write(s.fileno(), b"x")))
    denied("connected before: writev", later(V4, TCP, free, lambda s: os.writev(s.fileno(), [b"x"])))
    denied("connected before: sendmsg", later(V4, TCP, free, lambda s: s.sendmsg([b"x"])))
    denied("connected before: sendfile", later(V4, TCP, free, by_sendfile))
    denied("connected before: splice", later(V4, TCP, free, by_splice))
    denied("connected before: UDP", later(V4, UDP, free, lambda s: s.send(b"x")))
    denied("accepted before: send", on_accepted(lambda s: s.send(b"x")))
    allowed("without the label: connected UDP", lambda: connected_udp(free, lambda s: s.send(b"x")))
    allowed("after reading the secret: the feedback socket", lambda: (taint(), feedback()))


def attempts_in_child(act):
    got = attempts.outcome(act)
    if got == "denied":
        raise PermissionError(1, got)
    if got != "allowed":
        raise RuntimeError(got)


if sys.argv[1] == "any":
    addresses(denied, "any", 82, "free")
else:
    with open("/tmp/secret", "w") as secret:
        secret.write("token")
    addresses(denied, "blocked", 81, "blocked")
    addresses(allowed, "free", 82, "free")
    by_label()
allowed("the feedback socket is reached", feedback)
allowed("curl reaches the feedback socket", by_curl)
allowed("the guest tells what was blocked", by_guest)
attempts.done()
