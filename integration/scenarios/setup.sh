#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What docker exec brings into a container is under no rule until its program starts:
# nothing in the container gets hold of it, were it root and allowed to trace.
. "$(dirname "$0")/lib/checks.sh"
work=$(mktemp -d)
trap 'docker rm -f setup > /dev/null 2>&1; rm -rf "$work"' EXIT
mkdir "$work/share"
policy='policy: |
  rule r: block exec "wget"'

protected -d --name setup --cap-add SYS_PTRACE --security-opt seccomp=unconfined --security-opt apparmor=unconfined \
  --label "dev.actplane.policy=$policy" -v "$work/share:/share" -v "$LIB:/lib/scenario:ro" agent sleep 1000 > /dev/null
docker exec setup python3 /lib/scenario/setup_spy.py /share > "$work/spy.log" 2>&1 &
rounds=6
[ -z "${ACTPLANE_SOAK:-}" ] || rounds=100
for _ in $(seq "$rounds"); do
  timeout 60 docker exec setup true > "$work/exec" 2>&1 || fail "docker exec under a spy's eyes" "$(cat "$work/exec")"
done
touch "$work/share/stop"
wait
relay "$work/spy.log"
check_that "the spy met processes in setup" grep -qE '^met [1-9]' "$work/spy.log"
exit "$failed"
