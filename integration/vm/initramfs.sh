# SPDX-License-Identifier: Apache-2.0
#
# Makes the guests' initramfs: busybox, kernel modules, an init. Sourced, never run.
# shellcheck shell=bash

# initramfs_tree FOLDER KERNEL-FOLDER INIT MODULE...
# The modules and what they depend on stand in load order in /modules/order; those
# that are built into this kernel need no file. One that exists nowhere is fatal.
initramfs_tree() {
  local root=$1 kernel=$2 init=$3 release module line
  shift 3
  release=$(cat "$kernel/release")
  mkdir -p "$root"/{bin,dev,etc,mnt,modules,proc,run,sys,tmp,files}
  cp /usr/bin/busybox "$root/bin/"
  install -m 755 "$init" "$root/init"
  echo 'root:x:0:0:root:/:/bin/sh' > "$root/etc/passwd"
  echo 'root:x:0:' > "$root/etc/group"
  printf '127.0.0.1 localhost\n::1 localhost\n' > "$root/etc/hosts"
  for module in "$@"; do
    modprobe -d "$kernel" -S "$release" --show-depends "$module" > "$root/modules/depends" ||
      die "kernel $release has no module $module"
    while read -r _ line _; do
      case $line in
        /*) grep -qxF "${line##*/}" "$root/modules/order" 2> /dev/null && continue
          cp "$line" "$root/modules/"
          echo "${line##*/}" >> "$root/modules/order" ;;
      esac
    done < "$root/modules/depends"
  done
  rm -f "$root/modules/depends"
  [ -e "$root/modules/order" ] || : > "$root/modules/order"
}

# initramfs_pack FOLDER FILE. Not compressed: that is time on both sides, and the
# file does not leave this machine.
initramfs_pack() {
  (cd "$1" && find . | cpio -o -H newc -R 0:0 --quiet) > "$2"
}
