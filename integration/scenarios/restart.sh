#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# kill -9 of the daemon lifts no policy: not one of thousands of forbidden operations
# gets through before, during and after it; the next daemon takes over what runs. A
# daemon that is killed while containers start leaves none of them without policy.
# lsm: bpf
. "$(dirname "$0")/lib/checks.sh"
# shellcheck source=lib/snapshot.sh
. "$LIB/snapshot.sh"
work=$(mktemp -d)
trap 'docker rm -f restart-old restart-new > /dev/null 2>&1; rm -rf "$work"' EXIT
mkdir "$work/share" "$work/out"
cat > "$work/policy" <<'POLICY'
version: 1
policy: |
  source SECRET = file "/etc/passwd"
  rule no-writes:
    block write file "/tmp/forbidden"
    block write file "/out/**"
    block write file "/etc/**"
    block open file "/etc/hostname"
  rule no-program:
    block exec "touch"
    because "Not here."
  rule no-peer:
    block connect "127.0.0.1:81"
  rule no-leak:
    block write file "/share/out" if SECRET
POLICY
under=(--label "dev.actplane.policy=$(cat "$work/policy")")

check "a container starts" 0 "$(protected --rm "${under[@]}" bb true > /dev/null 2>&1; echo $?)"
eventually 20 test "$(scope_count)" = 0
snapshot | sort > "$work/before"

protected -d --name restart-old "${under[@]}" -v "$work/share:/share" -v "$LIB:/lib/scenario:ro" agent sleep 1000 > /dev/null
# A process that has read a secret, long before it tries to leak it.
docker exec -d restart-old sh -c 'read -r _ < /etc/passwd; echo > /share/ready; while ! [ -e /share/go ]; do sleep 0.2; done; echo > /share/out; echo $? > /share/leaked'
try() { docker exec restart-old "$@" 2>&1; }

# relentless: forbidden operations without end, in the background.
relentless() {
  rm -f "$work/share/stop" "$work/share/tries"
  docker exec -d restart-old python3 /lib/scenario/relentless.py /share
}
tries() { cat "$work/share/tries" 2> /dev/null || echo 0; }
# more NUMBER: as many tries more than now.
more() {
  local target=$(($(tries) + $1))
  eventually 120 eval "[ \$(tries) -ge $target ]"
}
halt() {
  touch "$work/share/stop"
  eventually 30 test -e "$work/share/stopped"
  rm -f "$work/share/stopped"
  total=$((${total:-0} + $(tries)))
}
none_got_through() { check_strictly "$1" "" "$(sort "$work/share/successes" | uniq -c | head -n 5)"; }

relentless
check_that "forbidden operations are tried" more 500
kill_engine
check_that "they go on without the daemon" more 1500
halt
none_got_through "not one gets through when the daemon is killed"
check "the daemon is gone" "" "$(pgrep -x actplaned)"
check_match "docker exec meets the policy without the daemon" 'not permitted' "$(try touch /tmp/dead-time)"

# The next command starts the daemon, which takes over.
check_match "ps lists the container" 'restart-old +enforcing' "$(actplane ps)"
check_match "feedback answers again" '"enforcing": ?true' "$(try curl -s --unix-socket /run/actplane/feedback.sock http://x/v1/status)"
dead_time_told() {
  actplane events restart-old > "$work/events"
  grep -q '/tmp/dead-time' "$work/events" || grep -q 'earlier events were lost' "$work/events"
}
check_that "events of the dead time, or their loss, are told" eventually 30 dead_time_told
check_match "feedback tells what is denied now" '/tmp/after-restart' \
  "$(try sh -c 'touch /tmp/after-restart; for _ in $(seq 50); do /run/actplane/bin/actplane-guest feedback | grep after-restart && break; sleep 0.2; done')"

# Again, and now the daemon comes back in the middle of it.
relentless
check_that "forbidden operations are tried again" more 300
kill_engine
check_that "they go on" more 300
check_match "ps starts the daemon" 'restart-old +enforcing' "$(actplane ps)"
check_that "they go on with the new daemon" more 300
halt
none_got_through "not one gets through when a daemon takes over"
touch "$work/share/go"
eventually 30 test -s "$work/share/leaked"
check_that "labels are kept" grep -qvx 0 "$work/share/leaked"
counted() { [ "$(denials restart-old)" -ge "$total" ]; }
check_that "all $total denials are counted" eventually 30 counted

check "a new container is under policy" 1 "$(protected --rm --name restart-new "${under[@]}" -v "$work/out:/out" bb sh -c 'echo > /out/new' > /dev/null 2>&1; echo $?)"
docker rm -f restart-old > /dev/null
check_nothing_left "the old container's end leaves nothing" "$work/before"

# Killed at random moments of a start: it runs under policy, or fails with 125.
RANDOM=${SEED:-$$}
echo "seed ${SEED:-$$}"
starts=5
[ -z "${ACTPLANE_SOAK:-}" ] || starts=80
for number in $(seq $starts); do
  (
    sleep "0.$((RANDOM % 10))" "$((RANDOM % 6))"
    pid=$(pgrep -x actplaned) && kill -9 "$pid"
  ) 2> /dev/null &
  docker run --rm --runtime actplane --network none "${under[@]}" -v "$work/out:/out" bb sh -c "echo > /out/$number" > "$work/start" 2>&1
  status=$?
  # 1 is the shell's own, which was denied the file.
  case $status in
    1 | 125) echo "start $number: $status $(head -c 300 "$work/start" | head -n 1)" ;;
    *) fail "a start while the daemon is killed" "$status $(cat "$work/start")" ;;
  esac
  wait
done
check_strictly "nothing was written by any of them" "" "$(ls "$work/out")"
check "and then a container starts" 0 "$(protected --rm "${under[@]}" bb true > /dev/null 2>&1; echo $?)"
check_nothing_left "nothing is left of interrupted starts" "$work/before"
exit "$failed"
