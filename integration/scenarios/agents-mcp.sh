#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Real coding agents in a container whose runtime has registered ActPlane's MCP server:
# each of them lists it, and starts it where its list does. Nobody inside takes it out.
# on: 6.12
# lsm: none
# disk: agents
. "$(dirname "$0")/lib/checks.sh"
work=$(mktemp -d)
trap 'docker rm -f agents-mcp > /dev/null 2>&1; rm -rf "$work"' EXIT
policy='version: 1
policy: |
  rule push:
    block exec "git" "push"
'
[ -d /agents/node ] || { fail "disk" "there is no disk with agents"; exit 1; }
protected -d --name agents-mcp --label "dev.actplane.policy=$policy" --label dev.actplane.agents=claude,codex,gemini,qwen,opencode \
  --label dev.actplane.mcp=true -v /agents:/agents:ro agent sleep 100000 > "$work/out" 2>&1 || fail "the container starts" "$(cat "$work/out")"
check "no warning is left" "" "$(actplane ps --json | python3 -c 'import json, sys; print(*(w for s in json.load(sys.stdin) for w in s["warnings"] if "MCP" in w))')"

# list AGENT: what it says of its servers.
list() {
  docker exec agents-mcp env HOME=/root TERM=dumb "PATH=/agents/node/node_modules/node/bin:/agents/$1/node_modules/.bin:/usr/bin:/bin" IS_SANDBOX=1 \
    DISABLE_AUTOUPDATER=1 CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 ANTHROPIC_API_KEY=x GEMINI_API_KEY=x GEMINI_CLI_TRUST_WORKSPACE=true \
    OPENCODE_DISABLE_AUTOUPDATE=1 OPENCODE_DISABLE_MODELS_FETCH=1 npm_config_fetch_retries=0 \
    timeout 300 "$1" mcp list < /dev/null 2>&1
}
for agent in claude gemini qwen opencode; do
  check_match "$agent starts it" 'actplane.*[Cc]onnected' "$(list $agent | tr '\n' ' ')"
done
check_match "codex has it" 'actplane +/run/actplane/bin/actplane-guest +mcp .*enabled' "$(list codex)"
check_match "root inside cannot write it" 'Read-only file system' "$(docker exec agents-mcp sh -c 'echo > /etc/codex/config.toml' 2>&1)"
exit "$failed"
