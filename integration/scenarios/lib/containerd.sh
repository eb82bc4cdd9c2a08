# SPDX-License-Identifier: Apache-2.0
#
# A containerd of a scenario's own, and ctr. Sourced after checks.sh.
# shellcheck shell=bash

IMAGE=docker.io/library/bb:latest
SHIM=io.containerd.actplane.v2
policy='version: 1
policy: |
  rule no-touch:
    block exec "touch"
    because "Not here."
  rule no-notes:
    block write file "/notes"
limits:
  pids: 30
  capabilities: {drop: [ALL], add: [CHOWN]}
  no_new_privileges: true'
denied='[Oo]peration not permitted'
# The host's configuration as it was.
# shellcheck disable=SC2034
settings_before=$(cat /etc/actplane/config.yaml)

containerd_answers() { ctr version > /dev/null 2>&1; }

# containerd_up: with the folders and the socket that Debian's service has. An emulated
# machine does not clean up after three containers within five seconds.
containerd_settings='[timeouts]
  "io.containerd.timeout.shim.cleanup" = "60s"
'
containerd=(containerd)
containerd_up() {
  if [ ${#containerd[@]} = 1 ]; then
    printf 'version = 2\n%s' "$containerd_settings" > /run/containerd.toml
    containerd+=(-c /run/containerd.toml)
  fi
  setsid "${containerd[@]}" > /var/log/containerd.log 2>&1 < /dev/null &
  containerd_pid=$!
  check_that "containerd answers" eventually 60 containerd_answers
  docker save bb | ctr images import - > /dev/null
  check "the image is there" "$IMAGE" "$(ctr images list -q)"
}

containerd_down() {
  # shellcheck disable=SC2046
  forget $(ctr containers list -q)
  kill "$containerd_pid"
  wait "$containerd_pid"
} 2> /dev/null

# forget ID...: removes containers, with what ctr leaves of one that it did not wait for.
forget() {
  local id
  for id in "$@"; do
    ctr tasks delete -f "$id"
    ctr containers delete "$id"
  done > /dev/null 2>&1
  rm -rf /run/containerd/fifo/*
}

# configure LINE...: the host's configuration, with these besides.
configure() {
  printf '%s\n' "$settings_before" "$@" > /etc/actplane/config.yaml
}

# under POLICY OPTION... ID COMMAND...: ctr run with the shim and a policy.
under() {
  local policy=$1
  shift
  ctr run --runtime "$SHIM" --annotation "dev.actplane.policy=$policy" "$@" 2>&1
}

# inside ID COMMAND...: ctr task exec, whose processes have names of their own.
inside() {
  local id=$1
  shift
  executed=$((${executed:-0} + 1))
  ctr tasks exec --exec-id "e$BASHPID-$executed" "$id" "$@" 2>&1
}

# status_of ID: RUNNING, PAUSED, STOPPED, or nothing.
status_of() { ctr tasks list | awk -v id="$1" '$1 == id { print $3 }'; }

# has_status ID STATUS
has_status() { [ "$(status_of "$1")" = "$2" ]; }

# shim_of ID: the process that serves a container.
shim_of() { pgrep -f "^[^ ]*containerd-shim-actplane-v2 .*-id $1( |\$)"; }

no_scopes() { [ "$(scope_count)" = 0 ]; }

# life NAME: a container's life, with the next runtime that is configured.
life() {
  local name=$1 id=life-$1 pid before layer
  check_match "$name: the first act is denied" "$denied" "$(under "$policy" --rm "$IMAGE" "$id-0" touch /tmp/x)"
  check "$name: the exit status comes through" 7 "$(under "$policy" --rm "$IMAGE" "$id-1" sh -c 'exit 7' > /dev/null; echo $?)"
  check "$name: starts" "" "$(under "$policy" -d "$IMAGE" "$id" sleep 1000)"
  check_match "$name: ps lists it" "$id" "$(actplane ps)"
  check_match "$name: exec is denied" "$denied" "$(inside "$id" touch /tmp/x)"
  check_match "$name: exec of a shell is under the policy" "$denied" "$(inside "$id" sh -c 'echo x > /notes')"
  check "$name: exec of what is permitted" x "$(inside "$id" sh -c 'echo x > /other; cat /other')"
  check "$name: exec has the container's limits" "CapPrm: 0000000000000001 CapEff: 0000000000000001 CapBnd: 0000000000000001 NoNewPrivs: 1 " \
    "$(inside "$id" sh -c 'grep -E "^(CapPrm|CapEff|CapBnd|NoNewPrivs)" /proc/self/status' | tr -s '\t\n' ' ')"
  check "$name: pids.max" 30 "$(cat "/sys/fs/cgroup/default/$id/pids.max")"
  check_match "$name: the feedback tells why" 'Not here' "$(inside "$id" /run/actplane/bin/actplane-guest feedback --all)"
  ctr tasks pause "$id"
  check "$name: is paused" PAUSED "$(status_of "$id")"
  check_match "$name: ps lists it while paused" "$id" "$(actplane ps)"
  ctr tasks resume "$id"
  check "$name: is resumed" RUNNING "$(status_of "$id")"
  check_match "$name: is under policy after that" "$denied" "$(inside "$id" touch /tmp/x)"
  check_match "$name: metrics" 'pids.current' "$(ctr tasks metrics "$id")"

  before=$(denials "$id")
  ctr tasks kill -s KILL "$id"
  check_that "$name: is killed" eventually 30 has_status "$id" STOPPED
  ctr tasks delete "$id" > /dev/null 2>&1
  check_that "$name: its scope is closed" eventually 20 no_scopes
  check "$name: the task is started again" "" "$(ctr tasks start -d "$id" 2>&1)"
  check_match "$name: is under policy again" "$denied" "$(inside "$id" touch /tmp/x)"
  check "$name: denials belong to the container" $((before + 1)) "$(denials "$id")"
  check "$name: files are kept" x "$(inside "$id" cat /other)"

  pid=$(pgrep -f '^sleep 1000')
  layer=$(sed -n "s|.*/$id/rootfs .*upperdir=\([^,]*\),.*|\1|p" /proc/mounts)
  kill -9 "$(shim_of "$id")"
  check_that "$name: kill -9 of the shim ends the container" eventually 30 test ! -e "/proc/$pid"
  check_that "$name: and leaves no scope" eventually 30 no_scopes
  forget "$id"
  # Until then another container of this id is taken for this one.
  check_that "$name: containerd removes what it wrote" eventually 60 test ! -e "$layer"
}
