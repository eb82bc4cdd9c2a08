#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A rule on a program holds by whatever way the program is started: from inside in
# forty ways, by docker exec in its variants, and by a task in another cgroup.
. "$(dirname "$0")/lib/checks.sh"
work=$(mktemp -d)
config=/etc/actplane/config.yaml
[ ! -e "$config" ] || cp "$config" "$work/config"
restore() { if [ -e "$work/config" ]; then cp "$work/config" "$config"; else rm -f "$config"; fi; }
trap 'restore; docker rm -f exec-paths > /dev/null 2>&1; rmdir /sys/fs/cgroup/elsewhere 2> /dev/null; rm -rf "$work"' EXIT

mkdir "$work/workspace"
git init -q -b main "$work/workspace/repo"
git init -q --bare -b main "$work/workspace/remote.git"
(
  cd "$work/workspace/repo" || exit
  git config user.name agent
  git config user.email agent@localhost
  git remote add origin /workspace/remote.git
  git commit -q --allow-empty -m first
)
cat > "$work/workspace/actplane.yaml" <<'POLICY'
version: 1
policy: |
  rule no-push:
    block exec "git" "push"
    because "Pushing needs a human."
  rule no-wget:
    block exec "wget"
    block exec "busybox" "wget"
POLICY
cp /bin/busybox "$work/workspace/busybox"
ln -s busybox "$work/workspace/wget"
ln -s busybox "$work/workspace/true"

# What is stronger than a policy is refused otherwise; see refused.sh.
echo 'allow: [privileged, cap-sys-admin]' >> "$config"

# Namespaces, for nsenter and unshare, take what Docker does not give by default.
# The config says that a repository of another owner is fine.
protected -d --name exec-paths --cap-add SYS_ADMIN --security-opt seccomp=unconfined --security-opt apparmor=unconfined \
  -e GIT_CONFIG_COUNT=1 -e GIT_CONFIG_KEY_0=safe.directory -e 'GIT_CONFIG_VALUE_0=*' \
  -v "$work/workspace:/workspace" -v "$LIB:/lib/scenario:ro" -w /workspace agent \
  bash -c 'mkfifo /tmp/go; git config --system --add safe.directory "*"; exec sleep 600' > /dev/null

run_inside() { docker exec "$@" 2>&1; }
run_inside exec-paths python3 /lib/scenario/exec_paths.py > "$work/inside.log"
relay "$work/inside.log"

check_match "docker exec: push is denied" 'not permitted' "$(run_inside exec-paths git -C repo push origin main)"
check "docker exec: status runs" 0 "$(run_inside exec-paths git -C repo status > /dev/null; echo $?)"
check_match "docker exec -u root: push is denied" 'not permitted' "$(run_inside -u root exec-paths git -C repo push origin main)"
check_match "docker exec -u 1000: push is denied" 'not permitted' "$(run_inside -u 1000 exec-paths git -C repo push origin main)"
check_match "docker exec --privileged: push is denied" 'not permitted' "$(run_inside --privileged exec-paths git -C repo push origin main)"
check_match "docker exec of a shell: push is denied" 'not permitted' "$(run_inside exec-paths bash -c 'git -C repo push origin main; echo $?')"
docker exec -d exec-paths bash -c 'git -C repo push origin main; echo $? > /workspace/detached'
eventually 60 test -s "$work/workspace/detached"
check "docker exec -d: push is denied" 126 "$(cat "$work/workspace/detached" 2> /dev/null)"

check_match "a busybox applet by its link's name is denied" 'not permitted' "$(run_inside exec-paths sh -c ./wget)"
check_match "a busybox applet by its argument is denied" 'not permitted' "$(run_inside exec-paths sh -c './busybox wget')"
check "another applet runs" 0 "$(run_inside exec-paths sh -c ./true > /dev/null; echo $?)"

# The host moves a task out of the container's cgroup: it and its children stay in.
mkdir /sys/fs/cgroup/elsewhere
docker exec exec-paths bash -c 'echo $BASHPID > /workspace/pid; read -r _ < /tmp/go; git -C repo push origin main; echo $? > /workspace/moved; bash -c "git -C repo push origin main; echo \$?" > /workspace/moved-child; git -C repo status > /dev/null; echo $? > /workspace/moved-status' > "$work/moved.log" 2>&1 &
eventually 60 test -s "$work/workspace/pid"
moved=$(pgrep -f 'bash -c echo .BASHPID > /workspace/pid' | while read -r pid; do grep -q docker "/proc/$pid/cgroup" && [ "$(readlink "/proc/$pid/exe")" = /usr/bin/bash ] && ! grep -qx docker "/proc/$pid/comm" && echo "$pid"; done | tail -n 1)
echo "$moved" > /sys/fs/cgroup/elsewhere/cgroup.procs
check "the task is elsewhere" "0::/elsewhere" "$(cat "/proc/$moved/cgroup")"
docker exec exec-paths bash -c 'echo > /tmp/go'
wait
check "a task in another cgroup: push is denied" 126 "$(cat "$work/workspace/moved" 2>&1)"
check "a child of a task in another cgroup: push is denied" 126 "$(cat "$work/workspace/moved-child" 2>&1)"
check "a task in another cgroup: status runs" 0 "$(cat "$work/workspace/moved-status" 2>&1)"

docker restart -t 0 exec-paths > /dev/null
check_match "after docker restart: push is denied" 'not permitted' "$(run_inside exec-paths git -C repo push origin main)"
check_match "after docker restart: feedback answers" 'no-push' "$(run_inside exec-paths /run/actplane/bin/actplane-guest feedback --all)"
check "nothing was pushed" "" "$(git --git-dir "$work/workspace/remote.git" for-each-ref)"
exit "$failed"
