#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The rows of the matrix of front ends and runtimes (lib/matrix.sh) that matrix.sh
# leaves out.
# lsm: none
# on: 6.12
# limit: 2400
# programs: podman moby containerd
. "$(dirname "$0")/lib/checks.sh"
# shellcheck source=lib/matrix.sh
. "$LIB/matrix.sh"

use_docker
row docker-20.10 docker runc
use_podman
row podman docker crun
use_moby
row moby-v2 docker runc
row moby-v2 docker crun
use_ctr "" 2
row ctr-1.6 ctr runc
row ctr-1.6 ctr crun
use_ctr /files/containerd/ 3
row ctr-2 ctr runc
row ctr-2 ctr crun
use_crictl
once="restart=CRI starts a container once; another one takes its place"
row crictl-2 crictl runc "$once"
row crictl-2 crictl crun "$once"
exit "$failed"
