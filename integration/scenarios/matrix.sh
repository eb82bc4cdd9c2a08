#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A cross-section of the matrix of front ends and runtimes (lib/matrix.sh), by what
# Debian has. The other rows are matrix-whole.sh's.
# lsm: none
# programs: podman
. "$(dirname "$0")/lib/checks.sh"
# shellcheck source=lib/matrix.sh
. "$LIB/matrix.sh"

use_docker
row docker-20.10 docker crun
use_podman
row podman docker runc
exit "$failed"
