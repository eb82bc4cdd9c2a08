#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# containerd 2: the life of a container (containerd.sh), and pods by CRI as crictl makes
# them: who is under which policy, exec, limits also after an update, and what does not
# start.
# lsm: none
# programs: containerd
. "$(dirname "$0")/lib/checks.sh"
# shellcheck source=lib/snapshot.sh
. "$LIB/snapshot.sh"
# shellcheck source=lib/containerd.sh
. "$LIB/containerd.sh"
work=$(mktemp -d)
mkdir -p /etc/actplane/policies
trap 'stop_pods; containerd_down; rm -rf "$work" /etc/actplane/policies/scenario.yaml' EXIT
socket=/run/containerd/containerd.sock
ctr() { /files/containerd/ctr "$@"; }
containerd=(/files/containerd/containerd -c "$work/config.toml")
echo "runtime-endpoint: unix://$socket" > "$work/crictl.yaml"
crictl() { /files/containerd/crictl -c "$work/crictl.yaml" --timeout 60s "$@"; }
stop_pods() { { crictl rm -fa; crictl rmp -fa; } > /dev/null 2>&1; }
no_pods() {
  stop_pods
  [ -z "$(crictl ps -aq)$(crictl pods -q)" ]
}
# Pods get a copy.
[ -e /etc/resolv.conf ] || echo 'nameserver 127.0.0.1' > /etc/resolv.conf

cat > "$work/config.toml" <<'CONFIG'
version = 3
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "docker.io/library/pause:latest"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.actplane]
  runtime_type = "io.containerd.actplane.v2"
  pod_annotations = ["dev.actplane.*"]
  container_annotations = ["dev.actplane.*"]
CONFIG
echo "$containerd_settings" >> "$work/config.toml"
echo "$policy" > /etc/actplane/policies/scenario.yaml

# What a pod's sandbox runs, behind links as in busybox.
container=$(docker create bb true)
docker export "$container" | docker import -c 'CMD ["/bin/sleep", "100000"]' - pause > /dev/null
docker rm "$container" > /dev/null

cri_answers() { crictl info > /dev/null 2>&1; }

containerd_up
for image in bb pause; do
  docker save "$image" | ctr -n k8s.io images import - > /dev/null
done
docker rmi pause > /dev/null
check_that "CRI answers" eventually 60 cri_answers
check "a container starts" 0 "$(under "$policy" --rm "$IMAGE" first true > /dev/null; echo $?)"
eventually 20 no_scopes
# What is there from the first pod on.
mkdir -p /run/containerd/io.containerd.grpc.v1.cri/{containers,sandboxes} /run/containerd/{io.containerd.runtime.v2.task,runc}/k8s.io /sys/fs/cgroup/pods
snapshot | sort > "$work/before"
life containerd2
check_nothing_left "containerd2: nothing is left" "$work/before"

# pod NAME [ANNOTATIONS]: starts one and prints its id. It has the host's network, since
# there is none other here.
pod() {
  cat > "$work/pod-$1.json" <<JSON
{"metadata": {"name": "$1", "namespace": "default", "uid": "$1", "attempt": 1}, "log_directory": "$work/log",
 "annotations": {${2:-}}, "linux": {"cgroup_parent": "/pods", "security_context": {"namespace_options": {"network": 2}}}}
JSON
  crictl runp --runtime actplane "$work/pod-$1.json"
}

# member POD-ID POD NAME ANNOTATIONS WORD...: creates a container and prints its id.
member() {
  local pod=$1 config=$work/pod-$2.json name=$3 annotations=$4
  shift 4
  python3 - "$name" "$annotations" "$@" > "$work/container.json" <<'PYTHON'
import json, sys
print(json.dumps({"metadata": {"name": sys.argv[1]}, "image": {"image": "docker.io/library/bb:latest"}, "command": sys.argv[3:],
  "log_path": sys.argv[1] + ".log", "annotations": json.loads("{" + sys.argv[2] + "}"), "linux": {"resources": {"memory_limit_in_bytes": 1 << 28}}}))
PYTHON
  crictl create --no-pull "$pod" "$work/container.json" "$config"
}

named='"dev.actplane.policy": "scenario"'
reads_only='"dev.actplane.container.reader.policy": "policy: |\n  rule reads-only:\n    block write file \"/**\""'
sandbox=$(pod web "$named, $reads_only")
check_match "a pod starts" '^[0-9a-f]{64}$' "$sandbox"
check_match "its sandbox is a scope" 'web/sandbox +enforcing' "$(actplane ps)"
agent=$(member "$sandbox" web agent '"dev.actplane.limits.memory": "64MiB", "dev.actplane.limits.cpus": "0.5"' sleep 1000)
check_match "a container of it is created" '^[0-9a-f]{64}$' "$agent"
check "and started" "$agent" "$(crictl start "$agent")"
check_match "it is a scope" 'agent +enforcing' "$(actplane ps)"
check_match "exec is denied" "$denied" "$(crictl exec "$agent" touch /tmp/x 2>&1)"
check "exec of what is permitted" x "$(crictl exec "$agent" sh -c 'echo x > /tmp/x; cat /tmp/x')"
check "exec has the container's limits" "CapBnd: 0000000000000001 NoNewPrivs: 1 " \
  "$(crictl exec "$agent" sh -c 'grep -E "^(CapBnd|NoNewPrivs)" /proc/self/status' | tr -s '\t\n' ' ')"
cgroup=$(find /sys/fs/cgroup -type d -name "*$agent*" | head -n 1)
limits() { cat "$cgroup"/{memory.max,cpu.max,pids.max} | tr '\n' ' '; }
check "its limits" "$((1 << 26)) 50000 100000 30 " "$(limits)"
check_match "stats" "$agent" "$(crictl stats -o json)"
crictl update --memory $((1 << 25)) --cpu-quota 4000 --cpu-period 10000 "$agent" > /dev/null
check "an update of its resources" "$((1 << 25)) 4000 10000 30 " "$(limits)"
crictl update --memory $((1 << 27)) --cpu-quota 40000 --cpu-period 10000 "$agent" > /dev/null
check "does not go beyond the limits" "$((1 << 26)) 5000 10000 30 " "$(limits)"

reader=$(member "$sandbox" web reader '' sleep 1000)
crictl start "$reader" > /dev/null
check_match "a container with a policy of its own" "$denied" "$(crictl exec "$reader" sh -c 'echo x > /tmp/x' 2>&1)"
check "is not under the other's" "" "$(crictl exec "$reader" sh -c 'cat /etc/group > /dev/null; touch --help > /dev/null 2>&1' 2>&1)"
other=$(member "$sandbox" web other '"dev.actplane.policy": "policy: |\n  rule o: block exec \"cat\""' sleep 1000)
crictl start "$other" > /dev/null
check_match "a container's annotation goes before the pod's" "$denied" "$(crictl exec "$other" cat /etc/group 2>&1)"
check "which does not hold there" "" "$(crictl exec "$other" touch /tmp/x 2>&1)"
# CRI creates a container's task when it starts.
first=$(member "$sandbox" web first '' touch /tmp/x)
crictl start "$first" > /dev/null
said() { crictl logs "$first" 2>&1 | grep -qiE "$denied"; }
check_that "the first act of a container is denied" eventually 30 said
broken=$(member "$sandbox" web broken '"dev.actplane.policy": "policy: {"' true)
check_match "a broken policy does not start" 'actplane: .*P[0-9]+.*actplane check' "$(crictl start "$broken" 2>&1)"
refusal=$(pod wrong '"dev.actplane.polcy": "scenario"' 2>&1)
check_match "nor does a pod with an unknown annotation" 'actplane: .*did you mean' "$refusal"
bare=$(pod bare)
check_match "a pod without a policy starts" '^[0-9a-f]{64}$' "$bare"
check_match "its containers do not" 'actplane: no policy found' "$(crictl start "$(member "$bare" bare agent '' true)" 2>&1)"

kill -9 "$(shim_of "$sandbox")"
scopes() { actplane ps | grep -cE '(web/sandbox|agent|reader|other) +enforcing'; }
check_that "kill -9 of the pod's shim ends all of it" eventually 60 eval '[ "$(scopes)" = 0 ]'
check_that "what is left of pods can be removed" eventually 90 no_pods
check_nothing_left "nothing is left of pods" "$work/before"
exit "$failed"
