# SPDX-License-Identifier: Apache-2.0
#
# Programs that the Docker machine does not have, for scenarios that say
# "# programs: NAME...". What is built comes from the Go module proxy, once.
# Debian's Docker 20.10 with containerd 1.6 is there anyway. Sourced, never run.
# shellcheck shell=bash

# containerd_modules: containerd 2 with its ctr and its shim for runc, which is not to be
# that of 1.6, and crictl.
containerd_modules() {
  echo github.com/containerd/containerd/v2/cmd/containerd@v2.4.2
  echo github.com/containerd/containerd/v2/cmd/ctr@v2.4.2
  echo github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2@v2.4.2
  echo sigs.k8s.io/cri-tools/cmd/crictl@v1.37.0
}

# moby_modules: the newest dockerd, and the client, whose module has no go.mod.
moby_modules() {
  echo github.com/moby/moby/v2/cmd/dockerd@v2.0.0-beta.24
  echo github.com/docker/cli/cmd/docker@v29.9.2+incompatible
}

# programs_of NAME FOLDER: copies what a scenario asks for into the folder.
programs_of() {
  case $1 in
    containerd | moby)
      local built
      built=$(built_programs "$1") || return
      cp -R "$built" "$2/$1" ;;
    podman) podman_programs "$2/podman" ;;
    *) die "there are no programs \"$1\"" ;;
  esac
}

# built_programs NAME: prints the folder of what NAME_modules lists, having built it if
# need be. The folder in the cache is named by that list.
built_programs() {
  local folder
  folder=$CACHE/$1-$("$1_modules" | sha256sum | cut -c1-12)
  [ -d "$folder" ] || with_lock "$1" build_programs_once "$1" "$folder" >&2
  touch "$folder"
  echo "$folder"
}

# build_programs_once NAME FOLDER. Holds the lock NAME.
build_programs_once() {
  local name=$1 folder=$2 work started=$SECONDS modules module
  [ ! -d "$folder" ] || return 0      # another process was first
  say "building $name, once; this takes some minutes"
  find "$CACHE" -maxdepth 1 -name "$name-*" -type d -mtime +7 -exec rm -rf {} +
  work=$(mktemp -d "$CACHE/$name.XXXXXX")
  # shellcheck disable=SC2064
  trap "rm -rf '$work'" EXIT
  mkdir "$work/bin"
  mapfile -t modules < <("${name}_modules")
  for module in "${modules[@]}"; do
    if [[ $module == *+incompatible ]]; then
      build_vendored "$module" "$work"
    else
      (cd / && CGO_ENABLED=0 GOBIN=$work/bin go install -trimpath -ldflags='-s -w' "$module")
    fi || die "could not build $module"
  done
  mv "$work/bin" "$folder"
  say "$name took $((SECONDS - started)) s and $(du -sm "$folder" | cut -f1) MB"
}

# build_vendored MODULE/cmd/PROGRAM@VERSION WORK: of a module whose go.mod is called
# vendor.mod, so that its dependencies are those that it pins.
build_vendored() {
  local program=${1%@*} source
  program=${program##*/}
  source=$(cd / && go mod download -json "${1%/cmd/*}@${1#*@}" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
  [ -n "$source" ] && cp -R "$source" "$2/$program" && chmod -R u+w "$2/$program" && (
    cd "$2/$program" && rm -rf vendor && mv vendor.mod go.mod && mv vendor.sum go.sum &&
      CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o "$2/bin/" "./cmd/$program"
  ) && chmod -R u+w "$2/$program" && rm -rf "${2:?}/$program"
}

# podman_programs FOLDER: Debian's podman with conmon, and the libraries that they want.
podman_programs() {
  local program
  need_packages podman conmon golang-github-containers-common
  mkdir -p "$1/lib"
  for program in podman conmon; do
    cp "$(command -v "$program")" "$1/"
    ldd "$1/$program" | awk '$2 == "=>" { print $3 }' | grep -vE '/lib(c|m)\.so' | xargs -r cp -L -t "$1/lib"
  done
  cp /usr/share/containers/seccomp.json "$1/"
}
