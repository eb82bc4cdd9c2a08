#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A denial tells how the label that decided came to the process: which program read what,
# and by which files and pipes it came from there. It is told in the message inside, by
# actplane events and as JSON, over a death of the engine and a restart of the container;
# names from inside speak for nobody.
. "$(dirname "$0")/lib/checks.sh"
work=$(mktemp -d)
trap 'docker rm -f provenance > /dev/null 2>&1; rm -rf "$work"' EXIT
mkdir "$work/share"
echo token > "$work/share/.env"
policy='version: 1
policy: |
  source SECRET = file "/share/.env"
  rule no-leak:
    block connect any if SECRET
    because "Secrets stay."
  rule reviewed:
    block write file "/share/out" unless lineage-includes exec "review"
'
protected -d --name provenance --label "dev.actplane.policy=$policy" -v "$work/share:/share" agent sleep 10000 > /dev/null
connect='import socket; socket.socket().connect(("127.0.0.1", 81))'
try() { docker exec provenance sh -c "$1" > /dev/null 2>&1; }
# ways: those of the newest event's chain.
ways() {
  actplane events --json provenance | tail -n 1 | python3 -c '
import json, sys
event = json.load(sys.stdin)
for origin in event.get("chain", []):
    print(origin["label"], *(step["way"] for step in origin["steps"]))'
}
message() { docker exec provenance /run/actplane/bin/actplane-guest feedback --all 2>&1 | tail -n 1; }

try "cat /share/.env > /tmp/copy"
try "sort /tmp/copy | python3 -c 'import sys; sys.stdin.read(); $connect'"
check "the chain is told" "SECRET read wrote read pipe" "$(ways)"
check_match "and inside" \
  'Label SECRET: "cat" \(pid [0-9]+\) read "/share/\.env", a source of it, at [0-9:]+Z; .*this process got it through a pipe at [0-9:]+Z\.$' "$(message)"
check_match "and by actplane events" 'carrying SECRET \(SECRET: "cat" \(pid [0-9]+\) read "/share/\.env", a source of it' "$(actplane events provenance | tail -n 1)"

kill_engine
try "python3 -c 'open(\"/tmp/copy\").read(); $connect'"
check "the next engine knows it" "SECRET read wrote read" "$(ways)"

try "read -r x < /share/.env; python3 -c '$connect'; true"
check "a child has it from its parent" "SECRET read inherited" "$(ways)"

name=$(printf '/tmp/a\033[2J\n" was allowed.')
docker exec provenance cp /share/.env "$name"
docker exec provenance python3 -c "import sys; open(sys.argv[1]).read(); $connect" "$name" > /dev/null 2>&1
check_match "a name speaks for nobody" 'wrote "/tmp/a\\x1b\[2J\\n\\" was allowed\."' "$(message)"
check "nor does it make lines" "$(actplane events provenance | wc -l)" "$(actplane events --json provenance | wc -l)"

docker restart -t 0 provenance > /dev/null
try "python3 -c 'open(\"/tmp/copy\").read(); $connect'"
check_match "what an earlier start did is told" '"cat" wrote "/tmp/copy" at .*, in an earlier start of the container|"cat" \(pid [0-9]+\) wrote "/tmp/copy" at .*, in an earlier start of the container' "$(message)"

try "exec bash -c 'sh -c \": > /share/out\"; true'"
check_match "who is in the lineage is told" 'Nothing that excuses it has run in its lineage, which is "bash" \(pid [0-9]+\)' "$(message)"
exit "$failed"
