#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Containers of containerd, by the shim: under policy from their first act, with exec,
# pause, restart and kill -9 of the shim; in pods. What cannot be put under policy does
# not start, and the user reads why.
# lsm: bpf
. "$(dirname "$0")/lib/checks.sh"
# shellcheck source=lib/snapshot.sh
. "$LIB/snapshot.sh"
# shellcheck source=lib/containerd.sh
. "$LIB/containerd.sh"
work=$(mktemp -d)
trap 'containerd_down; configure; rm -rf "$work" /etc/actplane/policies/scenario.yaml' EXIT
# refused NAME REGEX OPTION... ID COMMAND...: does not start, with one sentence.
refused() {
  local name=$1 pattern=$2 output status
  shift 2
  output=$(ctr run --rm --runtime "$SHIM" "$@" 2>&1)
  status=$?
  check "$name: status" 1 "$status"
  check_match "$name: says what and what next" "^ctr: (failed to create shim task|OCI runtime start failed).*actplane: .*$pattern" "$output"
  check "$name: one line" 1 "$(wc -l <<< "$output")"
}

containerd_up
check "a container starts" 0 "$(under "$policy" --rm "$IMAGE" first true > /dev/null; echo $?)"
eventually 20 no_scopes
snapshot | sort > "$work/before"
life runc
check "another container of the same id" "" "$(under "$policy" -d "$IMAGE" life-runc sleep 1000)"
check "has denied nothing" 0 "$(denials life-runc)"
ctr tasks kill -s KILL life-runc
eventually 30 has_status life-runc STOPPED
forget life-runc
check_nothing_left "runc: nothing is left" "$work/before"

# Where the policy comes from.
mkdir -p /etc/actplane/policies "$work/project"
echo "$policy" | tee /etc/actplane/policies/scenario.yaml > "$work/project/actplane.yaml"
check_match "a named policy of the host" "$denied" "$(under scenario --rm "$IMAGE" named touch /x)"
check_match "a policy in the working directory" "$denied" \
  "$(ctr run --rm --runtime "$SHIM" --cwd /src --mount "type=bind,src=$work/project,dst=/src,options=rbind:rw" "$IMAGE" mounted touch x 2>&1)"
check "it is protected" 1 "$(ctr run --rm --runtime "$SHIM" --cwd /src --mount "type=bind,src=$work/project,dst=/src,options=rbind:rw" "$IMAGE" \
  protected sh -c 'echo > actplane.yaml' > /dev/null 2>&1; echo $?)"

# What does not start.
refused "no policy" 'no policy found.*actplane\.yaml' "$IMAGE" none true
refused "a broken policy" 'P[0-9]+.*actplane check' --annotation 'dev.actplane.policy=policy: {' "$IMAGE" broken true
refused "an unknown annotation" 'did you mean' --annotation dev.actplane.polcy=scenario "$IMAGE" unknown true
echo 'BinaryName = "/usr/sbin/runc"' > "$work/options.toml"
refused "an option that would leave the policy out" 'runtimes in /etc/actplane' --runtime-config-path "$work/options.toml" \
  --annotation dev.actplane.policy=scenario "$IMAGE" option true
echo "Root = \"$work/runc\"" > "$work/options.toml"
check_match "an option of runc's" "$denied" "$(under scenario --rm --runtime-config-path "$work/options.toml" "$IMAGE" root touch /x)"
check_that "and it is used" test -d "$work/runc/default"

# A next runtime that leaves hooks out creates what is not under policy; it does not begin.
cat > "$work/hookless" <<'RUNTIME'
#!/usr/bin/python3
import json, os, sys
if "create" in sys.argv:
    name = sys.argv[sys.argv.index("--bundle") + 1] + "/config.json"
    spec = json.load(open(name))
    del spec["hooks"]
    json.dump(spec, open(name, "w"))
os.execv("/usr/sbin/runc", ["runc"] + sys.argv[1:])
RUNTIME
chmod 755 "$work/hookless"
configure "runtimes: [$work/hookless]"
mkdir "$work/out"
refused "a runtime that runs no hooks" 'not in force.*createRuntime' --annotation dev.actplane.policy=scenario \
  --mount "type=bind,src=$work/out,dst=/out,options=rbind:rw" "$IMAGE" hookless sh -c 'echo > /out/x'
check "its program did not begin" "" "$(ls "$work/out")"
configure
forget hookless    # which ctr has left as it was created
check_nothing_left "nothing is left of refusals" "$work/before"

# A pod: one shim, a sandbox, and two containers with policies of their own.
in_pod() { ctr run -d --runtime "$SHIM" --annotation io.kubernetes.cri.sandbox-id=pod --annotation io.kubernetes.cri.sandbox-name=web "$@" 2>&1; }
settings=(--annotation dev.actplane.policy=scenario --annotation dev.actplane.container.reader.policy='policy: |
  rule reads-only:
    block write file "/**"')
check "a sandbox needs no policy" "" "$(in_pod --annotation io.kubernetes.cri.container-type=sandbox "${settings[@]}" "$IMAGE" pod sleep 1000)"
check "a container of a pod" "" "$(in_pod --annotation io.kubernetes.cri.container-name=agent "${settings[@]}" "$IMAGE" pod-agent sleep 1000)"
check "another one" "" "$(in_pod --annotation io.kubernetes.cri.container-name=reader "${settings[@]}" "$IMAGE" pod-reader sleep 1000)"
check "one shim serves them" 1 "$(pgrep -fc '^[^ ]*containerd-shim-actplane-v2 ')"
check "each is a scope" 3 "$(scope_count)"
check_match "the sandbox by name" 'web/sandbox' "$(actplane ps)"
check_match "the sandbox writes nothing" "$denied" "$(inside pod sh -c 'echo x > /tmp/x')"
check_match "the sandbox connects nowhere" "$denied" "$(inside pod nc -w 1 127.0.0.1 1)"
check_match "the pod's policy" "$denied" "$(inside pod-agent touch /tmp/x)"
check "is no other's" x "$(inside pod-agent sh -c 'echo x > /tmp/x; cat /tmp/x')"
check_match "the container's own" "$denied" "$(inside pod-reader sh -c 'echo x > /tmp/x')"
kill -9 "$(shim_of pod)"
check_that "kill -9 of a pod's shim leaves no scope" eventually 60 no_scopes
forget pod-reader pod-agent pod
check_nothing_left "nothing is left of a pod" "$work/before"
exit "$failed"
