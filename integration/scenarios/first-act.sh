#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The first act of a container's program is under the policy: what is forbidden is
# denied in 50 starts of 50, by Docker and by the runtime alone, several at a time.
. "$(dirname "$0")/lib/checks.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/out" "$work/rootfs" "$work/log"

cat > "$work/policy" <<'POLICY'
version: 1
policy: |
  rule forbidden-program:
    block exec "touch"
  rule forbidden-file:
    block write file "/out/**"
    block open file "/etc/passwd"
  rule forbidden-peer:
    block connect any
POLICY

# What a container's program does first, by number; @ is that number.
acts=(
  'touch /out/@'
  'cat /etc/passwd'
  'sh -c "echo x > /out/@"'
  'nc -w 1 127.0.0.1 1'
  'cp /bin/busybox /out/@'
)

# start_docker NUMBER / start_runtime NUMBER: one start; its output and status are kept.
start_docker() {
  local number=$1 act=${acts[$1 % ${#acts[@]}]}
  # shellcheck disable=SC2086
  eval "set -- ${act//@/$number}"
  docker run --rm --runtime actplane --network none --label "dev.actplane.policy=$(cat "$work/policy")" \
    -v "$work/out:/out" bb "$@" > "$work/log/$number" 2>&1 < /dev/null
  echo "status $?" >> "$work/log/$number"
}

start_runtime() {
  actplane-runtime run --bundle "$work/bundle-$1" "first-act-$1" > "$work/log/$1" 2>&1 < /dev/null
  echo "status $?" >> "$work/log/$1"
}

# bundles NUMBER...: for the runtime, by one call of Python, which is slow to start.
bundles() {
  python3 - "$work" "${#acts[@]}" "${acts[@]}" "$@" <<'PYTHON'
import json, os, shlex, sys
work, count = sys.argv[1], int(sys.argv[2])
acts, numbers = sys.argv[3:3 + count], sys.argv[3 + count:]
for number in numbers:
    spec = json.load(open(f"{work}/config.json"))
    act = acts[int(number) % count].replace("@", number)
    spec["process"].update(terminal=False, args=shlex.split(act))
    spec["root"] = {"path": f"{work}/rootfs"}
    spec["linux"]["cgroupsPath"] = f"/first-act/{number}"
    spec["mounts"].append({"destination": "/out", "type": "bind", "source": f"{work}/out", "options": ["rbind", "rw"]})
    spec["annotations"] = {"dev.actplane.policy": open(f"{work}/policy").read()}
    os.mkdir(f"{work}/bundle-{number}")
    json.dump(spec, open(f"{work}/bundle-{number}/config.json", "w"))
PYTHON
}

container=$(docker create bb true)
docker export "$container" | tar -x -C "$work/rootfs"
docker rm "$container" > /dev/null
(cd "$work" && runc spec)

# Four at a time.
start_all() {
  local start=$1 number
  shift
  for number in "$@"; do
    "$start" "$number" &
    [ $((number % 4)) != 3 ] || wait
  done
  wait
}
mapfile -t by_runtime < <(seq 10 49)
bundles "${by_runtime[@]}"
start_all start_docker {0..9}
start_all start_runtime "${by_runtime[@]}"

denied=0
for number in $(seq 0 49); do
  # Programs say EPERM in their own words; runc's own ones are of its exec of the first program.
  if grep -qiE 'operation not permitted' "$work/log/$number" && ! grep -qx 'status 0' "$work/log/$number"; then
    denied=$((denied + 1))
  else
    echo "start $number: $(tail -n 3 "$work/log/$number")"
  fi
done
check_strictly "denied of 50 starts" 50 "$denied"
check_strictly "nothing was written" "" "$(ls "$work/out")"
check_that "no passwd was read" test -z "$(grep -l 'root:' "$work"/log/*)"
check "a permitted first act" 0 "$(docker run --rm --runtime actplane --network none --label "dev.actplane.policy=$(cat "$work/policy")" bb true > /dev/null 2>&1; echo $?)"
eventually 20 test "$(scope_count)" = 0
check "no scope is left" 0 "$(scope_count)"
check "no bundle's cgroup is left" "" "$(find /sys/fs/cgroup/first-act -mindepth 1 -type d 2> /dev/null)"
rmdir /sys/fs/cgroup/first-act 2> /dev/null
exit "$failed"
