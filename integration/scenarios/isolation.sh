#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A policy concerns its container and nobody else: not the host, not a container of
# runc, not another container under policy, be it the same policy or another.
. "$(dirname "$0")/lib/checks.sh"
work=$(mktemp -d)
trap 'docker rm -f isolation-a isolation-b isolation-c isolation-runc > /dev/null 2>&1; rm -rf "$work"' EXIT
mkdir -p "$work"/volume/{locked,out}
echo token > "$work/volume/secret"

cat > "$work/a" <<'POLICY'
version: 1
policy: |
  source SECRET = file "/volume/secret"
  rule a-program:
    block exec "touch"
    because "Not in a."
  rule a-files:
    block write file "/volume/locked/**"
    block unlink file "/volume/locked/**"
  rule a-leak:
    block write file "/volume/out/**" if SECRET
  rule a-peer:
    block connect "127.0.0.1"
POLICY
cat > "$work/b" <<'POLICY'
version: 1
policy: |
  source SECRET = file "/volume/others"
  rule b-program:
    block exec "mkdir"
    because "Not in b."
  rule b-leak:
    block write file "/volume/out/**" if SECRET
POLICY
cat > "$work/serve" <<'PROGRAM'
import socket
server = socket.create_server(("127.0.0.1", 4444))
while True:
    server.accept()[0].close()
PROGRAM

# a and c have the same policy, b another.
for name in a b c; do
  policy=$name
  [ $name != c ] || policy=a
  protected -d --name isolation-$name --label "dev.actplane.policy=$(cat "$work/$policy")" -v "$work/volume:/volume" agent sleep 1000 > /dev/null &
done
docker run -d --network none --name isolation-runc -v "$work/volume:/volume" agent sleep 1000 > /dev/null &
wait

# in NAME COMMAND: in that container, or on the host, where /volume is the same folder.
on() {
  local name=$1
  shift
  if [ "$name" = host ]; then
    sh -c "$*" 2>&1
  else
    docker exec "isolation-$name" sh -c "$*" 2>&1
  fi
}
ln -s "$work/volume" /volume
trap 'docker rm -f isolation-a isolation-b isolation-c isolation-runc > /dev/null 2>&1; rm -rf "$work" /volume /tmp/dir-host /tmp/x' EXIT

# Each does all of it in one go, and says how each thing ended: 0, or 126 and 2, which
# are the shell's for a program and a file that it is denied.
cat > "$work/volume/acts" <<'ACTS'
touch /tmp/x; a=$?
(echo > "/volume/locked/$1"); b=$?
rm -f "/volume/locked/$1" /volume/locked/kept; c=$?
mkdir "/tmp/dir-$1"; d=$?
echo "touch $a write $b remove $c mkdir $d"
ACTS
acts_of() {
  echo > "$work/volume/locked/kept"
  on "$1" "sh /volume/acts $1 2> /dev/null"
}
for name in a c; do
  check "$name: what its policy forbids is denied, and no more" "touch 126 write 2 remove 1 mkdir 0" "$(acts_of $name)"
done
check "b: what its policy forbids is denied, and no more" "touch 0 write 0 remove 0 mkdir 126" "$(acts_of b)"
for name in runc host; do
  check "$name: nothing is denied" "touch 0 write 0 remove 0 mkdir 0" "$(acts_of $name)"
done
python3 "$work/serve" &
server=$!
eventually 20 bash -c ': < /dev/tcp/127.0.0.1/4444' 2> /dev/null
check "host: the connection is made" 0 "$(bash -c ': < /dev/tcp/127.0.0.1/4444; echo $?' 2>&1)"
kill $server

# Labels: a's secret is a's alone, also on a file that all can read.
check_match "a: a copy of the secret carries its label" 'write error: Operation not permitted' \
  "$(on a 'cat /volume/secret > /volume/copy && cat /volume/copy > /volume/out/a')"
for name in b runc host; do
  check "$name: a's secret and its copy are clean" 0 \
    "$(on $name 'cat /volume/copy > /volume/taken-'$name' && cat /volume/taken-'$name' /volume/secret > /volume/out/'$name'; echo $?')"
done
check_match "c: the copy is clean, the secret is its own too" '^0.*write error: Operation not permitted' \
  "$(on c 'exec 2>&1; cat /volume/copy > /volume/out/c; echo $?; cat /volume/secret > /volume/out/c')"

# Events and feedback: each knows only its own.
check_match "events of a" 'a-program' "$(actplane events isolation-a)"
check_that "events of a are a's" test -z "$(actplane events --json isolation-a | grep -v '"name":"isolation-a"')"
check_that "events of b are b's" test -z "$(actplane events --json isolation-b | grep -v '"name":"isolation-b"')"
check_that "events of b name no rule of a" test -z "$(actplane events isolation-b | grep -E 'a-(program|files|leak|peer)')"
told=$(on b 'curl -s --unix-socket /run/actplane/feedback.sock "http://x/v1/feedback?tree=all" http://x/v1/policy')
check_match "feedback of b" 'b-program.*b-program' "$told"
check_that "feedback of b names no rule of a" test -z "$(grep -E 'a-(program|files|leak|peer)' <<< "$told")"
check_match "another user of b may ask" 'enforc' "$(docker exec -u 1000 isolation-b /run/actplane/bin/actplane-guest status 2>&1)"
id=$(docker inspect -f '{{.Id}}' isolation-a)
check_that "the host gets nothing from a's socket" test -z "$(curl -s --max-time 5 --unix-socket "/run/actplane/scopes/$id/guest/feedback.sock" 'http://x/v1/feedback?tree=all' | grep -E 'a-program')"

# Processes of the host that enter namespaces only are no members of the scope; those
# that enter its cgroup are, from their first exec inside.
pid=$(docker inspect -f '{{.State.Pid}}' isolation-a)
check "host by nsenter: not in the scope" 0 "$(nsenter -t "$pid" -m -p -n touch /tmp/nsentered > /dev/null 2>&1; echo $?)"
check_match "host by nsenter, in its cgroup: in the scope" 'not permitted' \
  "$(sh -c "echo \$\$ > /sys/fs/cgroup/docker/$id/cgroup.procs; exec nsenter -t $pid -m -p -n -r touch /tmp/nsentered" 2>&1)"
check_match "host, moved into its cgroup: a shell inside is in the scope" 'not permitted' \
  "$(sh -c "echo \$\$ > /sys/fs/cgroup/docker/$id/cgroup.procs; exec nsenter -t $pid -m -r sh -c 'touch /tmp/nsentered; :'" 2>&1)"

# When a is gone, the others are as before.
docker rm -f isolation-a > /dev/null
check "c after a's end" "touch 126 write 2 remove 1 mkdir 0" "$(on c 'rmdir /tmp/dir-c'; acts_of c)"
check "b after a's end" "touch 0 write 0 remove 0 mkdir 126" "$(acts_of b)"
docker rm -f isolation-b isolation-c > /dev/null
check "the host after the last one's end" "touch 0 write 0 remove 0 mkdir 0" "$(rmdir /tmp/dir-host; acts_of host)"
exit "$failed"
