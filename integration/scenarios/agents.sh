#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Real coding agents, each in a container with its hooks mounted by the runtime, against
# a scripted model on loopback. The model makes the agent do what the policy blocks,
# kills, notes or asks about, and the next request to the model has the reason: once,
# whatever the user's settings say. The hooks' files can't be changed from inside.
# on: 6.12
# lsm: none
# disk: agents
# limit: 3600
. "$(dirname "$0")/lib/checks.sh"
work=$(mktemp -d)
trap 'docker rm -f agents > /dev/null 2>&1; rm -rf "$work"' EXIT
cat > "$work/policy" <<'POLICY'
version: 1
policy: |
  rule fails:
    block exec "git" "push"
    because "Reason of fails."
  rule succeeds:
    block exec "git" "bundle"
    because "Reason of succeeds."
  rule kills:
    kill exec "git" "fsck"
    because "Reason of kills."
  rule notes:
    notify exec "git" "count-objects"
    because "Reason of notes."
  rule asks:
    ask exec "git" "commit"
    because "Reason of asks."
  rule late:
    block exec "git" "stash"
    because "Reason of late."
  rule file:
    block read file "**/secret.txt"
    block write file "**/secret.txt"
    because "Reason of file."
POLICY

mkdir "$work/secret"
echo x > "$work/secret/secret.txt"

# agent NAME [FOLDER]: without a folder for all users, its hook is set up in the user's home.
agent() {
  local name=$1 folder=${2:-} started=$SECONDS secrets options=()
  secrets=$(python3 "$LIB/agents.py" secrets "$name")
  [ -z "$folder" ] || options=(--label "dev.actplane.agents=$name")
  protected -d --name agents --label "dev.actplane.policy=$(cat "$work/policy")" "${options[@]}" -v "$work/secret:$secrets" \
    -v /agents:/agents:ro -v "$PWD/programs:/programs:ro" -v "$LIB:/lib/scenario:ro" -v "$work:/log" agent sleep 100000 > "$work/out" 2>&1 ||
    { fail "$name starts" "$(cat "$work/out")"; return; }
  if [ -n "$folder" ]; then
    check_match "$name: root cannot write its hooks" "Read-only file system" "$(docker exec agents sh -c "echo x > $folder/x" 2>&1)"
    check_match "$name: nor move them away" "busy|not permitted|denied" "$(docker exec agents mv "$folder" /tmp/x 2>&1)"
  else
    check_match "$name: its hook is set up" "^wrote " "$(docker exec agents /run/actplane/bin/actplane-guest setup --agent "$name" 2>&1)"
  fi
  docker exec agents bash /lib/scenario/agents-inside.sh "$name" > "$work/out" 2>&1
  check_match "$name comes to its end" "agent ended with 0" "$(tail -n 5 "$work/out")"
  python3 "$LIB/agents.py" check "$name" "$work/$name.jsonl" > "$work/checks" 2>&1 || failed=1
  cat "$work/checks"
  # What it said, where it helps.
  if grep -qv '^ok' "$work/checks" || ! grep -q "ended with 0" "$work/out"; then tail -n 30 "$work/out" | cut -c1-400 | sed 's/^/  /'; fi
  echo "$name took $((SECONDS - started)) s"
  docker rm -f agents > /dev/null
}

[ -d /agents/node ] || { fail "disk" "there is no disk with agents"; exit 1; }
for pair in ${ACTPLANE_AGENTS:-claude:/etc/claude-code codex:/etc/codex copilot:/etc/github-copilot gemini:/etc/gemini-cli qwen:/etc/qwen-code opencode:/etc/opencode pi: cline:}; do
  agent "${pair%%:*}" "${pair#*:}"
done
exit "$failed"
