#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The templates of `actplane init` do in a container what their tests say on the
# model. Programs that are not in the image are stand-ins under the right names: a rule
# on a program is about its name and arguments.
#
# lsm: bpf
. "$(dirname "$0")/lib/checks.sh"
work=$(mktemp -d -p /var/tmp)    # /tmp is a tmpfs
trap 'docker rm -f templates > /dev/null 2>&1; docker rmi -f templates > /dev/null 2>&1; rm -rf "$work"' EXIT

# The stand-ins are a layer of an image: what is written inside opens no gate.
layer=$work/layer/usr/bin
mkdir -p "$layer" "$work/layer/usr/local/bin"
docker create --name templates agent true > /dev/null
docker cp -L templates:/bin/true "$work/true" > /dev/null
docker cp -L templates:/bin/false "$work/false" > /dev/null
for name in go node cargo terraform helm gh docker migrate protoc; do cp "$work/true" "$layer/$name"; done
cp "$work/false" "$layer/kubectl"    # there is a difference
printf '#!/usr/bin/env node\n' > "$layer/npm"
printf '#!/usr/bin/python3\n' > "$layer/pytest"
printf '#!/usr/bin/python3\n' > "$layer/pip"
printf '#!/bin/sh\nexec "$@"\n' > "$work/layer/usr/local/bin/review"
printf '#!/bin/sh\nread -r x < "$1"; echo "$x" > "$2"\n' > "$work/layer/usr/local/bin/redact"
chmod 755 "$layer"/* "$work/layer/usr/local/bin"/*
docker cp "$work/layer/usr" templates:/ > /dev/null
docker commit templates templates > /dev/null
docker rm templates > /dev/null

# in_container GROUP TEMPLATES: one container under the policy that init makes of them.
in_container() {
  local group=$1 home=$work/$1
  mkdir -p "$home/workspace"
  check_that "init makes $group" actplane init --template "$2" "$home/workspace" > "$home/init.log"
  grep -q '^ok ' "$home/init.log" || cat "$home/init.log"
  check_that "the engine takes $group" actplane check --strict "$home/workspace/actplane.yaml" > /dev/null
  (cd "$home/workspace" && bash "$LIB/templates-inside.sh" "$group" before)
  protected --rm --name templates -v "$home/workspace:/workspace" -v "$LIB:/lib/scenario:ro" -w /workspace \
    templates bash /lib/scenario/templates-inside.sh "$group" > "$home.log" 2>&1
  relay "$home.log"
}

in_container chosen no-push,secrets-unread,steering-files,tests-make
in_container tests tests-go,tests-npm,tests-pytest,tests-cargo
in_container git no-destructive-git,no-publish,lockfile-installs
in_container network secrets-stay,cloud-metadata,database
in_container closed private-networks,container-stays,downloads
in_container writes workspace-only,generated-files
in_container docs docs-only,infrastructure
in_container review review-only
in_container allowed allowed-programs
in_container marks reviewed-downloads,secrets-redacted
exit "$failed"
