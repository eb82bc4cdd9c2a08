#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# agents-inside.sh AGENT: runs a coding agent without a person, in the container, against
# a scripted model. Its user has hooks switched off, where there is a switch. No version
# of an agent is to ask the network for anything.
name=$1
base=http://127.0.0.1:8099
export HOME=/root TERM=dumb LANG=C.UTF-8 PATH=/agents/node/node_modules/node/bin:/agents/$1/node_modules/.bin:$PATH
mkdir -p /workspace "$HOME"
cd /workspace || exit
git init -q
python3 /lib/scenario/agents.py steps "$name" > /tmp/script
/programs/model /tmp/script "/log/$name.jsonl" 127.0.0.1:8099 &
until [ -e "/log/$name.jsonl" ]; do sleep 0.1; done

claude_() {
  mkdir -p "$HOME/.claude"
  echo '{"disableAllHooks": true}' > "$HOME/.claude/settings.json"
  ANTHROPIC_BASE_URL=$base ANTHROPIC_API_KEY=x IS_SANDBOX=1 CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 DISABLE_AUTOUPDATER=1 \
    claude -p "do it" --dangerously-skip-permissions
}

codex_() {
  mkdir -p "$HOME/.codex"
  cat > "$HOME/.codex/config.toml" <<TOML
model = "gpt-5.5"
model_provider = "script"
check_for_update_on_startup = false
[analytics]
enabled = false
[features]
hooks = false
plugins = false
apps = false
[model_providers.script]
name = "script"
base_url = "$base/v1"
env_key = "KEY"
wire_api = "responses"
TOML
  KEY=x codex exec --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox "do it"
}

copilot_() {
  COPILOT_OFFLINE=true COPILOT_AUTO_UPDATE=false COPILOT_PROVIDER_BASE_URL=$base/v1 COPILOT_PROVIDER_API_KEY=x COPILOT_MODEL=script \
    copilot -p "do it" --allow-all-tools --allow-all-paths
}

gemini_() {
  mkdir -p "$HOME/.gemini"
  echo '{"hooksConfig": {"enabled": false}, "security": {"auth": {"selectedType": "gemini-api-key"}},
    "general": {"enableAutoUpdate": false}, "privacy": {"usageStatisticsEnabled": false}}' > "$HOME/.gemini/settings.json"
  GEMINI_API_KEY=x GOOGLE_GEMINI_BASE_URL=$base GEMINI_CLI_TRUST_WORKSPACE=true gemini -m gemini-2.5-pro --yolo -p "do it"
}

qwen_() {
  mkdir -p "$HOME/.qwen"
  echo '{"disableAllHooks": true, "security": {"auth": {"selectedType": "openai"}},
    "general": {"enableAutoUpdate": false}, "privacy": {"usageStatisticsEnabled": false}}' > "$HOME/.qwen/settings.json"
  OPENAI_API_KEY=x OPENAI_BASE_URL=$base/v1 OPENAI_MODEL=script qwen --yolo -p "do it"
}

opencode_() {
  mkdir -p "$HOME/.config/opencode"
  cp -R /agents/opencode/node_modules/@opencode-ai /tmp/
  mkdir -p "$HOME/.config/opencode/node_modules"
  cp -R /tmp/@opencode-ai "$HOME/.config/opencode/node_modules/"
  echo '{"permission": "allow", "model": "script/m", "small_model": "script/m", "autoupdate": false, "share": "disabled", "provider": {"script":
    {"npm": "@ai-sdk/openai-compatible", "name": "script", "options": {"baseURL": "'$base'/v1", "apiKey": "x"}, "models": {"m": {"name": "m"}}}}}' \
    > "$HOME/.config/opencode/opencode.json"
  OPENCODE_DISABLE_AUTOUPDATE=1 OPENCODE_DISABLE_MODELS_FETCH=1 OPENCODE_DISABLE_LSP_DOWNLOAD=1 OPENCODE_DISABLE_DEFAULT_PLUGINS=1 \
    npm_config_fetch_retries=0 opencode run "do it"
}

pi_() {
  mkdir -p "$HOME/.pi/agent"
  echo '{}' > "$HOME/.pi/agent/auth.json"
  echo '{"providers": {"script": {"baseUrl": "'$base'/v1", "api": "openai-completions", "apiKey": "x", "models": [
    {"id": "m", "name": "m", "reasoning": false, "input": ["text"], "contextWindow": 100000, "maxTokens": 4000,
     "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}}]}}}' > "$HOME/.pi/agent/models.json"
  PI_OFFLINE=1 PI_SKIP_VERSION_CHECK=1 PI_TELEMETRY=0 pi --provider script --model m -p "do it"
}

cline_() {
  cline auth -p openai-compatible -k x -m script -b "$base/v1" &&
    cline -P openai-compatible -m script --auto-approve true "do it"
}

export -f "${name}_"
export base
timeout -k 10 "${LIMIT:-900}" bash -c "${name}_" < /dev/null
echo "agent ended with $?"
