# SPDX-License-Identifier: Apache-2.0
#
# Starts QEMU, streams what the guest prints and finds out how it ended. Sourced.
#
# Three serial ports: ttyS0 is the kernel's console, ttyS1 the program's output,
# ttyS2 tells "up" and "exit N". So none garbles another, and no output of a
# program is taken for a status.
#
# TCG always: /dev/kvm may be there and yet not boot a stock kernel.
# shellcheck shell=bash

# lsm_list TIER: what stands behind lsm= on the kernel's command line.
lsm_list() {
  case $1 in
    bpf) echo landlock,lockdown,yama,apparmor,bpf ;;
    nobpf) echo landlock,lockdown,yama,apparmor ;;
    *) die "LSM \"$1\" is neither bpf nor nobpf" ;;
  esac
}

# boot WORK KERNEL-FOLDER LSM INITRD [qemu argument...]
#
# Status: the guest's own; 124 when LIMIT seconds have passed; 125 when the guest
# did not come up (in two attempts), or died without a status.
# Knobs: MEM (MiB), CPUS, LIMIT, BOOT_LIMIT (seconds until "up"), ICOUNT=1, CONSOLE=1.
boot() {
  local work=$1 kernel=$2 lsm=$3 initrd=$4 status=125 attempt args append list cpu=max
  shift 4
  list=$(lsm_list "$lsm") || return
  append="console=ttyS0 quiet panic=-1 mitigations=off lsm=$list"
  if [ -n "${ICOUNT:-}" ]; then
    # One instruction is one nanosecond of guest time, so that the guest's clock
    # counts instructions, the same on every host. It takes one CPU, a trusted TSC
    # and the same addresses in each boot.
    args=(-accel "tcg,thread=single,tb-size=512" -icount "shift=0,sleep=off" -smp 1)
    append+=" tsc=reliable nokaslr"
  else
    # One host thread for both CPUs. With a thread each, about one boot in ten panics
    # where the kernel rewrites its own code (jump labels, BPF trampolines), and it
    # is no faster.
    args=(-accel "tcg,thread=single,tb-size=512" -smp "${CPUS:-2}")
    # Emulated, "rep movsb" goes byte by byte; without these two, kernels copy by words.
    cpu+=,-erms,-fsrm
  fi
  args+=(-M q35 -cpu "$cpu" -m "${MEM:-1024}" -nodefaults -no-user-config -display none -no-reboot
    -serial "file:$work/console" -serial stdio -serial "file:$work/control"
    -kernel "$kernel/vmlinuz" -initrd "$initrd" -append "$append" "$@")

  for attempt in 1 2; do
    if boot_once "$work" "${args[@]}"; then status=0; else status=$?; fi
    [ "$status" = 125 ] || break
    # A program that has started is never started twice.
    if grep -qs '^up' "$work/control"; then
      say "the guest died without a status; its console ended with:"
      tail -n 25 "$work/console" >&2; cat "$work/qemu" >&2
      break
    fi
    say "boot attempt $attempt of kernel $(cat "$kernel/release") failed; its console ended with:"
    tail -n 5 "$work/console" >&2; cat "$work/qemu" >&2
  done
  [ "$status" != 124 ] || say "out of time after ${LIMIT:-300} seconds (LIMIT)"
  [ -z "${CONSOLE:-}" ] || cat "$work/console" >&2
  return "$status"
}

# boot_once WORK ARGUMENT...: one QEMU process from start to end.
boot_once() {
  local work=$1 qemu cat started=$SECONDS status='' up=''
  shift
  rm -f "$work/console" "$work/control" "$work/output"
  # QEMU makes its standard output non-blocking, which would break whoever shares
  # that file with us; a pipe of its own keeps it away.
  mkfifo "$work/output"
  cat "$work/output" &
  cat=$!
  qemu-system-x86_64 "$@" < /dev/null > "$work/output" 2> "$work/qemu" &
  qemu=$!
  # shellcheck disable=SC2064
  trap "kill $qemu 2> /dev/null; exit 130" INT TERM
  while kill -0 "$qemu" 2> /dev/null; do
    sleep 0.2
    [ -n "$up" ] || ! grep -qs '^up' "$work/control" || up=1
    if [ $((SECONDS - started)) -ge "${LIMIT:-300}" ]; then
      status=124
    elif [ -n "$up" ] || [ $((SECONDS - started)) -lt "${BOOT_LIMIT:-90}" ]; then
      continue
    fi
    kill "$qemu" 2> /dev/null || true
    break
  done
  wait "$qemu" 2> /dev/null || true
  wait "$cat" || true
  trap - INT TERM
  [ -n "$status" ] || status=$(sed -n 's/^exit \([0-9]*\)\r*$/\1/p' "$work/control" 2> /dev/null)
  return "${status:-125}"
}
