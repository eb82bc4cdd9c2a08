#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The Debian package, in a machine without systemd: installed, used, upgraded while a
# container is under policy, kept while one is, removed and purged.
# on: 6.12
# lsm: bpf
. "$(dirname "$0")/lib/checks.sh"
work=$(mktemp -d)
trap finish EXIT
policy='policy: |
  rule r: block read file "/etc/passwd"'

# finish: the machine is as other scenarios expect it.
finish() {
  docker rm -f deb > /dev/null 2>&1
  dpkg --purge actplane > /dev/null 2>&1
  mkdir -p /etc/actplane
  cp -p "$work/config.yaml" /etc/actplane/
  /payload/bin/actplane install --no-verify > "$work/log" 2>&1 || fail "the machine as it was" "$(cat "$work/log")"
  rm -rf "$work"
}

# run NAME COMMAND...: it ends with 0; what it prints is in $out.
run() {
  local name=$1
  shift
  if out=$("$@" 2>&1); then pass "$name"; else fail "$name" "$out"; fi
}

# left: what of the product is on the machine.
left() {
  ls -d /usr/bin/*actplane* /usr/local/bin/*actplane* /etc/docker/daemon.json* /etc/containers/containers.conf.d \
    /lib/systemd/system/actplaned.service /etc/systemd/system/*/actplaned.service /var/lib/systemd/deb-systemd-helper-*/*actplane* \
    /run/actplane /sys/fs/bpf/actplane /var/lib/actplane /usr/share/doc/actplane 2> /dev/null
}

denied() { docker exec deb sh -c 'cat /etc/passwd > /dev/null 2>&1; echo $?' 2>&1; }

cp -p /etc/actplane/config.yaml "$work/"
rm -f /etc/docker/daemon.json.before-actplane
out=$(dpkg -i /files/deb/actplane_1.0_*.deb 2>&1)
check "beside an installation in /usr/local, status" 1 $?
check_match "beside an installation in /usr/local" '/usr/local/bin/actplane uninstall" first' "$out"
dpkg --purge actplane > /dev/null 2>&1
run "uninstall that" /usr/local/bin/actplane uninstall
rm -rf /etc/actplane
check "nothing is left" "" "$(left)"

run "install" dpkg -i --force-depends /files/deb/actplane_1.0_*.deb
check_match "Docker has it" '"path": "/usr/bin/actplane-runtime"' "$(cat /etc/docker/daemon.json)"
check "the version" "actplane version v1.0" "$(actplane --version)"
# This machine's kernel is all right; its operator accepts the other tier.
protected -d --name deb --label "dev.actplane.policy=$policy" bb sleep 1000 > /dev/null
check "a container starts" 0 "$(docker exec deb sh -c 'cat /etc/group > /dev/null; echo $?')"
check "a container under policy" 1 "$(denied)"
check_match "the engine" 'ok +engine .*version v1.0' "$(actplane doctor 2>&1)"
out=$(actplane install --dry-run 2>&1)
check "installing front ends is nothing but that" "" "$(grep -E 'would (install|write)' <<< "$out")"
out=$(actplane uninstall 2>&1)
check "uninstall is the package's" 3 $?
check_match "and says so" 'apt-get remove actplane' "$out"

run "upgrade" dpkg -i --force-depends /files/deb/actplane_1.1_*.deb
check "it is still under policy" 1 "$(denied)"
check_match "the engine is the new one" 'ok +engine .*version v1.1, .* 1 under policy' "$(actplane doctor 2>&1)"
check_match "what it denied is known" 'blocked +read /etc/passwd' "$(actplane events deb 2>&1)"

out=$(dpkg --remove actplane 2>&1)
check "removal is refused, status" 1 $?
check_match "removal is refused" '1 under policy .*stop these containers first' "$(tr '\n' ' ' <<< "$out")"
check "and changes nothing" 1 "$(denied)"
docker rm -f deb > /dev/null
eventually 30 sh -c '! actplane ps | grep -q deb' || fail "the container is gone" "$(actplane ps)"
echo 'version: 1' > /etc/actplane/policies/mine.yaml
run "remove" dpkg --remove actplane
check "Docker has it no longer" 0 "$(grep -c actplane /etc/docker/daemon.json 2> /dev/null || [ ! -e /etc/docker/daemon.json ] && echo 0)"
check_that "the configuration is kept" test -e /etc/actplane/config.yaml
check "what is kept" "/var/lib/actplane" "$(left | grep -v deb-systemd-helper | grep -v '^/etc/systemd')"
run "purge" dpkg --purge actplane
check "nothing else is left" "" "$(left)"
check "the administrator's policy is" "/etc/actplane/policies/mine.yaml" "$(find /etc/actplane -type f)"
rm -rf /etc/actplane
exit "$failed"
