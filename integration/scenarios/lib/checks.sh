# SPDX-License-Identifier: Apache-2.0
#
# What scenarios share. Sourced, in the Docker machine.
# shellcheck shell=bash

LIB=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# Set to 1 by what fails; a scenario ends with: exit "$failed".
# shellcheck disable=SC2034
failed=0

pass() { echo "ok $1"; }

# fail NAME WHY: in one line, whatever WHY holds.
fail() {
  echo "not ok $1: $(tr '\n\r' '  ' <<< "$2" | cut -c1-600)"
  failed=1
}

# check NAME WANTED GOT
check() {
  if [ "$2" = "$3" ]; then pass "$1"; else fail "$1" "wanted \"$2\", got \"$3\""; fi
}

# tier_misses: the tier of this host is known to miss operations under load, and its
# configuration accepts that (degraded.sh).
tier_misses() { actplane doctor 2> /dev/null | grep -qE '^FAIL +tier +fmod_ret'; }

# check_strictly NAME WANTED GOT: what such a tier cannot promise is skipped there.
check_strictly() {
  if [ "$2" != "$3" ] && tier_misses; then
    echo "skip $1: this tier misses some on this kernel, and here it did"
  else
    check "$@"
  fi
}

# check_match NAME REGEX GOT
check_match() {
  if [[ $3 =~ $2 ]]; then pass "$1"; else fail "$1" "\"$3\" does not match \"$2\""; fi
}

# check_that NAME COMMAND...: the command succeeds.
check_that() {
  local name=$1
  shift
  if "$@"; then pass "$name"; else fail "$name" "false: $*"; fi
}

# eventually SECONDS COMMAND...: polls until the command succeeds.
eventually() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@"; do
    [ $SECONDS -lt $deadline ] || return 1
    sleep 0.1
  done
}

# relay FILE: the results that a program in a container printed. It must have come
# to its end, which it tells with "done".
relay() {
  grep -E '^(ok|not ok|skip) ' "$1"
  if grep -q '^not ok ' "$1"; then
    # shellcheck disable=SC2034
    failed=1
    grep -vE '^(ok|not ok|skip) |^done$' "$1" | tail -n 40 | sed 's/^/  /'
  fi
  grep -qx 'done' "$1" || fail "$(basename "$1" .log) comes to its end" "$(tail -n 5 "$1")"
}

# protected NAME-OR-OPTION...: docker run under ActPlane, without network.
protected() { docker run --runtime actplane --network none "$@"; }

scope_count() { actplane ps --json | grep -c '"id":'; }

# denials SCOPE: how many denials the engine counts.
denials() { actplane ps --json | python3 "$LIB/field.py" "$1" denied; }

# stop_engine [SIGNAL]: ends the daemon, if it runs, which stays down until a command starts
# it: systemd, where it is its service, brings it back otherwise.
stop_engine() {
  local pid service=/run/systemd/system/actplaned.service.d
  pid=$(pgrep -x actplaned) || return
  if [ -d /run/systemd/system ] && [ ! -e "$service/scenario.conf" ]; then
    mkdir -p "$service"
    printf '[Service]\nRestart=no\n' > "$service/scenario.conf"
    systemctl daemon-reload
  fi
  kill "-${1:-TERM}" "$pid"
  eventually 20 test ! -e "/proc/$pid"
}
kill_engine() { stop_engine KILL; }
