#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# With "feedback: {stderr: true}" the reason of a denial stands on the standard error of
# the process that was denied, also where that has ended at once, and nowhere else: not on
# its standard output, in a file, or on a terminal that a program paints.
. "$(dirname "$0")/lib/checks.sh"
work=$(mktemp -d)
config=/etc/actplane/config.yaml
[ ! -e "$config" ] || cp "$config" "$work/config"
restore() { if [ -e "$work/config" ]; then cp "$work/config" "$config"; else rm -f "$config"; fi; }
trap 'restore; docker rm -f stderr > /dev/null 2>&1; rm -rf "$work"' EXIT
mkdir "$work/share"
echo secret > "$work/share/secret"
rules='policy: |
  rule no-push:
    block exec "git" "push"
    because "Pushing needs a human."
  rule quiet:
    block read "/share/secret"
    because "It is secret."'
wanted="feedback: {stderr: true}
$rules"
push='ActPlane policy: exec "/usr/bin/git" ["push"] was blocked before it ran, by rule "no-push": Pushing needs a human. Trying again changes nothing.'
read='was blocked before it happened, by rule "quiet": It is secret.'

# act POLICY OPTION... -- COMMAND: in a container, its output and errors apart. It lives on
# for a moment, or nobody would be there to write through.
act() {
  local policy=$1 options=()
  shift
  while [ "$1" != -- ]; do
    options+=("$1")
    shift
  done
  protected --rm "${options[@]}" --label "dev.actplane.policy=$policy" -v "$work/share:/share" agent \
    bash -c "$2; sleep 2" > "$work/out" 2> "$work/err" < /dev/null
}
lines() { grep -cF "$1" "$2"; }
# told NAME COUNT FILE: the reason is there so often; not always as a line of its own, as a
# shell writes its complaint in pieces, and the reason can come between them.
told() {
  local count
  count=$(grep -oF "$push" "$3" | wc -l)
  if [ "$count" = "$2" ]; then pass "$1"; else fail "$1" "wanted $2, got $count in: $(cat "$3")"; fi
}

act "$wanted" -- 'git push; cat /share/secret'
told "docker run's standard error has the reason" 1 "$work/err"
check "what a program reads, too" 1 "$(lines "$read" "$work/err")"
check "its standard output has nothing" "" "$(cat "$work/out")"

# bash starts each in a process of its own, which ends as soon as it was refused.
act "$wanted" -- 'for i in $(seq 18); do git push; sleep 0.1; done'
told "of 18 that ended at once" 18 "$work/err"

act "$wanted" -t -- 'git push'
told "docker run -t shows the reason" 1 "$work/out"
act "$wanted" -t -- 'stty -isig; git push; sleep 1; stty isig'
check "a terminal that a program paints is let alone" 0 "$(lines ActPlane "$work/out")"

act "$wanted" -- 'cat /share/secret 2> /share/errors; cat /share/secret 2> /dev/null; mkfifo /tmp/fifo; exec 3<> /tmp/fifo
  cat /share/secret 2>&3; sleep 1; echo end >&3; head -n 9 /tmp/fifo > /share/fifo & sleep 1; kill $!'
check "nothing in a file" 1 "$(wc -l < "$work/share/errors")"
check "nothing in a FIFO" 0 "$(lines ActPlane "$work/share/fifo")"
check "nothing elsewhere in their place" 0 "$(lines ActPlane "$work/err")"

act "$wanted" -- 'python3 -c "
import subprocess, time
p = subprocess.Popen([\"cat\", \"/share/secret\"], stderr=subprocess.PIPE, text=True)
time.sleep(2)
print(p.communicate()[1], end=\"\")"'
check "who reads a program's errors has the reason" 1 "$(lines "$read" "$work/out")"
check "and nobody else" 0 "$(lines ActPlane "$work/err")"

# How often a reader that waits for the end of its command's errors still gets the line is
# shown, and not checked: it is a race.
act "$wanted" -- 'python3 -c "
import subprocess, time
got = 0
for i in range(18):
    got += b\"ActPlane\" in subprocess.run([\"bash\", \"-c\", \"exec git push\"], stderr=subprocess.PIPE).stderr
    time.sleep(0.3)
print(got)"'
echo "of 18 commands that were refused and ended at once, the reader of $(cat "$work/out") had the reason"

act "$wanted" -- 'for i in $(seq 200); do cat /share/secret 2>&1; done | grep -c ActPlane'
count=$(cat "$work/out")
check_that "a flood is cut ($count of 200)" test "$count" -ge 20 -a "$count" -lt 190

protected -d --name stderr --label "dev.actplane.policy=$wanted" agent sleep 1000 > /dev/null
docker exec stderr bash -c 'git push; sleep 2' > "$work/out" 2> "$work/err"
told "docker exec" 1 "$work/err"
docker kill stderr > /dev/null

act "$rules" -- 'git push'
check "not without the policy's word" 0 "$(lines ActPlane "$work/err")"
echo 'feedback: socket,stderr' >> "$config"
act "$rules" -- 'git push'
told "the host's word is enough" 1 "$work/err"
sed -i 's/^feedback: .*/feedback: socket/' "$config"
act "$wanted" -- 'git push'
check "and holds against the policy's" 0 "$(lines ActPlane "$work/err")"
sed -i 's/^feedback: .*/feedback: none/' "$config"
docker rm -f stderr > /dev/null
protected -d --name stderr --label "dev.actplane.policy=$wanted" --label dev.actplane.agents=claude agent sleep 1000 > /dev/null
check_match "without feedback it is enforced" "not permitted" "$(docker exec stderr bash -c 'git push' 2>&1)"
check "with nothing of ours in it" "" "$(docker exec stderr sh -c 'ls /run/actplane /etc/claude-code 2> /dev/null')"
check_match "which ps tells" "stderr .* none " "$(actplane ps --wide)"
check_match "as events tell what happened" 'blocked +exec /usr/bin/git' "$(actplane events stderr)"
kill_engine
check_match "the next daemon knows" "stderr .*enforcing.* none " "$(actplane ps --wide)"
restore

(cd "$work" && echo "$wanted" > actplane.yaml && actplane run -- bash -c 'git push; sleep 2' > "$work/out" 2> "$work/err" < /dev/null)
check "actplane run" 0 "$(lines ActPlane "$work/err")"
(cd "$work" && actplane run -- bash -c 'git push; sleep 2' 2>&1 > "$work/out" < /dev/null | cat > "$work/err")
check "actplane run into a pipe" 1 "$(grep -cF 'by rule "no-push"' "$work/err")"
exit "$failed"
