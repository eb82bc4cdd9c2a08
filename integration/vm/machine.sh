# SPDX-License-Identifier: Apache-2.0
#
# Boots the Docker machine: its root file system, the kernel's modules and what
# this run brings along, each a disk of its own. Sourced, never run.
# shellcheck shell=bash

# payload_environment KERNEL LSM: what the guest's script finds in its environment.
payload_environment() {
  local variable
  for variable in $(compgen -e ACTPLANE_ | grep -vx ACTPLANE_CACHE || true); do
    printf 'export %s=%q\n' "$variable" "${!variable}"
  done
  printf 'export ACTPLANE_TEST_ROOT=1 ACTPLANE_TEST_KERNEL=%q ACTPLANE_TEST_LSM=%q\n' "$1" "$2"
  printf 'INSTALL=%q\n' "${INSTALL:-1}"
}

# boot_docker WORK KERNEL-FOLDER LSM ROOT-IMAGE DRIVE-OPTION: boots with WORK/payload
# as the third disk, and the file system in the file DISK, if set, as a fourth, which is
# found at /agents. The disks are told apart by serial number, not by order.
boot_docker() {
  local work=$1 kernel=$2 lsm=$3 root=$4 option=$5 more=()
  [ -z "${DISK:-}" ] ||
    more=(-drive "file=$DISK,if=none,format=raw,id=agents,readonly=on" -device "virtio-blk-pci,drive=agents,serial=agents")
  modules_image "$kernel"
  disk_image "$work/payload" "$work/payload.img" 256
  initramfs_tree "$work/initramfs" "$kernel" "$VM_DIR/guest/init-docker" virtio_pci virtio_blk ext4
  cp "$VM_DIR/guest/stage2" "$work/initramfs/"
  initramfs_pack "$work/initramfs" "$work/initrd"
  boot "$work" "$kernel" "$lsm" "$work/initrd" \
    -drive "file=$root,if=none,format=raw,id=root,$option" -device virtio-blk-pci,drive=root,serial=root \
    -drive "file=$kernel/modules.img,if=none,format=raw,id=modules,readonly=on" -device virtio-blk-pci,drive=modules,serial=modules \
    -drive "file=$work/payload.img,if=none,format=raw,id=payload,cache=unsafe" -device virtio-blk-pci,drive=payload,serial=payload \
    "${more[@]}"
}

# modules_image KERNEL-FOLDER: the kernel's modules as a disk, made once per kernel.
modules_image() {
  [ -e "$1/modules.img" ] || with_lock "modules-$(basename "$1")" modules_build "$1"
}

modules_build() {
  [ ! -e "$1/modules.img" ] || return 0
  disk_image "$1/lib/modules" "$1/modules.part" 8
  mv "$1/modules.part" "$1/modules.img"
}
