#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Programs of the host answer what a container asks before people do: they grant, deny,
# warn and pass on, and one that does not answer denies. The agent reads who said what, and
# people are told of what is theirs, by a signed webhook. What is granted is listed and can
# be taken back. None of it can be reached from inside, and a configuration that is wrong
# starts nothing.
# lsm: bpf
. "$(dirname "$0")/lib/checks.sh"
work=$(mktemp -d)
config=/etc/actplane/config.yaml
receiver=
finish() {
  docker rm -f approvers > /dev/null 2>&1
  [ -z "$receiver" ] || kill "$receiver"
  [ ! -e "$work/config" ] || mv "$work/config" "$config"
  stop_engine
  rm -rf "$work" /usr/local/lib/actplane-test
}
trap finish EXIT

mkdir -p "$work/share" /usr/local/lib/actplane-test
touch "$work/share/slow" "$work/share/plain"
install -m 755 examples/approvals/push-rules /usr/local/lib/actplane-test/
printf '#!/bin/sh\nsleep 4321\n' > /usr/local/lib/actplane-test/slow
printf '#!/bin/sh\ncat > %s\necho %s\n' "$work/asked" \''{"decision": "pass", "warning": "look twice"}'\' > /usr/local/lib/actplane-test/plain
chmod 755 /usr/local/lib/actplane-test/*
(umask 077; echo whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw > "$work/secret")
examples/approvals/receiver "$work/secret" 9137 > "$work/told" 2>&1 &
receiver=$!
mv "$config" "$work/config"
cp "$work/config" "$config"
cat >> "$config" <<CONFIG
approvers:
  - {name: push-rules, command: [/usr/local/lib/actplane-test/push-rules], user: nobody, timeout: 60s, rules: ["push*"], operations: [exec]}
  - {name: slow, command: [/usr/local/lib/actplane-test/slow], timeout: 2s, rules: [slow]}
  - {name: plain, command: [/usr/local/lib/actplane-test/plain], timeout: 60s, rules: [plain]}
notifications:
  - {name: receiver, url: "http://127.0.0.1:9137/", secret_file: $work/secret}
CONFIG
stop_engine
check_match "doctor has read it" 'ok +config .*3 approvers, 1 notifications' "$(actplane doctor 2>&1)"
cat > "$work/policy" <<'POLICY'
version: 1
policy: |
  rule push:
    ask hold 10m exec "git" "push"
    because "A person approves each push."
  rule slow:
    ask hold 10m read file "/share/slow"
  rule plain:
    ask read file "/share/plain"
POLICY
protected -d --name approvers --label "dev.actplane.policy=$(cat "$work/policy")" -v "$work/share:/share" agent sleep 100000 > /dev/null
inside() { docker exec approvers "$@" 2>&1; }
feedback() { inside /run/actplane/bin/actplane-guest feedback --all; }

# It is granted, and the program knows nothing of it.
check_match "what an approver grants goes on" 'not a git repository' "$(inside git push origin agent/x)"
check_match "which the record tells" 'approved: .*answered by approver push-rules' "$(actplane events approvers)"
check_match "what it denies does not" 'not permitted' "$(inside git push --force origin agent/x)"
check_match "and the agent reads why, and who" 'denied by approver "push-rules": .*Nothing is pushed by force' "$(feedback)"

# It leaves something to a person, who is told.
inside git push origin main > "$work/main" &
running=$!
told() { grep -q 'request .* wants to exec /usr/bin/git, by rule push' "$work/told"; }
check_that "of what is left to a person people are told" eventually 240 told
check "of nothing else" 1 "$(wc -l < <(grep -v '^http' "$work/told"))"
actplane requests approvers > "$work/requests"
check_match "with where" 'in +/' "$(cat "$work/requests")"
check_match "and what image" 'image +agent' "$(cat "$work/requests")"
id=$(sed -n 's/ .*//p;q' "$work/requests")
actplane approve "$id" --once > /dev/null
wait "$running"
check_match "and it goes on when that one approves" 'not a git repository' "$(cat "$work/main")"

# One that does not answer denies.
check_match "no answer denies" 'not permitted' "$(inside cat /share/slow)"
check_match "which the agent reads" 'gave no answer' "$(feedback)"
check "and the program is gone" "" "$(pgrep -f 'sleep 4321')"

# A warning is seen by who decides and by the agent.
check_match "what is to be tried again is refused first" 'not permitted' "$(inside cat /share/plain)"
warned() { actplane requests approvers | grep -q 'warning .*approver plain: look twice'; }
check_that "the warning is shown" eventually 120 warned
check_match "to the agent as well" 'Warning: approver plain: look twice' "$(feedback)"
check_match "the approver gets all of the request" '"version":1,.*"name":"approvers","image":"agent".*"object":"/share/plain".*"rule":"plain"' "$(cat "$work/asked")"

# What is granted can be taken back.
id=$(actplane requests approvers --format json | python3 -c 'import json, sys; print(json.loads(sys.stdin.readline())["id"])')
actplane approve "$id" --for 1h > /dev/null
check "it is read" "" "$(inside cat /share/plain)"
check_match "and listed" "$id +approvers +approved +(59m|1h)[0-9ms]* +1 .*read /share/plain" "$(actplane grants)"
actplane revoke "$id" > /dev/null
check_match "taken back, it is refused" 'not permitted' "$(inside cat /share/plain)"
check_match "which the record tells" 'taken back' "$(actplane events approvers)"
check_match "and the agent reads" 'was taken back' "$(feedback)"

# From inside nothing of it is to be seen.
check_match "the engine's socket is not inside" 'No such file' "$(inside ls /run/actplane/engine.sock)"
check_match "nor are its approvers" 'No such file' "$(inside ls /usr/local/lib/actplane-test)"
docker rm -f approvers > /dev/null

# What is wrong in the configuration starts nothing, and is said.
chmod 777 /usr/local/lib/actplane-test/slow
check_match "doctor says what is wrong" 'FAIL +config .*slow.*chmod go-w' "$(actplane doctor 2>&1)"
stop_engine
protected --rm --label "dev.actplane.policy=$(cat "$work/policy")" agent true > "$work/output" 2>&1
check "with an approver that others can change nothing starts" 125 "$?"
check_match "and it is said" 'chmod go-w' "$(cat "$work/output")"
exit "$failed"
