#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What cannot be put under policy does not start: exit code 125, one sentence with
# what to do, and nothing is left behind, also after a hundred such failures.
# lsm: bpf
. "$(dirname "$0")/lib/checks.sh"
# shellcheck source=lib/snapshot.sh
. "$LIB/snapshot.sh"
work=$(mktemp -d)
bin=$(dirname "$(command -v actplane)")
restore_binaries() {
  local name
  for name in actplaned actplane-hook; do
    [ ! -e "$work/$name" ] || mv "$work/$name" "$bin/$name"
  done
}
trap 'restore_binaries; rm -rf "$work"' EXIT
good='policy: |
  rule r: block exec "wget"'
broken='policy: |
  rule r: blok exec "wget"'
unknown='polcy: |
  rule r: block exec "wget"'

# one_sentence NAME: besides it, Docker's client has a line of help, and sometimes one
# of its own about a container that is gone before it waits for it.
one_sentence() {
  local sentences
  sentences=$(grep -vE "^(See 'docker run --help'\.|time=.*error waiting for container.*|)$" "$work/output")
  check "$1: one sentence" 1 "$(wc -l <<< "$sentences")"
  [ "$(wc -l <<< "$sentences")" = 1 ] || cat "$work/output"
}

# refused NAME REGEX OPTION...: such a container is refused in one sentence.
refused() {
  local name=$1 pattern=$2 status
  shift 2
  protected --rm "$@" > "$work/output" 2>&1
  status=$?
  check "$name: exit code" 125 "$status"
  check_match "$name: says what and what next" "$pattern" "$(cat "$work/output")"
  one_sentence "$name"
}

# One container that starts, so that all there is to be once is there.
check "a good policy starts" 0 "$(protected --rm --label "dev.actplane.policy=$good" bb true > /dev/null 2>&1; echo $?)"
eventually 20 test "$(scope_count)" = 0
eventually 20 test -z "$(docker ps -q)"
snapshot | sort > "$work/before"

refused "a syntax error" 'P[0-9]+.*actplane check' --label "dev.actplane.policy=$broken" bb true
refused "an unknown key" 'P[0-9]+.*actplane check' --label "dev.actplane.policy=$unknown" bb true
refused "no policy" 'no policy found.*actplane\.yaml' -w /tmp bb true
refused "a named policy that is not there" 'has no policy "nowhere"' --label dev.actplane.policy=nowhere bb true
refused "a policy file that is not there" 'no such file.*mount' --label dev.actplane.policy-file=/nowhere/actplane.yaml bb true
refused "an unknown setting" 'did you mean' --label "dev.actplane.polcy=$good" bb true
refused "a setting that a label cannot have" 'annotation' --label "dev.actplane.policy=$good" --label dev.actplane.workspace=/x bb true
refused "an unsupported mode" 'shadow' --label "dev.actplane.policy=$good" --label dev.actplane.mode=shadow bb true
refused "an impossible limit" 'limits' --label "dev.actplane.policy=$good" --label dev.actplane.limits.memory=plenty bb true
refused "two values of a variable" 'two values|ACTPLANE_POLICY' -e ACTPLANE_POLICY=a -e "ACTPLANE_POLCY=$good" bb true
mkdir "$work/broken"
echo "$broken" > "$work/broken/actplane.yaml"
refused "a broken file in the workspace" 'actplane.yaml.*actplane check' -v "$work/broken:/src" -w /src bb true
refused "a mount over ours" 'mount' --label "dev.actplane.policy=$good" -v "$work:/run/actplane" bb true
check_nothing_left "nothing is left of refusals" "$work/before"

# The runtime's other subcommands.
check_match "restore is refused" 'restore is not supported' "$(actplane-runtime restore --bundle /tmp x 2>&1)"
check_match "an unknown subcommand is refused" 'unknown subcommand' "$(actplane-runtime frobnicate x 2>&1)"

# Failures after ours: the image has no such program; the container is removed.
protected --rm --label "dev.actplane.policy=$good" bb /no/such/program > "$work/output" 2>&1
check "a program that is not there" 127 "$?"
check_nothing_left "nothing is left of it" "$work/before"

# An engine that cannot be started, and one that dies in mid-create.
kill_engine
mv "$bin/actplaned" "$work/"
refused "no engine binary" 'actplane (engine|install|doctor)' --label "dev.actplane.policy=$good" bb true
printf '#!/bin/sh\necho "FATAL: it is broken" >&2\nexit 1\n' > "$bin/actplaned"
chmod 755 "$bin/actplaned"
refused "an engine that fails" 'cannot be started.*run' --label "dev.actplane.policy=$good" bb true
rm "$bin/actplaned"
mv "$work/actplaned" "$bin/"
mv "$bin/actplane-hook" "$work/"
refused "no hook binary" 'actplane-hook.*actplane install' --label "dev.actplane.policy=$good" bb true
cat > "$bin/actplane-hook" <<PROGRAM
#!/bin/sh
kill -9 "\$(pidof actplaned)"
exec "$work/actplane-hook" "\$@"
PROGRAM
chmod 755 "$bin/actplane-hook"
protected --rm --label "dev.actplane.policy=$good" bb true > "$work/output" 2>&1
check_match "an engine killed before attach: enforced by a new one, or refused" '^(0|125)$' "$?"
cat > "$bin/actplane-hook" <<'PROGRAM'
#!/bin/sh
cat > /dev/null
if [ "$1" = createRuntime ]; then echo "actplane: the test says no" >&2; exit 1; fi
PROGRAM
refused "a hook that fails" 'the test says no' --label "dev.actplane.policy=$good" bb true
restore_binaries
check "after all that a container starts" 0 "$(protected --rm --label "dev.actplane.policy=$good" bb true > /dev/null 2>&1; echo $?)"
check_nothing_left "nothing is left of broken engines" "$work/before"

# A hundred in a row, of mixed kinds, several at a time: 10 by Docker, which is slow
# on an emulated machine, the others by the runtime as Docker calls it.
container=$(docker create bb true)
mkdir "$work/rootfs"
docker export "$container" | tar -x -C "$work/rootfs"
docker rm "$container" > /dev/null
(cd "$work" && runc spec)

fail_by_docker() {
  local kind=$(($1 % 5))
  case $kind in
    0) set -- --label "dev.actplane.policy=$broken" ;;
    1) set -- -w /tmp ;;
    2) set -- --label dev.actplane.policy-file=/nowhere ;;
    3) set -- --label "dev.actplane.policy=$good" --label dev.actplane.mode=shadow ;;
    4) set -- --label "dev.actplane.policy=$good" -v "$work:/run/actplane" ;;
  esac
  docker run --rm --runtime actplane --network none "$@" bb true > /dev/null 2>&1
  echo $? >> "$work/statuses"
}

# fail_by_runtime NUMBER: what Docker shows is the last error record of the log.
fail_by_runtime() {
  local bundle=$work/bundle-$1 status
  actplane-runtime --log "$bundle/log" --log-format json run --bundle "$bundle" "failures-$1" > "$bundle/output" 2>&1 < /dev/null
  status=$?
  if [ $status != 0 ] && grep -q '"level":"error"' "$bundle/log"; then echo "$1" >> "$work/records"; fi
}

# The last kind fails in runc, after our hooks.
python3 - "$work" "$broken" "$good" <<'PYTHON'
import json, os, sys
work, broken, good = sys.argv[1:]
for number in range(1, 91):
    spec = json.load(open(f"{work}/config.json"))
    kind = number % 5
    spec["process"].update(terminal=False, args=["/no/such/program" if kind == 4 else "true"])
    spec["root"] = {"path": f"{work}/rootfs"}
    spec["linux"]["cgroupsPath"] = f"/failures/{number}"
    spec["annotations"] = [
        {"dev.actplane.policy": broken}, {}, {"dev.actplane.policy-file": "/nowhere"},
        {"dev.actplane.policy": good, "dev.actplane.mode": "shadow"}, {"dev.actplane.policy": good},
    ][kind]
    os.mkdir(f"{work}/bundle-{number}")
    json.dump(spec, open(f"{work}/bundle-{number}/config.json", "w"))
PYTHON

docker_starts=10
[ -z "${ACTPLANE_SOAK:-}" ] || docker_starts=100
for number in $(seq "$docker_starts"); do
  fail_by_docker "$number" &
  [ $((number % 4)) != 0 ] || wait
done
for number in $(seq 90); do
  fail_by_runtime "$number" &
  [ $((number % 4)) != 0 ] || wait
done
wait
rmdir /sys/fs/cgroup/failures
check "failures by Docker with 125" "$docker_starts" "$(grep -cx 125 "$work/statuses")"
check "failures by the runtime with an error record" 90 "$(wc -l < "$work/records")"
check_nothing_left "nothing is left of 100 failures" "$work/before"
exit "$failed"
