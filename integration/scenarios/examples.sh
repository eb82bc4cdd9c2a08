#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What the READMEs of examples say: the MCP server that may only read, the CI job, and the
# sandbox image, which is built here. (quickstart.sh tries that example.)
# on: 6.12
# lsm: bpf
. "$(dirname "$0")/lib/checks.sh"
work=$(mktemp -d)
trap 'docker rm -f box > /dev/null 2>&1; docker rmi -f sandbox > /dev/null 2>&1; rm -rf "$work" /etc/actplane/policies/ci-runner.yaml' EXIT
cp -R /files/examples/. "$work/"

# The MCP server: the third request is refused, by the kernel, and the file is as it was.
mkdir "$work/data"
echo before > "$work/data/note.txt"
"$work/mcp-server/run" "$work/data" < "$work/mcp-server/requests" > "$work/answers" 2> "$work/errors" || fail "the MCP server ends well" "$(cat "$work/errors")"
check_match "it reads" '"text": "before\\n"}\], "isError": false' "$(cat "$work/answers")"
check_match "it does not write" '"text": "\[Errno 1\] Operation not permitted: .*/data/note.txt.*"isError": true' "$(cat "$work/answers")"
check "the file is as it was" before "$(cat "$work/data/note.txt")"

# The CI job.
install -D -m 644 "$work/ci-runner/actplane.yaml" /etc/actplane/policies/ci-runner.yaml
mkdir -p "$work/repo/.github/workflows"
echo old > "$work/repo/.github/workflows/ci.yaml"
out=$(protected --rm --label dev.actplane.policy=ci-runner -v "$work/repo:/work" -w /work agent sh -c \
  'echo x > a.go && echo wrote; git push; echo "push $?"; echo x >> .github/workflows/ci.yaml; rm -f .github/workflows/ci.yaml' 2>&1)
check_match "a job writes code" 'wrote' "$out"
check_match "it does not push" 'push 126' "$out"
check "nor change the pipeline" old "$(cat "$work/repo/.github/workflows/ci.yaml")"

# The sandbox image.
cp /usr/local/bin/actplane-guest "$work/sandbox-image/"
docker build --network none --build-arg BASE=agent -t sandbox "$work/sandbox-image" > "$work/build" 2>&1 || fail "the sandbox is built" "$(tail -n 5 "$work/build")"
protected -d --name box sandbox > /dev/null
check "it has a user without rights" 1000 "$(docker exec box id -u)"
check "git push" 126 "$(docker exec box bash -c 'git push > /dev/null 2>&1; echo $?')"
check_match "the agent is told" 'Nothing leaves the sandbox by git' "$(docker exec box /run/actplane/bin/actplane-guest feedback --all 2>&1)"
check_that "the agent's hook is there" docker exec box grep -q actplane-guest /etc/claude-code/managed-settings.json
check_that "and calls what is there" docker exec box sh -c 'test -x "$(grep -o "/[a-z/]*actplane-guest" /etc/claude-code/managed-settings.json | head -n 1)"'
check "it cannot be changed" 1 "$(docker exec --user root box bash -c '{ echo > /etc/claude-code/managed-settings.json; } 2> /dev/null; echo $?')"
check "the work can" 0 "$(docker exec box bash -c 'echo > /workspace/a.py; echo $?')"
exit "$failed"
