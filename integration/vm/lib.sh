# SPDX-License-Identifier: Apache-2.0
#
# What every script of this folder shares: messages, the cache and its locks,
# and Debian's packages. Sourced, never run.
# shellcheck shell=bash
set -euo pipefail

VM_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# Used by the scripts that source this file.
# shellcheck disable=SC2034
REPO_DIR=$(cd "$VM_DIR/../.." && pwd)
CACHE=${ACTPLANE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/actplane}
mkdir -p "$CACHE"

say() { echo "vm: $*" >&2; }

# Status 2 is a mistake of the caller's or of the machine's, never of a test.
die() {
  say "$*"
  exit 2
}

# files_exist: what FILES names, if anything, is a folder.
files_exist() {
  [ -z "${FILES:-}" ] || [ -d "$FILES" ] || die "FILES=$FILES is not a folder that is there"
}

# with_lock NAME COMMAND...: one process at a time, across checkouts that share
# the cache. Runs in a subshell, so that the lock is gone whatever happens.
with_lock() {
  local name=$1
  shift
  (
    exec {lock}> "$CACHE/$name.lock"
    if ! flock --nonblock "$lock"; then
      say "waiting for another process that builds $name"
      flock "$lock"
    fi
    "$@"
  )
}

# need_packages NAME...: installs the Debian packages that are not there yet.
need_packages() {
  local name missing=()
  for name in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2> /dev/null)" = installed ] || missing+=("$name")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  [ "$(id -u)" = 0 ] || die "as root, run: apt-get install --no-install-recommends ${missing[*]}"
  say "installing ${missing[*]}"
  install_packages "${missing[@]}" && return 0
  # The lists may be missing or old. One broken source of the machine's must not
  # stop us: the installation tells whether enough of them are good.
  apt-get update -qq -o DPkg::Lock::Timeout=300 < /dev/null >&2 || true
  install_packages "${missing[@]}" || die "apt-get could not install ${missing[*]}"
}

install_packages() {
  DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
    -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@" < /dev/null > "$CACHE/apt-install.log" 2>&1 ||
    { tail -n 3 "$CACHE/apt-install.log" >&2; return 1; }
}

# apt_uri RELEASE: where the machine's own APT sources find that release's main
# component. No mirror is written in this repository.
apt_uri() {
  # shellcheck disable=SC2016
  apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
    awk -v release="$1" '$1 == release && $2 == "main" && !seen++ { sub("/*$", "", $3); print $3 }'
}

host_release() { sed -n 's/^VERSION_CODENAME=//p' /etc/os-release; }

debian_mirror() {
  local uri
  uri=$(apt_uri "$(host_release)")
  [ -n "$uri" ] || die "the machine's APT sources name no Debian archive for $(host_release)"
  echo "$uri"
}

security_mirror() { apt_uri "$(host_release)-security"; }

# disk_image FOLDER FILE SLACK: an ext4 file system with the folder's content
# and SLACK MiB of free space, made without a mount. Sparse: free space costs nothing.
disk_image() {
  local size
  size=$(du -sm --apparent-size "$1" | cut -f1)
  rm -f "$2"
  truncate -s "$((size * 5 / 4 + $3 + 16))M" "$2"
  mkfs.ext4 -q -F -m 0 -O ^has_journal -E lazy_itable_init=1 -d "$1" "$2"
}
