#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# examples/quickstart: the story, and its policy for what comes in by docker exec.
. "$(dirname "$0")/lib/checks.sh"

/files/examples/quickstart/run
check "the agent's story ends well" 0 $?

# The policy without the agent: root comes in from outside.
work=$(mktemp -d)
mkdir "$work/workspace" "$work/remote"
docker run --rm -v /files/examples/quickstart:/quickstart:ro -v "$work/workspace:/workspace" \
  -v "$work/remote:/remote" agent bash /quickstart/setup.sh
docker run -d --runtime actplane --name quickstart -v "$work/workspace:/workspace" -v "$work/remote:/remote" \
  -v /files/examples/quickstart/actplane.yaml:/workspace/actplane.yaml:ro -w /workspace \
  agent sleep infinity > /dev/null
for options in "" "--user 0" "--user 65534" "--workdir /workspace"; do
  # shellcheck disable=SC2086
  output=$(docker exec $options quickstart git push 2>&1)
  # "exec failed" by runc; with 137 the second look has killed it.
  check "docker exec $options git push" refused \
    "$(case "$?$output" in 137* | *"not permitted"*) echo refused ;; *) echo "$output" ;; esac)"
done
check_match "docker exec --privileged is refused as a whole" 'it is privileged' "$(docker exec --privileged quickstart git push 2>&1)"
check "docker exec git status" 0 "$(docker exec quickstart git -c safe.directory='*' status > /dev/null 2>&1; echo $?)"
check "docker exec sh -c: read .env, then connect" refused "$(docker exec quickstart python3 -c '
import socket
open(".env").read()
try:
    socket.create_connection(("127.0.0.1", 9), 5)
except ConnectionRefusedError:
    print("it got through")
except PermissionError:
    print("refused")')"
check "the policy's mount is read-only" refused \
  "$(docker exec quickstart sh -c 'echo >> actplane.yaml && echo written' 2> /dev/null || echo refused)"
check "the feedback knows of all of it" yes \
  "$(docker exec quickstart /run/actplane/bin/actplane-guest feedback --all --json | python3 -c '
import json, sys
rules = [json.loads(line)["rule"] for line in sys.stdin]
print("yes" if rules.count("no-push") >= 4 and "secrets-stay" in rules else rules)' 2>&1)"
check "another container on this host pushes" 0 \
  "$(docker run --rm -v "$work/workspace:/workspace" -v "$work/remote:/remote" agent git push -q > /dev/null 2>&1; echo $?)"
docker rm -f quickstart > /dev/null
rm -rf "$work"
exit "$failed"
