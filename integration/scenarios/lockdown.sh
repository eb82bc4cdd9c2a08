#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# actplane lockdown: from when it returns, nothing that a container's programs do succeeds,
# with what they have open neither; the container beside it and the host do not notice. It
# outlives the engine and the container, which can be stopped, and neither entered nor
# started. With --freeze its processes stand still.
. "$(dirname "$0")/lib/checks.sh"
work=$(mktemp -d)
trap 'docker rm -f locked beside > /dev/null 2>&1; rm -rf "$work"' EXIT
mkdir "$work/share"
policy='version: 1
policy: |
  rule r:
    block exec "nothing"
'
label="dev.actplane.policy=$policy"
truncate -s 4096 "$work/share/computed"
touch "$work/share/log"
begin() {
  rm -f "$work/share/stop"
  docker rm -f locked > /dev/null 2>&1
  protected -d --name locked --label "$label" -v "$work/share:/share" -v "$LIB:/lib/scenario:ro" agent python3 /lib/scenario/locked.py /share > /dev/null
}
lines() { wc -l < "$work/share/log"; }
# more NUMBER: so many rounds more that have written.
more() {
  local target=$(($(lines) + $1))
  eventually 60 eval "[ \$(lines) -ge $target ]"
}
computed() { head -c 16 "$work/share/computed" | tr -d ' '; }
state() { actplane ps --json | python3 "$LIB/field.py" locked state; }

begin
protected -d --name beside --label "$label" agent sleep 1000 > /dev/null
check_that "its program runs" more 20
check_match "all that it tries succeeds" 'open read create fork send signal connect' "$(tail -n 1 "$work/share/log")"

check_match "it is locked" '^locked is locked: everything' "$(actplane lockdown --because 'it misbehaves' locked 2>&1)"
before=$(lines) && rounds=$(computed)
check_that "it goes on computing" eventually 60 eval "[ \$(computed) -gt $((rounds + 50)) ]"
check_strictly "and nothing that it does succeeds" "$before" "$(lines)"
check "ps says so" locked "$(state)"
check_match "and by whom, and why" 'locked by .*uid 0.* since .*, because: it misbehaves; .* refused, [1-9][0-9]* times' "$(actplane ps)"
check_match "docker exec is refused" '^1[0-9][0-9]$' "$(docker exec locked true > /dev/null 2>&1; echo $?)"
check "the container beside it does not notice" 0 "$(docker exec beside sh -c 'echo x > /tmp/x && cat /tmp/x > /dev/null'; echo $?)"
check "nor does the host" 0 "$(docker run --rm --network none agent sh -c 'echo x > /tmp/x'; echo $?)"

kill_engine
rounds=$(computed)
check_that "without the engine it goes on computing" eventually 60 eval "[ \$(computed) -gt $((rounds + 50)) ]"
check_strictly "and is locked" "$before" "$(lines)"
check "the next engine knows" locked "$(state)"

check_match "it is unlocked" 'locked by .* is unlocked; [1-9][0-9]* operations were refused' "$(actplane unlock locked 2>&1)"
check_that "and goes on from where it was" more 20
check_match "with everything" 'open read create fork send signal connect' "$(tail -n 1 "$work/share/log")"
check_match "its program is told" 'an operator locked this container: .* The reason given: it misbehaves' "$(docker exec locked /run/actplane/bin/actplane-guest feedback --all 2>&1)"
check_match "and so are those who watch" 'locked: .*lockdown|locked:' "$(actplane events locked)"

actplane lockdown --all --because all > /dev/null
check "all are locked" "locked locked" "$(actplane ps --json | python3 -c 'import json,sys; print(*(s["state"] for s in json.load(sys.stdin)))')"
actplane unlock --all > /dev/null
check_that "and unlocked" more 20

check_match "it is locked and frozen" 'its processes are stopped' "$(actplane lockdown --freeze locked 2>&1)"
rounds=$(computed)
sleep 1
check "it stands still" "$rounds" "$(computed)"
actplane unlock locked > /dev/null
check_that "and goes on" more 20

actplane lockdown locked --because 'for good' > /dev/null
check "its program may end as it likes, and be asked to" 7 "$(docker stop -t 60 locked > /dev/null; docker inspect -f '{{.State.ExitCode}}' locked)"
check_match "it cannot be started" 'locked by .* because: for good; "actplane unlock' "$(docker start locked 2>&1)"
check "ps shows it all the same" locked "$(state)"
kill_engine
check_match "nor after the engine was killed" 'locked by .* because: for good' "$(docker start locked 2>&1)"
check_match "it is unlocked" 'is unlocked' "$(actplane unlock locked 2>&1)"
check "and starts" 0 "$(docker start locked > /dev/null; echo $?)"
check_that "and runs" more 20

actplane lockdown --freeze locked > /dev/null
check "what is frozen can be killed" 137 "$(docker kill locked > /dev/null; timeout 60 docker wait locked)"
id=$(docker inspect -f '{{.Id}}' locked)
docker rm -f locked > /dev/null
actplane ps > /dev/null
check_that "with the container goes its lock" eventually 30 test ! -e "/var/lib/actplane/containers/$id.lock"
check "nothing is locked any more" "nothing is locked" "$(actplane unlock --all)"
exit "$failed"
