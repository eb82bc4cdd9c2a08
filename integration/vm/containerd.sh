# SPDX-License-Identifier: Apache-2.0
#
# containerd 2 with its ctr, and crictl, built from the Go module proxy for scenarios that
# say "# containerd: 2". Debian's containerd, which is there anyway, is 1.6.
# Sourced, never run.
# shellcheck shell=bash

# containerd_modules: what is built. A folder in the cache is named by it.
containerd_modules() {
  echo github.com/containerd/containerd/v2/cmd/containerd@v2.4.2
  echo github.com/containerd/containerd/v2/cmd/ctr@v2.4.2
  echo sigs.k8s.io/cri-tools/cmd/crictl@v1.37.0
}

# containerd_programs: prints the folder of the programs, having built them if need be.
containerd_programs() {
  local folder
  folder=$CACHE/containerd-$(containerd_modules | sha256sum | cut -c1-12)
  [ -d "$folder" ] || with_lock containerd containerd_build "$folder" >&2
  touch "$folder"
  echo "$folder"
}

# containerd_build FOLDER. Holds the lock containerd.
containerd_build() {
  local folder=$1 work started=$SECONDS modules
  [ ! -d "$folder" ] || return 0      # another process was first
  say "building containerd 2 and crictl, once; this takes some minutes"
  find "$CACHE" -maxdepth 1 -name 'containerd-*' -type d -mtime +7 -exec rm -rf {} +
  work=$(mktemp -d "$CACHE/containerd.XXXXXX")
  # shellcheck disable=SC2064
  trap "rm -rf '$work'" EXIT
  mapfile -t modules < <(containerd_modules)
  for module in "${modules[@]}"; do
    (cd / && CGO_ENABLED=0 GOBIN=$work go install -trimpath -ldflags='-s -w' "$module") || die "could not build $module"
  done
  chmod 755 "$work"
  mv "$work" "$folder"
  say "containerd 2 took $((SECONDS - started)) s and $(du -sm "$folder" | cut -f1) MB"
}
