#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What a container did outlives docker stop and start, whoever dies in between, and a
# boot of the host: labels and marks of files in the container's own file system and on
# a volume, gates, counters. What is spoilt counts as the worst, is told, and an
# operator can take it back. With the container goes what is kept of it.
# lsm: bpf
. "$(dirname "$0")/lib/checks.sh"
work=$(mktemp -d)
trap 'docker rm -f state > /dev/null 2>&1; rm -rf "$work"' EXIT
mkdir "$work/share"
cat > "$work/policy" <<'POLICY'
version: 1
policy: |
  source SECRET = file "/etc/shadow"
  rule no-leak:
    block write file "/share/out" if SECRET
    because "Secrets stay."
  rule tested:
    block exec "cp" unless after exec "tac" exits 0 since write "/share/src"
  rule own:
    block exec "tool" unless target not modified
POLICY
label="dev.actplane.policy=$(cat "$work/policy")"
protected -d --name state --label "$label" -v "$work/share:/share" agent sleep 10000 > /dev/null
id=$(docker inspect -f '{{.Id}}' state)
states=/var/lib/actplane/containers
try() { docker exec state sh -c "$1" > /dev/null 2>&1; echo $?; }
leaks() { try "read -r _ < $1; echo > /share/out"; }

check "a copy of the secret is made in the container" 0 "$(try 'cat /etc/shadow > /root/copy')"
check "and on the volume" 0 "$(try 'cat /etc/shadow > /share/copy')"
check "and a file of the image gets a new name" 0 "$(try 'cat /etc/shadow > /etc/motd; mv /etc/motd /root/renamed')"
check "a program is made" 0 "$(try 'echo exit > /usr/bin/tool; chmod +x /usr/bin/tool')"
check "the gate is closed" 126 "$(try 'cp /etc/hostname /tmp/x')"
check "the gate opens" 0 "$(try 'tac /etc/hostname')"
check "and is open" 0 "$(try 'cp /etc/hostname /tmp/x')"

# holds HOW: all of it holds after the container was started again.
holds() {
  check "$1: it runs under policy" enforcing "$(actplane ps --json | python3 "$LIB/field.py" state state)"
  check "$1: its first process carries nothing" 0 "$(try 'echo > /share/out')"
  for file in /root/copy /share/copy /root/renamed; do
    check_match "$1: $file carries its label" '^[12]$' "$(leaks $file)"
  done
  check_match "$1: the program is one that was made inside" '^12[67]$' "$(try 'tool')"
  check "$1: the gate is open" 0 "$(try 'cp /etc/hostname /tmp/x')"
  # A kernel that preempts may skip what follows splices, and that is told.
  check "$1: nothing is wrong" "[]" "$(actplane ps --json | python3 "$LIB/field.py" state degraded | sed "s/'[0-9]* splices, [^']*'//")"
}
holds "before any restart"
before=$(denials state)

docker restart -t 0 state > /dev/null
holds "docker restart"
check_that "the counters go on" [ "$(denials state)" -gt "$before" ]

docker kill state > /dev/null && docker wait state > /dev/null
docker start state > /dev/null
holds "docker kill and start"

kill_engine
docker stop -t 0 state > /dev/null
docker start state > /dev/null
holds "the engine was killed before docker stop"

docker stop -t 0 state > /dev/null
eventually 30 test ! -e "$states/$id.run"
check_match "what is kept is listed" "$(cut -c1-12 <<< "$id") +state .* 1 " "$(actplane state ls)"
check "it is root's alone" "700 600" "$(stat -c %a "$states" "$states/$id.state" | tr '\n' ' ' | sed 's/ $//')"
kill_engine
# A boot: all that is in memory is gone, and devices may be numbered otherwise.
rm -rf /run/actplane /sys/fs/bpf/actplane
mkdir "$work/place" && mount -t tmpfs place "$work/place"
docker start state > /dev/null
holds "a boot between stop and start"
umount "$work/place"

check "the gate closes" 0 "$(try 'echo > /share/src')"
docker restart -t 0 state > /dev/null
check "and is closed after a restart" 126 "$(try 'cp /etc/hostname /tmp/x')"

# Lost.
docker stop -t 0 state > /dev/null
eventually 30 test ! -e "$states/$id.run"
printf x >> "$states/$id.state"
docker start state > /dev/null
check_match "what is spoilt is told by ps" 'not all known \(its saved state is spoilt: its checksum is wrong\)' "$(actplane ps --wide)"
check_match "and inside" 'checksum is wrong' "$(docker exec state /run/actplane/bin/actplane-guest status 2>&1)"
check_match "everything counts as labelled" '^[12]$' "$(try 'echo > /share/out')"
check_match "and as modified" '^126$' "$(try 'tac /etc/hostname; cp /etc/hostname /tmp/x')"
check_match "an operator takes it back" 'has forgotten what it did' "$(actplane state reset state)"
check "then nothing counts as labelled" 0 "$(try 'echo > /share/out')"
check "and gates open again" 0 "$(try 'tac /etc/hostname && cp /etc/hostname /tmp/x')"
check "and nothing is told" "[]" "$(actplane ps --json | python3 "$LIB/field.py" state degraded)"

# Deleted: Docker knows that it has run.
docker stop -t 0 state > /dev/null
eventually 30 test ! -e "$states/$id.run"
rm -f "$states/$id".*
docker start state > /dev/null
check_match "what is deleted is told" 'nothing was saved of it' "$(actplane ps --wide)"

docker rm -f state > /dev/null
check_that "with the container goes what is kept of it" eventually 60 test ! -e "$states/$id.state"
check_that "nothing else is kept of it" [ -z "$(compgen -G "$states/$id*")" ]
exit "$failed"
