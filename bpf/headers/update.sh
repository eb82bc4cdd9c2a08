#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copies libbpf's headers from an installed libbpf-dev.
set -eu
cd "$(dirname "$0")"
cp /usr/include/bpf/bpf_helpers.h /usr/include/bpf/bpf_helper_defs.h \
	/usr/include/bpf/bpf_tracing.h /usr/include/bpf/bpf_core_read.h bpf/
