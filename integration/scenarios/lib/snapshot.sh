# SPDX-License-Identifier: Apache-2.0
#
# What a container can leave on the host. Sourced after checks.sh.
# shellcheck shell=bash

# snapshot: all that is there, one thing a line, without what changes by itself.
snapshot() {
  find /sys/fs/cgroup -type d | sed 's/^/cgroup /'
  awk '{ print "mount", $2, $3 }' /proc/mounts
  find /run/actplane /sys/fs/bpf -mindepth 1 2> /dev/null |
    grep -vE '^/run/actplane/(actplaned\.log|actplaned\.lock|lock)$' | sed 's/^/file /'
  awk '$8 ~ /actplane/ { print "socket", $8 }' /proc/net/unix
  find /etc/actplane /tmp -maxdepth 1 -name '*actplane*' 2> /dev/null | sed 's/^/file /'
  find /var/run/docker/containerd/daemon/io.containerd.runtime.v2.task /run/containerd /run/docker/runtime-* /run/runc \
    -mindepth 1 -type d 2> /dev/null | sed 's/^/container /'
  # shellcheck disable=SC2009    # what is left of it may have any name
  ps -eo args= | grep -E 'actplane|runc|containerd-shim' | grep -vE 'grep|actplaned( |$)|scenarios/|[ /]ps -eo' | sed 's/^/process /'
  bpf_objects
}

# bpf_objects: the programs, maps and links that the kernel holds.
bpf_objects() { python3 "$LIB/bpf_objects.py"; }

# left FILE: what is there that was not when FILE was made.
left() { snapshot | sort | comm -13 "$1" -; }

nothing_left() { [ -z "$(left "$1")" ]; }

# check_nothing_left NAME FILE: within some seconds, there is no more than in FILE.
check_nothing_left() {
  if eventually 40 nothing_left "$2"; then
    pass "$1"
  else
    fail "$1" "$(left "$2")"
  fi
}
