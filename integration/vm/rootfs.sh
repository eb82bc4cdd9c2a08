# SPDX-License-Identifier: Apache-2.0
#
# The Docker machine: a Debian root file system with dockerd and three container
# images in its store, cached as one disk image. Sourced, never run.
#
#   bb     busybox and its applets, 2 MB
#   agent  Debian with bash, git, python3, curl and make: what an agent works with
#   langs  the same with Node and Java
#
# There is no registry to pull from, and importing the images is slow work for an
# emulated machine: it is done once, in a first boot whose disk is kept.
# shellcheck shell=bash

AGENT_PACKAGES=git,python3,curl,make,ca-certificates
LANGUAGE_PACKAGES=(nodejs openjdk-17-jdk-headless)
DOCKER_PACKAGES=(docker.io crun iptables apparmor busybox-static iproute2 procps kmod)

# rootfs_image: prints the disk image's path, having built it if need be. Its name
# has a hash of what it is made from, so that checkouts can share the cache.
rootfs_image() {
  local hash image
  hash=$(cat "$VM_DIR/rootfs.sh" "$VM_DIR/guest/import-images" | sha256sum | cut -c1-12)
  image=$CACHE/docker-$hash.img
  if [ ! -e "$image" ]; then
    [ "$(id -u)" = 0 ] || die "building the Docker machine takes root (debootstrap)"
    need_packages debootstrap e2fsprogs busybox-static cpio kmod qemu-system-x86
    with_lock docker-root rootfs_build "$image" >&2
  fi
  touch "$image"
  echo "$image"
}

# rootfs_build IMAGE. Holds the lock docker-root.
rootfs_build() {
  local image=$1 work started=$SECONDS
  [ ! -e "$image" ] || return 0      # another process was first
  find "$CACHE" -maxdepth 1 -name 'docker-*.img' -mtime +7 -delete
  say "building the Docker machine, once; this takes some minutes"
  work=$(mktemp -d "$CACHE/docker.XXXXXX")
  # shellcheck disable=SC2064
  trap "rm -rf --one-file-system '$work'" EXIT
  chmod 755 "$work"
  rootfs_debian "$work/agent" "$work/root" "$work/langs" > "$work/log" 2>&1 || { tail -n 5 "$work/log" >&2; die "no Debian root file system"; }
  say "root file system made after $((SECONDS - started)) s"

  # What the machine starts from, and what its first boot turns into images.
  mkdir -p "$work/payload"/{files,bin}
  rootfs_busybox "$work/bb"
  tar -C "$work/bb" -cf "$work/payload/files/bb.tar" .
  tar -C "$work/agent" --exclude=./var/lib/apt/lists/* -cf "$work/payload/files/agent.tar" .
  tar -C "$work/langs" --exclude=./var/lib/apt/lists/* -cf "$work/payload/files/langs.tar" .
  rm -rf "$work/agent" "$work/langs"
  disk_image "$work/root" "$work/root.img" 5120
  rm -rf "$work/root"
  cp "$VM_DIR/guest/import-images" "$work/payload/script"
  INSTALL=0 payload_environment 6.12 nobpf > "$work/payload/environment"
  MEM=3072 LIMIT=1500 boot_docker "$work" "$(kernel_dir 6.12)" nobpf "$work/root.img" cache=unsafe ||
    die "the Docker machine's first boot failed ($?)"
  mv "$work/root.img" "$image"
  say "the Docker machine took $((SECONDS - started)) s and $(du -m "$image" | cut -f1) MB"
}

# rootfs_debian AGENT ROOT LANGS: three trees. The others start as copies of the first,
# which is quicker than to bootstrap each.
rootfs_debian() {
  local agent=$1 root=$2 langs=$3 tree
  debootstrap --variant=minbase --include="$AGENT_PACKAGES" bookworm "$agent" "$(debian_mirror)"
  rootfs_trim "$agent"
  mkdir -p "$agent/workspace"
  cp -a "$agent" "$root"
  cp -a "$agent" "$langs"
  printf '#!/bin/sh\nexit 101\n' > "$root/usr/sbin/policy-rc.d"    # the packages start nothing
  chmod 755 "$root/usr/sbin/policy-rc.d"
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  cp /etc/resolv.conf "$langs/etc/resolv.conf"
  rootfs_install "$root" "${DOCKER_PACKAGES[@]}"
  rootfs_trim "$root"
  rootfs_install "$langs" "${LANGUAGE_PACKAGES[@]}"
  rootfs_trim "$langs"
  # No tree tells where this machine gets its packages.
  for tree in "$agent" "$root" "$langs"; do
    : > "$tree/etc/apt/sources.list"
    rm -f "$tree/etc/resolv.conf"
  done
  rm -f "$root/usr/sbin/policy-rc.d"
  printf '127.0.0.1 localhost guest\n::1 localhost\n' > "$root/etc/hosts"
  echo guest > "$root/etc/hostname"
  mkdir -p "$root/files" "$root/payload" "$root/usr/lib/modules"
}

# rootfs_install ROOT PACKAGE...: apt wants a /proc; this one goes away with its namespace.
rootfs_install() {
  local inside=(unshare --mount --pid --fork --root "$1" --mount-proc env DEBIAN_FRONTEND=noninteractive)
  shift
  "${inside[@]}" apt-get update -qq
  "${inside[@]}" apt-get install -qq -y --no-install-recommends -o Dpkg::Options::=--force-unsafe-io "$@"
}

rootfs_trim() {
  rm -rf "$1"/var/cache/apt/* "$1"/var/lib/apt/lists/* "$1"/usr/share/{doc,man,info}/* "$1"/var/log/*.log
  find "$1/usr/share/locale" -mindepth 1 -maxdepth 1 -exec rm -rf {} +
}

rootfs_busybox() {
  local applet
  mkdir -p "$1"/{bin,etc,tmp,proc,sys,dev,root,workspace}
  chmod 1777 "$1/tmp"
  cp /usr/bin/busybox "$1/bin/"
  while read -r applet; do
    [ "$applet" = busybox ] || ln -s busybox "$1/bin/$applet"
  done < <(busybox --list)
  echo 'root:x:0:0:root:/root:/bin/sh' > "$1/etc/passwd"
  echo 'root:x:0:' > "$1/etc/group"
}
