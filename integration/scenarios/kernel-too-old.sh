#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# On a kernel that cannot enforce nothing starts under policy, each time it is said
# in one sentence why and what to do, and nothing is left behind.
# on: 5.10
. "$(dirname "$0")/lib/checks.sh"
# shellcheck source=lib/snapshot.sh
. "$LIB/snapshot.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
policy='policy: |
  rule r: block exec "wget"'

docker run --rm --network none bb true
snapshot | sort > "$work/before"
for attempt in first second; do
  protected --rm --label "dev.actplane.policy=$policy" bb true > "$work/output" 2>&1
  check "docker run, $attempt time: exit code" 125 "$?"
  check_match "docker run, $attempt time: names the kernel and what to do" '5\.10.*(6\.1|actplane doctor)' "$(cat "$work/output")"
  # Docker's client adds a line of help, and may complain that the container is gone.
  check "docker run, $attempt time: one sentence" 1 "$(grep -cvE "^(See 'docker run --help'\.|time=.*error waiting for container.*|)$" "$work/output")"
done
check "another runtime's containers run" 0 "$(docker run --rm --network none bb true > /dev/null 2>&1; echo $?)"

actplane doctor > "$work/output" 2>&1
check "doctor: exit code" 3 "$?"
check_match "doctor: names the kernel" 'FAIL +kernel +5\.10' "$(cat "$work/output")"
check_match "doctor: says what to do" 'boot kernel 6\.1' "$(cat "$work/output")"
(cd "$work" && echo "$policy" > actplane.yaml && actplane run -- true > "$work/output" 2>&1)
check "actplane run: exit code" 3 "$?"
check_match "actplane run: names the kernel" '5\.10|6\.1' "$(cat "$work/output")"
check "no daemon stays" "" "$(pgrep -x actplaned)"
check_nothing_left "nothing is left" "$work/before"
exit "$failed"
