#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Installing into full configurations and uninstalling again, with the real Docker and
# the real containerd: each starts a throw-away container without an image of anyone's.
# lsm: bpf
. "$(dirname "$0")/lib/checks.sh"
work=$(mktemp -d)
bin=/payload/bin/actplane
socket=/run/containerd/containerd.sock
config=/etc/containerd/config.toml
trap finish EXIT

# finish: the machine is as other scenarios expect it.
finish() {
  [ -z "${containerd:-}" ] || kill "$containerd"
  chattr -i /etc/docker/daemon.json 2> /dev/null
  rm -f /etc/docker/daemon.json* /etc/containerd/config.toml*
  [ ! -e "$work/config.toml" ] || cp -p "$work/config.toml" "$config"
  "$bin" install --no-verify > "$work/log" 2>&1 || fail "the machine as it was" "$(cat "$work/log")"
  rm -rf "$work"
}

# containerd_anew: with the configuration as it is now.
containerd_anew() {
  [ -z "${containerd:-}" ] || { kill "$containerd"; wait "$containerd" 2> /dev/null; }
  containerd > "$work/containerd.log" 2>&1 &
  containerd=$!
  eventually 60 ctr --address "$socket" version > /dev/null 2>&1 || fail "containerd comes up" "$(tail -n 3 "$work/containerd.log")"
}

# run NAME COMMAND...: it ends with 0; what it prints is in $out.
run() {
  local name=$1
  shift
  if out=$("$@" 2>&1); then pass "$name"; else fail "$name" "$out"; fi
}

[ ! -e "$config" ] || cp -p "$config" "$work/"
run "uninstall" "$bin" uninstall --force
check "nothing is left" "" "$(ls -d /etc/docker/daemon.json* /usr/local/bin/*actplane* /run/actplane /sys/fs/bpf/actplane /var/lib/actplane 2> /dev/null)"

cat > /etc/docker/daemon.json << 'EOF'
{
	"log-opts": {"max-size": "10m"  , "max-file": "3"},
	"runtimes": { "other":{"path":"/usr/bin/runc"} },
	"max-concurrent-downloads": 7, "shutdown-timeout": 15
}
EOF
mkdir -p "$work/d"
cat > "$config" << EOF
# comments stay
version = 2
imports = ["$work/d/*.toml"]   # of others

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "registry.example/pause:3.9"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    default_runtime_name = "nvidia"
EOF
printf '%s' "$(cat "$config")" > "$config"     # without a last line end
cp -p /etc/docker/daemon.json "$work/daemon.json.before"
cp -p "$config" "$work/containerd.before"
containerd_anew

chattr +i /etc/docker/daemon.json 2> "$work/chattr" && {
  out=$("$bin" install --containerd-config "$config" 2>&1)
  check "an immutable file, status" 3 $?
  check_match "an immutable file" 'Docker: change /etc/docker/daemon.json: operation not permitted; nothing was changed' "$out"
  chattr -i /etc/docker/daemon.json
}
check_that "nothing was installed beside it" test ! -e /usr/local/bin/actplane
check_that "nor configured" cmp "$config" "$work/containerd.before"

run "install" "$bin" install --containerd-config "$config"
check_match "Docker was tried" 'Docker started a container, and its policy is enforced' "$out"
check_match "containerd was tried" 'containerd started a container, and its policy is enforced' "$out"
check_match "containerd has to be restarted" 'run "systemctl restart containerd"' "$out"
check "no image is left" "" "$(docker images -q 'actplane-probe*')"
check "no container is left" "" "$(ctr -n actplane-probe container ls -q)"
check_match "the doctor knows" 'warn +containerd .* it has not read that yet' "$(actplane doctor --containerd-config "$config" 2>&1)"
containerd_anew
check_match "and after a restart" 'ok +containerd .* it knows the runtime, by /etc/containerd/config.toml' "$(actplane doctor --containerd-config "$config" 2>&1)"
dump=$(containerd config dump)
check_match "what containerd makes of it" 'sandbox_image = "registry.example/pause:3.9".*default_runtime_name = "nvidia".*runtimes.actplane.*"dev.actplane.\*".*runtimes.nvidia' "$(tr '\n' ' ' <<< "$dump")"

cp -p "$config" "$work/once"
cp -p /etc/docker/daemon.json "$work/once.json"
run "install again" "$bin" install --no-verify --containerd-config "$config"
check_that "changes nothing" cmp "$config" "$work/once"
check_that "nor Docker's" cmp /etc/docker/daemon.json "$work/once.json"

run "uninstall all" "$bin" uninstall --containerd-config "$config"
check_that "containerd's file is as before" cmp "$config" "$work/containerd.before"
check_that "Docker's file is as before" cmp /etc/docker/daemon.json "$work/daemon.json.before"
check "no backups are left" "" "$(ls -d /etc/docker/*before* /etc/containerd/*before* 2> /dev/null)"
check "and nothing else" "" "$(ls -d /usr/local/bin/*actplane* /run/actplane /sys/fs/bpf/actplane /var/lib/actplane 2> /dev/null)"
exit "$failed"
