#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What asks waits for a person: programs in C, Go, Python, Node and Java, all of them with
# several threads, are held in open, unlink, connect, send and exec, some for 5 s, and go on as
# if nothing had been, or fail with EPERM. What is retried succeeds after an approval, and the agent
# reads why it was denied. Nobody answers, the process is killed, its siblings let it go
# on, the daemon is killed: nothing is stuck, and nothing gets through.
# lsm: bpf
# limit: 1800
. "$(dirname "$0")/lib/checks.sh"
work=$(mktemp -d)
trap 'docker rm -f ask ask-langs ask-first > /dev/null 2>&1; rm -rf "$work"' EXIT
mkdir "$work/share"
cat > "$work/policy" <<'POLICY'
version: 1
policy: |
  rule held:
    ask hold 10m read file "/share/ask/*"
    ask hold 10m unlink file "/share/ask/*"
    ask hold 10m connect "127.0.0.1:7"
    ask hold 10m connect "127.0.0.1:11-15"
    ask hold 10m send "127.0.0.1:8"
    ask hold 10m exec "ran*"
    because "A person looks at it."
  rule push:
    ask exec "git" "push"
    because "A person approves each push."
  rule brief:
    ask hold 3s read file "/share/brief"
  rule late:
    ask hold 20s read file "/share/late"
POLICY

mkdir "$work/share/ask"
for language in c go python node java; do
  touch "$work/share/ask/$language-"{open,unlink,denied}
  for program in "$work/share/ran-$language"{,-denied}; do
    printf '#!/bin/sh\necho exec ok\n' > "$program"
    chmod 755 "$program"
  done
done
touch "$work/share/"{brief,late} "$work/share/ask/"{killed,restart,meanwhile}

# box NAME IMAGE
box() {
  protected -d --name "$1" --label "dev.actplane.policy=$(cat "$work/policy")" \
    -v "$work/share:/share" -v "$PWD/programs:/programs:ro" -v "$LIB:/lib/scenario:ro" "$2" sleep 100000 > /dev/null
}

# request FIELD...: waits for an open request and prints its fields.
request() {
  local line=
  open_request() {
    line=$(actplane requests --format json | head -n 1)
    [ -n "$line" ]
  }
  eventually 240 open_request || { echo none; return; }
  python3 -c 'import json, sys; r = json.loads(sys.argv[1]); print(*(r[f] for f in sys.argv[2:]))' "$line" "$@"
}
state() { sed 's/.*) //; s/ .*//' "/proc/$1/stat" 2> /dev/null || echo gone; }
is_stopped() { [ "$(state "$1")" = T ]; }
no_request() { [ "$(actplane requests)" = "Nothing waits for an answer." ]; }

# answer NAME OPERATION ANSWER...: the next request is of a stopped process, and is
# answered; when it has been held for HELD seconds if that is set.
answer() {
  local name=$1 operation=$2 id got pid held
  shift 2
  read -r id got pid held < <(request id operation pid held)
  check "$name asks" "$operation True" "$got $held"
  check_that "$name is stopped" eventually 10 is_stopped "$pid"
  if [ -n "${HELD:-}" ]; then
    sleep "$HELD"
    check "$name is stopped after $HELD s" T "$(state "$pid")"
  fi
  actplane "$1" "$id" "${@:2}" > "$work/answer" || fail "$name is answered" "$(cat "$work/answer")"
}

# hold CONTAINER LANGUAGE PORT COMMAND...: acts in the container and is answered each time.
# What is denied stays so for the container, so that each connects to a port of its own.
hold() {
  local box=$1 language=$2 denied=$3
  shift 3
  docker exec "$box" "$@" open "/share/ask/$language-open" unlink "/share/ask/$language-unlink" connect 127.0.0.1:7 \
    send 127.0.0.1:8 open "/share/ask/$language-denied" connect "127.0.0.1:$denied" exec "/share/ran-$language-denied" \
    exec "/share/ran-$language" > "$work/$language" 2>&1 &
  local running=$!
  HELD=5 answer "open in $language" read approve --once
  answer "unlink in $language" unlink approve --once
  HELD=5 answer "connect in $language" connect approve --once
  answer "send in $language" send approve --once
  answer "another open in $language" read deny --because "not this one"
  answer "another connect in $language" connect deny
  answer "another exec in $language" exec deny
  HELD=5 answer "exec in $language" exec approve --once
  wait "$running"
  check "$language goes on, and is refused where it was denied" \
    "open ok unlink ok connect ok send ok open EPERM connect EPERM exec EPERM exec ok" "$(tr '\n' ' ' < "$work/$language" | sed 's/ $//')"
}

box ask agent
hold ask c 11 /programs/held
hold ask go 12 /programs/held-go
hold ask python 13 python3 /lib/scenario/held/held.py
box ask-langs langs
hold ask-langs node 14 node /lib/scenario/held/held.js
hold ask-langs java 15 java /lib/scenario/held/Held.java
docker rm -f ask-langs > /dev/null

# Retry: refused at once, and the agent knows by what name people call it.
push() { docker exec ask git push "$@" 2>&1; }
check_match "a push is refused" 'not permitted' "$(push origin)"
read -r id operation held < <(request id operation held)
check "and asks" "exec False" "$operation $held"
check_match "the agent reads of the request" "request $id is open" "$(docker exec ask /run/actplane/bin/actplane-guest feedback)"
push origin > /dev/null
check "to try again opens no other request" 1 "$(actplane requests ask --format json | wc -l)"
actplane approve "$id" --once > "$work/answer"
check_match "who approved is told" 'approved once by "?root' "$(cat "$work/answer")"
check_match "with other arguments it is another" 'not permitted' "$(push origin --force)"
actplane deny "$(request id)" --because "never by force" > /dev/null
check_match "the push goes through" 'not a git repository' "$(push origin)"
check_match "once" 'not permitted' "$(push origin)"
check_match "what was denied stays so" 'not permitted' "$(push origin --force)"
check_match "the agent reads why" 'The reason given: never by force' "$(docker exec ask /run/actplane/bin/actplane-guest feedback --all)"
actplane deny "$(request id)" > /dev/null
actplane events ask > "$work/events"
check_match "the record tells who answered" 'answered by root \(uid 0\) by cli' "$(cat "$work/events")"

# The template does so, too.
actplane init --template ask-first -o "$work/template.yaml" > /dev/null
protected -d --name ask-first --label "dev.actplane.policy=$(cat "$work/template.yaml")" agent sleep 100000 > /dev/null
check_match "under the template a push is refused" 'not permitted' "$(docker exec ask-first git push 2>&1)"
check "and asks" "ask-first ask-to-push" "$(request name rule)"
actplane approve "$(request id)" --once > /dev/null
check_match "and goes through when it is approved" 'not a git repository' "$(docker exec ask-first git push 2>&1)"
check_match "but not by force" 'not permitted' "$(docker exec ask-first git push --force 2>&1)"
docker rm -f ask-first > /dev/null

# Nobody answers.
check_match "without an answer it is refused" 'not permitted' "$(docker exec ask cat /share/brief 2>&1)"
check_that "and the request is gone" eventually 5 no_request

# A sibling lets it go on, and then kills it.
docker exec ask cat /share/ask/killed > "$work/killed" 2>&1 &
read -r id pid < <(request id pid)
docker exec ask sh -c "kill -CONT -1"
check_that "who goes on without an answer is stopped again" eventually 10 is_stopped "$pid"
check "and asks no second time" "$id" "$(request id)"
docker exec ask sh -c "kill -KILL -1"
check_that "who is killed withdraws its request" eventually 10 no_request
check_match "which the record tells" 'withdrawn' "$(actplane events ask)"

# The daemon is killed while some are held: one whose time is over meanwhile, and one who
# waits on.
docker exec ask cat /share/ask/restart > "$work/restart" 2>&1 &
running=$!
read -r id pid until < <(request id pid until)
docker exec ask cat /share/late > "$work/late" 2>&1 &
running_late=$!
late_pid() { actplane requests --format json | python3 -c 'import json, sys
print(*(r["pid"] for r in map(json.loads, sys.stdin) if r["object"] == "/share/late"))'; }
late_asks() { late=$(late_pid) && [ -n "$late" ]; }
check_that "another asks" eventually 240 late_asks
kill_engine
sleep 21
check "without the daemon they stay stopped" "T T" "$(state "$pid") $(state "$late")"
docker exec ask cat /share/ask/meanwhile > "$work/denied" 2>&1 &
actplane ps > /dev/null
back=$(date +%s%3N)
goes_on() { ! is_stopped "$late"; }
check_that "whose time is over is let go when it is back" eventually 10 goes_on
echo "# $(($(date +%s%3N) - back)) ms after the daemon was back"
wait "$running_late"
check_match "and refused" 'not permitted' "$(cat "$work/late")"
check "who waits on is stopped" T "$(state "$pid")"
check "the next daemon knows the request, with the time that is left" "$id $until" "$(request id until)"
actplane approve "$id" > /dev/null
wait "$running"
check "and lets it go on" "" "$(cat "$work/restart")"
check_that "what asked meanwhile asks still" eventually 20 eval '! no_request'
actplane deny "$(request id)" > /dev/null

# What a file is called does not speak for itself.
docker exec ask touch $'/share/ask/\e[2Kx\n  wants to  read harmless'
docker exec ask cat $'/share/ask/\e[2Kx\n  wants to  read harmless' > /dev/null 2>&1 &
request id > /dev/null
actplane requests ask > "$work/shown"
check "a name with control characters is one line" 1 "$(grep -c 'wants to  read' "$work/shown")"
check "and none of them" "" "$(LC_ALL=C tr -d '\n -~' < "$work/shown")"
actplane deny "$(request id)" > /dev/null
exit "$failed"
