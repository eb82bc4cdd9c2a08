#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Rules on connections hold for IPv4, IPv6, mapped addresses, datagrams and Unix
# sockets; a label gained later also stops what is connected already; the feedback
# socket is reached whatever the policy says.
. "$(dirname "$0")/lib/checks.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat > "$work/some" <<'POLICY'
version: 1
policy: |
  rule blocked:
    block connect "127.0.0.1:81"
    block connect "[::1]:81"
    block connect "unix:/tmp/blocked*"
    block connect "unix:@blocked*"
  source SECRET = file "/tmp/secret"
  rule no-leak:
    block connect any if SECRET
POLICY
cat > "$work/any" <<'POLICY'
version: 1
policy: |
  rule nothing:
    block connect any
POLICY

for policy in some any; do
  protected --rm --label "dev.actplane.policy=$(cat "$work/$policy")" -v "$LIB:/lib/scenario:ro" \
    --sysctl net.ipv6.conf.lo.disable_ipv6=0 agent python3 /lib/scenario/network.py "$policy" > "$work/$policy.log" 2>&1
  relay "$work/$policy.log"
done
exit "$failed"
