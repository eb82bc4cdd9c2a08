# SPDX-License-Identifier: Apache-2.0
#
# A disk with real coding agents, from npm, for scenarios that say "# disk: agents".
# Versions are fixed: what hooks can do differs between them (docs/feedback.md).
# Sourced, never run.
# shellcheck shell=bash

# FOLDER PACKAGE...: what each folder of the disk holds. Node comes along: Debian's is
# too old.
agent_packages() {
  echo 'node node@22.23.3'
  echo 'claude @anthropic-ai/claude-code@2.1.332'
  echo 'codex @openai/codex@0.171.0'
  echo 'copilot @github/copilot@1.0.102'
  echo 'gemini @google/gemini-cli@0.61.0'
  echo 'qwen @qwen-code/qwen-code@0.24.4'
  # It wants its plugins' package as well, and looks for it for long where there is no network.
  echo 'opencode opencode-ai@1.18.33 @opencode-ai/plugin@1.18.33'
  echo 'pi @mariozechner/pi-coding-agent@0.73.1'
  echo 'cline cline@3.0.65'
}

# agents_image: prints the disk image's path, having built it if need be.
agents_image() {
  local hash image
  hash=$({ agent_packages; declare -f agents_build; } | sha256sum | cut -c1-12)
  image=$CACHE/agents-$hash.img
  if [ ! -e "$image" ]; then
    command -v npm > /dev/null || need_packages npm
    need_packages e2fsprogs
    with_lock agents agents_build "$image" >&2
  fi
  touch "$image"
  echo "$image"
}

# agents_build IMAGE. Holds the lock agents.
agents_build() {
  local image=$1 work folder packages started=$SECONDS
  [ ! -e "$image" ] || return 0      # another process was first
  say "installing real coding agents, once; this takes some minutes"
  find "$CACHE" -maxdepth 1 -name 'agents-*.img' -mtime +7 -delete
  work=$(mktemp -d "$CACHE/agents.XXXXXX")
  # shellcheck disable=SC2064
  trap "rm -rf '$work'" EXIT
  while read -r folder packages; do
    # shellcheck disable=SC2086
    npm install --silent --no-fund --no-audit --prefix "$work/tree/$folder" $packages < /dev/null ||
      die "npm could not install $packages"
  done < <(agent_packages)
  rm -rf "$work"/tree/{claude,opencode}/node_modules/{@anthropic-ai/,}*-musl    # this is Debian
  rm -f "$work"/tree/*/package-lock.json                         # tells where the packages came from
  disk_image "$work/tree" "$work/image" 16
  mv "$work/image" "$image"
  say "real agents took $((SECONDS - started)) s and $(du -m "$image" | cut -f1) MB"
}
