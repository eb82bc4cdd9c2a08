#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The life of a container of containerd's (containerd.sh), with crun below.
# lsm: none
. "$(dirname "$0")/lib/checks.sh"
# shellcheck source=lib/snapshot.sh
. "$LIB/snapshot.sh"
# shellcheck source=lib/containerd.sh
. "$LIB/containerd.sh"
work=$(mktemp -d)
trap 'containerd_down; configure; rm -rf "$work"' EXIT

containerd_up
configure 'runtimes: [crun]'
check "a container starts" 0 "$(under "$policy" --rm "$IMAGE" first true > /dev/null; echo $?)"
eventually 20 no_scopes
snapshot | sort > "$work/before"
life crun
check_nothing_left "crun: nothing is left" "$work/before"
exit "$failed"
