#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What is stronger than a policy is refused with the reason, by docker run and docker exec,
# whatever it is called, and allowed where the host names it.
# lsm: bpf
# limit: 1200
. "$(dirname "$0")/lib/checks.sh"
work=$(mktemp -d)
config=/etc/actplane/config.yaml
[ ! -e "$config" ] || cp "$config" "$work/config"
restore() { if [ -e "$work/config" ]; then cp "$work/config" "$config"; else rm -f "$config"; fi; }
trap 'restore; docker rm -f refused > /dev/null 2>&1; umount "$work/alias" 2> /dev/null; rm -rf "$work"' EXIT
policy='version: 1
policy: |
  rule no-wget:
    block exec "wget"'
under=(--label "dev.actplane.policy=$policy")

# refused NAME SENTENCE KEY OPTION...: docker run ends with 125, the sentence, and the key by
# which the host could allow it.
refused() {
  local name=$1 sentence=$2 key=$3 output status
  shift 3
  output=$(protected --rm "${under[@]}" "$@" bb true 2>&1)
  status=$?
  check "$name: does not start" 125 "$status"
  check_match "$name: says why" "$sentence" "$output"
  check_match "$name: says how to allow it" "allow: \[[^]]*${key}[^]]*\] in $config" "$output"
}
# allowed NAME KEY OPTION...: with that key it starts.
allowed() {
  local name=$1 key=$2
  shift 2
  restore
  echo "allow: [$key]" >> "$config"
  check "$name: starts where the host allows $key" "" "$(protected --rm "${under[@]}" "$@" bb true 2>&1)"
  restore
}
both() {
  refused "$1" "$2" "$3" "${@:4}"
  allowed "$1" "$3" "${@:4}"
}

check "nothing of it: starts" "" "$(protected --rm "${under[@]}" -v "$work:/work" -v /etc:/hostetc:ro bb true 2>&1)"
both "--privileged" 'it is privileged: it has every capability' privileged --privileged
both "--cap-add SYS_ADMIN" 'it has CAP_SYS_ADMIN, with which' cap-sys-admin --cap-add SYS_ADMIN
refused "--cap-add SYS_MODULE" 'it has CAP_SYS_MODULE' cap-sys-module --cap-add SYS_MODULE
both "--pid host" "shares the host's process namespace" host-pid --pid host
both "Docker's socket" '"/var/run/docker.sock" is mounted at "/s"' docker-socket -v /var/run/docker.sock:/s
refused "Docker's socket, read-only" 'can start containers without a policy' docker-socket -v /run/docker.sock:/s:ro
refused "its folder" 'can start containers without a policy' docker-socket -v /run:/r:ro
ln -s /run/docker.sock "$work/link"
refused "a link to it" 'can start containers without a policy' docker-socket -v "$work/link:/s"
mkdir "$work/alias"
mount --bind /run "$work/alias"
refused "its folder by another name" 'can start containers without a policy' docker-socket -v "$work/alias:/r:ro"
refused "what is mounted below a folder" 'can start containers without a policy' docker-socket -v "$work:/w"
umount "$work/alias"
refused "by /proc/1/root" 'through the host.s /proc|can start containers' docker-socket -v /proc/1/root/run/docker.sock:/s
both "the host's root" "with it all of the host's files" host-root -v /:/host:ro
refused "the host's pins" 'pinned tables' bpf-files -v /sys/fs/bpf:/b:ro
refused "the engine's folder" 'speak for the engine' actplane-files -v /var/lib/actplane:/a
refused "the host's programs" 'decides what this host runs' host-system -v /usr/bin:/b
both "cgroups" 'can change their own limits' writable-cgroups -v /sys/fs/cgroup:/c
both "a disk" 'a block device' host-devices --device /dev/vda
refused "a rule for disks" 'it may use block devices' host-devices --device-cgroup-rule 'b *:* rwm'
refused "several at once" "shares the host's process namespace.*docker.sock" 'host-pid, docker-socket' --pid host -v /run/docker.sock:/s

# The kernel's paths are protected whatever was asked for.
check_match "systempaths=unconfined: /proc/sys cannot be written" 'Read-only file system' \
  "$(protected --rm "${under[@]}" --security-opt systempaths=unconfined bb sh -c 'echo 1 > /proc/sys/kernel/panic' 2>&1)"

# docker exec.
protected -d --name refused "${under[@]}" bb sleep 1000 > /dev/null
check "docker exec: runs" 0 "$(docker exec refused true > /dev/null 2>&1; echo $?)"
output=$(docker exec --privileged refused true 2>&1)
check_match "docker exec --privileged: is refused" 'it is privileged' "$output"
check_match "docker exec --privileged: says how to allow it" 'allow: \[privileged\]' "$output"
echo 'allow: [privileged]' >> "$config"
check "docker exec --privileged: runs where the host allows it" 0 "$(docker exec --privileged refused true > /dev/null 2>&1; echo $?)"
docker rm -f refused > /dev/null
protected -d --name refused "${under[@]}" --privileged bb sleep 1000 > /dev/null
check_match "what is allowed is warned of" 'the host allows privileged' "$(actplane ps -w)"
check_match "the policy holds all the same" 'not permitted' "$(docker exec refused wget 2>&1)"
docker rm -f refused > /dev/null
restore

# The same beforehand.
printf 'services:\n  agent:\n    image: x\n    runtime: actplane\n    privileged: true\n    volumes: ["/var/run/docker.sock:/s"]\n' > "$work/compose.yaml"
found=$(actplane lint --compose "$work/compose.yaml" 2>&1)
check "actplane lint fails" 1 "$?"
check_match "lint: the line and the code" "compose.yaml:5: error\[S101\].*compose.yaml:6: error\[S121\]" "$(tr '\n' ' ' <<< "$found")"
exit "$failed"
