#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The limits of a policy hold for the container and for what docker exec puts into it.
. "$(dirname "$0")/lib/checks.sh"
work=$(mktemp -d)
trap 'docker rm -f limits limits-memory > /dev/null 2>&1; rm -rf "$work"' EXIT

cat > "$work/policy" <<'POLICY'
version: 1
policy: |
  rule something:
    block exec "wget"
limits:
  pids: 24
  memory: 96MiB
  capabilities: {drop: [ALL], add: [CHOWN]}
  no_new_privileges: true
POLICY
under=(--label "dev.actplane.policy=$(cat "$work/policy")")

protected -d --name limits "${under[@]}" --cap-add NET_ADMIN bb sleep 1000 > /dev/null
id=$(docker inspect -f '{{.Id}}' limits)
cgroup=/sys/fs/cgroup/docker/$id
check "memory.max" $((96 << 20)) "$(cat "$cgroup/memory.max")"
check "pids.max" 24 "$(cat "$cgroup/pids.max")"

# status OPTION...: the capabilities and flags of a process that docker exec starts.
status() { docker exec "$@" sh -c 'grep -E "^(CapPrm|CapEff|CapBnd|CapInh|CapAmb|NoNewPrivs)" /proc/self/status' | tr -s '\t\n' ' '; }
chown_only="CapInh: 0000000000000000 CapPrm: 0000000000000001 CapEff: 0000000000000001 CapBnd: 0000000000000001 CapAmb: 0000000000000000 NoNewPrivs: 1 "
check "the container's process" "$chown_only" "$(docker exec limits sh -c 'grep -E "^(CapPrm|CapEff|CapBnd|CapInh|CapAmb|NoNewPrivs)" /proc/1/status' | tr -s '\t\n' ' ')"
check "docker exec" "$chown_only" "$(status limits)"
docker update --pids-limit 1000 --memory 1g --memory-swap 2g limits > /dev/null
check "docker update: pids.max" 24 "$(cat "$cgroup/pids.max")"
check "docker update: memory.max" $((96 << 20)) "$(cat "$cgroup/memory.max")"
check "docker exec --privileged" "$chown_only" "$(status --privileged limits)"
check_match "docker exec -u 1000" "CapBnd: 0000000000000001 .*NoNewPrivs: 1" "$(status -u 1000 limits)"
check "what is kept works" 0 "$(docker exec limits chown 1:1 /tmp > /dev/null 2>&1; echo $?)"
check "what is dropped does not" 1 "$(docker exec --privileged limits mknod /dev/xyz c 1 3 > /dev/null 2>&1; echo $?)"
docker exec limits sh -c 'mkdir /setuid; cp /bin/busybox /setuid/busybox; chmod 4755 /setuid/busybox'
check "a setuid program gains nothing" 1000 "$(docker exec -u 1000 limits /setuid/busybox id -u)"

# A fork bomb by docker exec meets the same limit.
docker exec limits sh -c 'i=0; while [ $i -lt 60 ]; do sleep 50 & i=$((i + 1)); done' > "$work/forks" 2>&1
check_match "forks end at pids.max" "can't fork|Resource temporarily unavailable" "$(cat "$work/forks")"
check_that "no more processes than that" test "$(cat "$cgroup/pids.peak" 2> /dev/null || cat "$cgroup/pids.current")" -le 24
docker rm -f limits > /dev/null

# What is over the memory limit is killed. The stricter of two limits holds.
protected --name limits-memory "${under[@]}" --memory 64m agent python3 -c 'len(bytearray(200 << 20))' > /dev/null 2>&1
check "memory is bounded" 137 "$?"
check "the manager's stricter limit stays" 67108864 "$(docker inspect -f '{{.HostConfig.Memory}}' limits-memory)"
exit "$failed"
