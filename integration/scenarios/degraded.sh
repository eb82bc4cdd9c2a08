#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Where the kernel skips programs of the second-best tier, nothing starts under policy
# unless the host's configuration accepts that; then it is said wherever one looks.
# on: new
# lsm: nobpf
. "$(dirname "$0")/lib/checks.sh"
work=$(mktemp -d)
config=/etc/actplane/config.yaml
restore() {
  [ ! -e "$work/config" ] || mv "$work/config" "$config"
  stop_engine
}
trap 'restore; docker rm -f degraded > /dev/null 2>&1; rm -rf "$work"' EXIT
policy='policy: |
  rule r: block exec "wget"'

check_that "this host's configuration accepts it" grep -q '^degraded: allow' "$config"
mv "$config" "$work/config"
stop_engine
protected --rm --label "dev.actplane.policy=$policy" bb true > "$work/output" 2>&1
check "refused without it: exit code" 125 "$?"
check_match "refused without it: says what to do" 'lsm=.*bpf' "$(cat "$work/output")"
check_match "doctor fails" 'FAIL +tier' "$(actplane doctor 2>&1)"

mv "$work/config" "$config"
protected -d --name degraded --label "dev.actplane.policy=$policy" bb sleep 1000 > "$work/output" 2>&1
check "accepted with it" 0 "$?"
check_match "ps says it" 'warning: .*(degraded|skip)' "$(actplane ps 2>&1)"
check_match "the container is told" 'degraded' "$(docker exec degraded /run/actplane/bin/actplane-guest status 2>&1)"
exit "$failed"
