# SPDX-License-Identifier: Apache-2.0
#
# The matrix of front ends, runtimes and what is done with a container. A cell is one
# line: ok, not ok with what was wrong, or skip with the reason why it cannot be.
# Sourced after checks.sh.
#
# A front end is a kind of client (docker, ctr, crictl), whose verbs are the functions
# KIND_start NAME WORD..., KIND_run NAME WORD..., KIND_exec NAME WORD...,
# KIND_again NAME, KIND_id NAME and KIND_remove NAME. They use the array client, and
# mount the host's paths of the array mounts (SOURCE:DESTINATION).
# shellcheck shell=bash

work=$(mktemp -d)
daemons=()
mounts=()
settings_before=$(cat /etc/actplane/config.yaml)
denied='[Oo]peration not permitted'
mkdir -p /etc/actplane/policies "$work/out"
cat > /etc/actplane/policies/matrix.yaml <<'POLICY'
version: 1
policy: |
  rule no-touch:
    block exec "touch"
    because "Not here."
limits:
  pids: 20
  capabilities: {drop: [ALL], add: [CHOWN]}
  no_new_privileges: true
POLICY

# matrix_end: daemons and settings go; also when a scenario is cut short.
matrix_end() {
  local pid
  for pid in "${daemons[@]}"; do
    kill "$pid" && eventually 30 eval "! kill -0 $pid"
  done 2> /dev/null
  echo "$settings_before" > /etc/actplane/config.yaml
  rm -rf "$work" /etc/actplane/policies/matrix.yaml
}
trap matrix_end EXIT

# daemon NAME ASK COMMAND...: starts it and waits until ASK succeeds.
daemon() {
  local name=$1 ask=$2
  shift 2
  setsid "$@" > "/var/log/$name.log" 2>&1 < /dev/null &
  daemons+=($!)
  eventually 90 eval "$ask > /dev/null 2>&1" || fail "$name answers" "$(tail -n 5 "/var/log/$name.log")"
}

# row FRONT-END KIND RUNTIME [CELL=REASON...]: all cells, but those that cannot be.
row() {
  local front=$1 runtime=$3 cell reason given
  kind=$2
  shift 3
  name=matrix-$front-$runtime
  printf '%s\n' "$settings_before" "runtimes: [$runtime]" > /etc/actplane/config.yaml
  for cell in run exec restart limits first-act refused; do
    reason=
    for given in "$@"; do
      [ "${given%%=*}" != "$cell" ] || reason=${given#*=}
    done
    if [ -n "$reason" ]; then
      echo "skip $front, $runtime: $cell: cannot be: $reason"
    elif reason=$("cell_$cell" 2>&1); then
      pass "$front, $runtime: $cell"
    else
      fail "$front, $runtime: $cell" "$reason"
    fi
  done
  "${kind}_remove" "$name" > /dev/null 2>&1
}

# wants WHAT REGEX GOT
wants() { [[ $3 =~ $2 ]] || { echo "$1: \"$3\" does not match \"$2\""; return 1; }; }

cell_run() {
  local out id
  mounts=("$work/out:/out")
  out=$("${kind}_start" "$name" sleep 1000 2>&1) || { echo "it does not start: $out"; return 1; }
  id=$("${kind}_id" "$name")
  wants "actplane ps" "${id:0:12}[^ ]* .*enforcing|$name +enforcing" "$(actplane ps)" &&
    wants "the runtime's own record of it" "/$id/$(own_file)\$" "$(find /run -path "*/$id/$(own_file)")"
}

# own_file: what only this runtime keeps of a container.
own_file() { if [ "$runtime" = crun ]; then echo status; else echo state.json; fi; }

# busybox's shell runs its own applets without an exec, unless it is given a path.
cell_exec() {
  wants "what is permitted" '^kept$' "$("${kind}_exec" "$name" sh -c 'echo kept > /kept; cat /kept' 2>&1)" &&
    wants "what is denied" "$denied" "$("${kind}_exec" "$name" touch /out/exec 2>&1)" &&
    wants "what its child is denied" "$denied" "$("${kind}_exec" "$name" sh -c '/bin/touch /out/exec; true' 2>&1)" &&
    wants "nothing was done" '^$' "$(ls "$work/out")" &&
    wants "the reason inside" 'Not here' "$("${kind}_exec" "$name" /run/actplane/bin/actplane-guest feedback --all 2>&1)"
}

cell_restart() {
  local before out
  before=$(denials "$("${kind}_id" "$name")")
  out=$("${kind}_again" "$name" 2>&1) || { echo "it does not start again: $out"; return 1; }
  wants "what it wrote" '^kept$' "$("${kind}_exec" "$name" cat /kept 2>&1)" &&
    wants "what is denied" "$denied" "$("${kind}_exec" "$name" touch /out/restart 2>&1)" &&
    wants "denials go on" "^$((before + 1))\$" "$(denials "$("${kind}_id" "$name")")"
}

# What the container's program and an exec see of the limits.
cell_limits() {
  local process
  for process in 1 self; do
    wants "process $process" 'CapEff: 0000000000000001 CapBnd: 0000000000000001 .*NoNewPrivs: 1 ' \
      "$("${kind}_exec" "$name" grep -E '^(CapEff|CapBnd|NoNewPrivs)' "/proc/$process/status" 2>&1 | tr -s '\t\n' ' ')" || return
  done
  wants "what is dropped" "$denied" "$("${kind}_exec" "$name" mknod /dev/other c 1 3 2>&1)" &&
    wants "pids" "can't fork" "$("${kind}_exec" "$name" sh -c 'for i in $(seq 40); do sleep 3 & done' 2>&1)"
}

# The program itself is what is denied: nothing of it ran, and the host reads why.
cell_first-act() {
  local out status events
  "${kind}_remove" "$name" > /dev/null 2>&1
  mounts=("$work/out:/out")
  out=$("${kind}_run" "$name-first" touch "/out/$name" 2>&1)
  status=$?
  wants "its output" "$denied" "$out" && wants "its status" '^[^0]' "$status" &&
    wants "nothing was done" '^$' "$(ls "$work/out")" || return
  events=$(actplane events --json | grep -F "\"/out/$name\"")
  wants "the event" '"effect": ?"block".*"rule": ?"no-touch".*"because": ?"Not here\."' "$events"
}

cell_refused() {
  local out status
  mounts=("$work/out:/out" /run/docker.sock:/s)
  out=$("${kind}_run" "$name-refused" sh -c 'echo > /out/refused' 2>&1)
  status=$?
  wants "its status" '^[^0]' "$status" && wants "the reason" 'could get around its policy: .*docker\.sock.* allow: \[docker-socket\]' "$out" &&
    wants "nothing was done" '^$' "$(ls "$work/out")"
}

# The client is docker or podman, or another of Docker's; setting is its flag for settings.
docker_new() { "${client[@]}" run --runtime actplane --network none "$setting" dev.actplane.policy=matrix "${mounts[@]/#/--volume=}" --name "$@"; }
docker_start() { local name=$1; shift; docker_new "$name" -d bb "$@"; }
docker_run() { local name=$1; shift; docker_new "$name" --rm bb "$@"; }
docker_exec() { "${client[@]}" exec "$@"; }
docker_again() { "${client[@]}" restart -t 0 "$1"; }
docker_id() { "${client[@]}" inspect -f '{{.Id}}' "$1"; }
docker_remove() { "${client[@]}" rm -f "$1"; }

# The client is ctr.
ctr_new() {
  local mount args=()
  for mount in "${mounts[@]}"; do
    args+=(--mount "type=bind,src=${mount%:*},dst=${mount#*:},options=rbind:rw")
  done
  "${client[@]}" run --runtime io.containerd.actplane.v2 --annotation dev.actplane.policy=matrix "${args[@]}" "$@"
}
ctr_start() { ctr_new -d docker.io/library/bb:latest "$@"; }
ctr_run() { ctr_new --rm docker.io/library/bb:latest "$@"; }
ctr_exec() { "${client[@]}" tasks exec --exec-id "e$BASHPID-$RANDOM" "$@"; }
ctr_has() { "${client[@]}" tasks list | grep -qE "^$1 .* $2"; }
ctr_stop() {
  "${client[@]}" tasks kill -s KILL "$1"
  eventually 30 ctr_has "$1" STOPPED
  "${client[@]}" tasks delete "$1"
}
ctr_again() {
  ctr_stop "$1"
  eventually 30 eval '! actplane ps | grep -q "$name "'
  "${client[@]}" tasks start -d "$1"
}
ctr_id() { echo "$1"; }
ctr_remove() { ctr_stop "$1"; "${client[@]}" containers delete "$1"; }

# The client is crictl. Each container has a pod of its own, in the host's network, since
# there is none other here, and its own processes. CRI creates a container's task when it starts.
crictl_new() {
  local name=$1 pod
  shift
  python3 - "$work" "$name" "${#mounts[@]}" "${mounts[@]}" "$@" <<'PYTHON'
import json, sys
work, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
mounts, command = sys.argv[4:4 + count], sys.argv[4 + count:]
json.dump({"metadata": {"name": name, "namespace": "default", "uid": name, "attempt": 1}, "log_directory": work + "/log",
           "annotations": {"dev.actplane.policy": "matrix"},
           "linux": {"cgroup_parent": "/pods", "security_context": {"namespace_options": {"network": 2, "pid": 1}}}},
          open(f"{work}/pod.json", "w"))
json.dump({"metadata": {"name": name}, "image": {"image": "docker.io/library/bb:latest"}, "command": command, "log_path": name + ".log",
           "mounts": [dict(zip(("host_path", "container_path"), mount.split(":"))) for mount in mounts]},
          open(f"{work}/container.json", "w"))
PYTHON
  pod=$("${client[@]}" runp --runtime actplane "$work/pod.json") &&
    "${client[@]}" create --no-pull "$pod" "$work/container.json" "$work/pod.json" > "$work/$name.id"
}
crictl_start() { crictl_new "$@" && "${client[@]}" start "$(crictl_id "$1")"; }
crictl_run() {
  local status=0
  crictl_start "$@" || status=$?
  # What a container's program ended with is its own.
  [ "$status" != 0 ] || { eventually 30 crictl_exited "$1" && status=$(crictl_field "$1" exitCode); }
  "${client[@]}" logs "$(crictl_id "$1")"
  crictl_remove "$1" > /dev/null 2>&1
  return "$status"
}
crictl_field() { "${client[@]}" inspect "$(crictl_id "$1")" | sed -n "s/^ *\"$2\": \"\?\([^\",]*\).*/\1/p" | head -n 1; }
crictl_exited() { [ "$(crictl_field "$1" state)" = CONTAINER_EXITED ]; }
crictl_exec() { local id; id=$(crictl_id "$1"); shift; "${client[@]}" exec "$id" "$@"; }
crictl_id() { cat "$work/$1.id"; }
crictl_remove() {
  local pod
  pod=$("${client[@]}" pods -q --name "^$1\$")
  "${client[@]}" rm -f "$(crictl_id "$1")"
  [ -z "$pod" ] || "${client[@]}" rmp -f "$pod"
}

# What is there to be tried. Each sets client, and starts what it needs.

use_docker() { client=(docker) setting=--label; }      # 20.10 has no annotations

use_podman() {
  local here=/files/podman
  cat > "$work/containers.conf" <<CONF
[containers]
seccomp_profile = "$here/seccomp.json"
log_driver = "k8s-file"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
conmon_path = ["$work/conmon"]
[engine.runtimes]
actplane = ["/usr/local/bin/actplane-runtime"]
CONF
  echo '{"default": [{"type": "insecureAcceptAnything"}]}' > "$work/policy.json"
  # Podman gives it little of its own environment.
  printf '#!/bin/sh\nLD_LIBRARY_PATH=%s/lib exec %s/conmon "$@"\n' "$here" "$here" > "$work/conmon"
  chmod 755 "$work/conmon"
  client=(podman) setting=--annotation
  docker save bb | podman load --quiet --signature-policy "$work/policy.json" > /dev/null || fail "podman has the image" "status $?"
}
podman() { CONTAINERS_CONF=$work/containers.conf LD_LIBRARY_PATH=/files/podman/lib /files/podman/podman "$@"; }

# With a containerd 2 of its own. Debian's runc 1.1 knows no time namespaces.
use_moby() {
  local socket=/run/moby.sock
  client=(/files/moby/docker -H "unix://$socket") setting=--annotation
  daemon moby "${client[*]} version" env "PATH=/files/containerd:/files/moby:$PATH" /files/moby/dockerd -H "unix://$socket" \
    --data-root /var/lib/moby --exec-root /run/moby --pidfile /run/moby.pid --feature time-namespaces=false \
    --bridge none --userland-proxy=false --iptables=false --ip6tables=false
  docker save bb | "${client[@]}" load > /dev/null || fail "moby has the image" "status $?"
}

# use_ctr FOLDER VERSION: a containerd of its own, without the CRI's settings unless it is 2.
use_ctr() {
  local socket=/run/matrix/containerd-$2.sock config=$work/containerd-$2.toml
  mkdir -p "/run/matrix"
  client=("$1ctr" -a "$socket")
  cat > "$config" <<CONF
version = $2
root = "/var/lib/matrix-$2"
state = "/run/matrix/$2"
[grpc]
  address = "$socket"
[timeouts]
  "io.containerd.timeout.shim.cleanup" = "60s"
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "docker.io/library/pause:latest"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.actplane]
  runtime_type = "io.containerd.actplane.v2"
  pod_annotations = ["dev.actplane.*"]
CONF
  daemon "containerd-$2" "${client[*]} version" "$1containerd" -c "$config"
  docker save bb | "${client[@]}" images import - > /dev/null || fail "ctr has the image" "status $?"
}

# use_crictl: of the containerd 2 that use_ctr has started.
use_crictl() {
  local container socket=/run/matrix/containerd-3.sock
  # What a pod's sandbox runs, behind links as in busybox.
  container=$(docker create bb true)
  docker export "$container" | docker import -c 'CMD ["/bin/sleep", "100000"]' - pause > /dev/null
  docker rm "$container" > /dev/null
  docker save bb pause | "${client[@]}" -n k8s.io images import - > /dev/null
  docker rmi pause > /dev/null
  [ -e /etc/resolv.conf ] || echo 'nameserver 127.0.0.1' > /etc/resolv.conf     # pods get a copy
  echo "runtime-endpoint: unix://$socket" > "$work/crictl.yaml"
  client=(/files/containerd/crictl -c "$work/crictl.yaml" --timeout 60s)
  eventually 60 eval "${client[*]} info > /dev/null 2>&1" || fail "CRI answers" "$(tail -n 3 /var/log/containerd-3.log)"
}
