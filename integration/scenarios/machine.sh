#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The test machine itself is what the other scenarios take it for.
# on: 5.10 6.1 6.12 new
failed=0
check() {  # NAME WANTED GOT
  if [ "$2" = "$3" ]; then
    echo "ok $1"
  else
    echo "not ok $1: wanted \"$2\", got \"$3\""
    failed=1
  fi
}

check "dockerd answers" OK "$(curl -s --unix-socket /run/docker.sock http://docker/_ping)"
check "cgroup v2 only" cgroup2fs "$(stat -f -c %T /sys/fs/cgroup)"
check "image bb runs" 42 "$(docker run --rm bb sh -c 'exit 42'; echo $?)"
check "image agent has its tools" 5 \
  "$(docker run --rm agent sh -c 'for tool in bash git python3 curl make; do command -v $tool; done' | wc -l)"
check "exec works" hello "$(docker run -d --name machine bb sleep 100 > /dev/null; docker exec machine echo hello)"
case $ACTPLANE_TEST_LSM in bpf) wanted=1 ;; *) wanted=0 ;; esac
check "bpf in the LSM list" "$wanted" "$(tr , '\n' < /sys/kernel/security/lsm | grep -cx bpf)"
exit "$failed"
