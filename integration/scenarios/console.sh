#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The page for people: a person on the host answers on it over its socket and over a
# loopback port. A container with the host's network, the socket mounted and the token
# known gets no connection by either.
# lsm: bpf
. "$(dirname "$0")/lib/checks.sh"
work=$(mktemp -d)
pages=()
config=/etc/actplane/config.yaml
cp "$config" "$work/config"
finish() {
  cp "$work/config" "$config"
  docker rm -f console > /dev/null 2>&1
  [ ${#pages[@]} = 0 ] || kill "${pages[@]}"
  rm -rf "$work"
}
trap finish EXIT

echo 'allow: [actplane-files]' >> "$config" # or nobody has the socket inside
cat > "$work/policy" <<'POLICY'
version: 1
policy: |
  rule push:
    ask exec "git" "push"
    because "A person approves each push."
POLICY
docker run --runtime actplane --network host -d --name console -v /run/actplane:/host -v "$work:/share" \
  --label "dev.actplane.policy=$(cat "$work/policy")" agent sleep 100000 > "$work/run" 2>&1 || cat "$work/run"
inside() { docker exec console "$@" 2>&1; }

actplane web > "$work/socket" 2>&1 &
pages+=($!)
actplane web --listen 127.0.0.1:8700 > "$work/port" 2>&1 &
pages+=($!)
check_that "the page is served on its socket" eventually 60 grep -q token "$work/socket"
check_that "and on a port" eventually 60 grep -q token "$work/port"
check "the socket is root's alone" "600 0" "$(stat -c '%a %u' /run/actplane/web.sock)"
token() { sed -n 's/.*#token=//p' "$work/$1"; }

# ask WAY PATH [DATA]: what the page answers, from the host or from inside.
cat > "$work/ask.py" <<'ASK'
import json, socket, sys

way, token, path = sys.argv[1:4]
data = sys.argv[4] if len(sys.argv) > 4 else ""
s = socket.socket(socket.AF_INET if way == "port" else socket.AF_UNIX)
s.settimeout(20)
try:
    s.connect(("127.0.0.1", 8700) if way == "port" else way)
    s.sendall(("%s %s HTTP/1.1\r\nHost: 127.0.0.1:8700\r\nOrigin: http://127.0.0.1:8700\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"
               "Connection: close\r\nContent-Length: %d\r\n\r\n%s" % ("POST" if data else "GET", path, token, len(data), data)).encode())
    answer = b""
    while b"\n\n" not in answer.replace(b"\r", b"") or path != "/api/stream":
        piece = s.recv(65536)
        if not piece:
            break
        answer += piece
        if path == "/api/stream" and b"data: " in answer and answer.endswith(b"\n\r\n"):
            break
    print(answer.decode(errors="replace") if answer else "hung up on")
except OSError as e:
    print("no connection:", e)
ASK
ask() { python3 "$work/ask.py" "$@"; }

inside git push origin main > /dev/null
id=$(actplane requests console | sed -n 's/ .*//p;q')
check_match "who is on the host sees what waits, on the port" "\"id\":\"$id\"" "$(ask port "$(token port)" /api/stream)"
check_match "and on the socket" "\"id\":\"$id\"" "$(ask /run/actplane/web.sock "$(token socket)" /api/stream)"
check_match "with the token alone" '401' "$(ask port wrong /api/stream)"

for way in port socket; do
  where=$([ $way = port ] && echo port || echo /host/web.sock)
  got=$(inside python3 /share/ask.py "$where" "$(token $way)" /)
  check_match "from inside there is no connection by the $way" '^(hung up on|no connection: .*)$' "$got"
  inside python3 /share/ask.py "$where" "$(token $way)" /api/answer "{\"id\":\"$id\",\"seen\":\"open 0\",\"what\":\"once\"}" > /dev/null
done
check_match "so that nothing is answered" "^$id .* open" "$(actplane requests console)"
check_match "which the page's log tells" 'refused: the peer is inside a scope' "$(cat "$work/port")"

check_match "a person approves on the page" '"state":"granted"' "$(ask port "$(token port)" /api/answer "{\"id\":\"$id\",\"seen\":\"open 0\",\"what\":\"once\"}")"
check_match "and the push goes on" 'not a git repository' "$(inside git push origin main)"
check_match "which the record tells" 'approved: .*answered by .* by web' "$(actplane events console)"
exit "$failed"
