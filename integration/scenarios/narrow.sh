#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Rules that are added from inside: a process adds them for itself and what it starts, or
# for the whole container, by the guest's command, by curl and over MCP. They hold at once,
# are lifted by nobody, and outlive what they are to outlive.
# shellcheck disable=SC2016  # what is expanded in the container
. "$(dirname "$0")/lib/checks.sh"
work=$(mktemp -d)
trap 'docker rm -f narrow > /dev/null 2>&1; rm -rf "$work"' EXIT
cat > "$work/policy" <<'POLICY'
version: 1
policy: |
  source SECRET = file "/etc/shadow"
  rule outer:
    block exec "tac"
    block write file "/srv/out" if SECRET
POLICY
protected -d --name narrow --label "dev.actplane.policy=$(cat "$work/policy")" -v "$LIB:/lib/scenario:ro" agent sleep 10000 > /dev/null
guest=/run/actplane/bin/actplane-guest
try() { docker exec narrow sh -c "$1" > "$work/said" 2>&1; echo $?; }
under() { try "$guest narrow $1"; }

check "without added rules it writes" 0 "$(try 'echo x > /tmp/f && mkdir -p /srv')"
check "a process that is read-only does not" 2 "$(under "--read-only -- sh -c 'echo x > /tmp/g; exit \$?'")"
check_that "no file is left" test "$(try 'test -e /tmp/g')" = 1
check "nor does what it starts, in a session of its own" 2 "$(under "--read-only -- setsid sh -c 'sh -c \"echo x > /tmp/g\"'")"
check "it appends not" 2 "$(under "--read-only -- sh -c 'echo x >> /tmp/f'")"
check "it removes not" 1 "$(under "--read-only -- rm /tmp/f")"
check "it renames not" 1 "$(under "--read-only -- mv /tmp/f /tmp/g")"
check "nor through what was open before" 2 "$(try "exec 3>> /tmp/f; $guest narrow --read-only -- sh -c 'echo y >&3; exit \$((\$? * 2))'")"
check "it reads, runs and writes to devices" 0 "$(under "--read-only -- sh -c 'cat /tmp/f > /dev/null && ls / > /dev/null'")"
check "another process writes meanwhile" 0 "$(try 'echo x > /tmp/f')"
check "what the policy says holds for it as well" 126 "$(under "--read-only -- sh -c 'tac /tmp/f'")"
check_match "it is told why" 'read-only' "$(docker exec narrow $guest feedback --all)"
check "without a network there is none" 0 "$(under "--no-network -- python3 -c '
import socket, errno
try: socket.create_connection((\"127.0.0.1\", 9), 1)
except OSError as e: raise SystemExit(e.errno != errno.EPERM)
raise SystemExit(3)'")"
check "a process cannot be traced from there" 0 "$(under "--read-only -- python3 -c '
import os
try: open(\"/proc/1/mem\", \"r+b\")
except OSError: raise SystemExit(0)
raise SystemExit(1)'")"
sleep 1.1 # one a second
check "rules that are wrong start nothing" 1 "$(under "'rule x: block exec \"a\" if NOBODY' -- touch /tmp/started")"
check_match "and are told with the place" '1:27: error\[P203\]' "$(cat "$work/said")"
check "the command was not started" 1 "$(try 'test -e /tmp/started')"

check "rules for the container" 0 "$(under "--container 'rule frozen: block write \"/srv/frozen\" if SECRET block unlink \"/tmp/f\" because \"It stays.\"'")"
check "hold for others at once" 1 "$(try 'rm /tmp/f')"
check "know the labels of the policy" 2 "$(try 'read -r _ < /etc/shadow; echo x > /srv/frozen')"
check "and take nothing from it" 2 "$(try 'read -r _ < /etc/shadow; echo x > /srv/out')"
check_match "ps names them" 'added-[0-9]+ \(at run time, for the container\)' "$(actplane ps --json)"
check_match "events tell who added them" 'added-[0-9]+ sha256:[0-9a-f]{64}' "$(actplane events narrow)"
check_match "the policy has their text" 'It stays.' "$(docker exec narrow curl -s --unix-socket /run/actplane/feedback.sock http://x/v1/policy)"
sleep 1.1
check_match "curl adds some" '"name": ?"added-' "$(docker exec narrow curl -s --unix-socket /run/actplane/feedback.sock http://x/v1/policy/rules \
  -d '{"policy":"rule more: block exec \"shuf\"","for":"container"}')"
check "which hold" 126 "$(try 'shuf -n 1 /tmp/f')"
sleep 1.1
check "an agent adds some by MCP" 0 "$(try 'python3 /lib/scenario/mcp.py')"
grep -qx 'ok' "$work/said" || fail "MCP" "$(tail -n 5 "$work/said")"

docker exec -d narrow sh -c "$guest narrow --read-only -- sh -c 'while ! [ -e /tmp/go ]; do sleep 0.2; done; echo x > /tmp/late; exec sleep 1000'"
check_that "another is made read-only" eventually 30 docker exec narrow sh -c 'grep -qa "sleep.0[.]2" /proc/[0-9]*/cmdline'
kill_engine
check "without the daemon they hold" 1 "$(try 'rm /tmp/f')"
actplane ps > /dev/null
check "and with the next" 1 "$(try 'rm /tmp/f')"
check "what was read-only is told to go on" 0 "$(try 'touch /tmp/go; sleep 2')"
check "and is it still" 1 "$(try 'test -e /tmp/late')"

docker restart -t 1 narrow > /dev/null
check "after a restart the container's rules hold" 1 "$(try 'rm /tmp/f')"
check "all of them" 126 "$(try 'shuf -n 1 /tmp/f')"
check "those of processes are gone with them" 0 "$(try 'echo x > /tmp/late')"
docker stop -t 1 narrow > /dev/null
actplane state reset narrow > /dev/null
docker start narrow > /dev/null
check "until the operator takes back what is kept" 0 "$(try 'rm /tmp/f')"
exit "$failed"
