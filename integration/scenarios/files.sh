#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Rules on files hold for every system call that changes files and names, on the
# container's own file system, on a volume and on a tmpfs; what no rule forbids goes
# through. Labels stay with a file whatever its name becomes.
. "$(dirname "$0")/lib/checks.sh"
work=$(mktemp -d -p /var/tmp)    # /tmp is a tmpfs
trap 'docker rm -f files-overlay files-volume files-tmpfs > /dev/null 2>&1; docker rmi -f files > /dev/null 2>&1; umount "$work/tmpfs"; rm -rf "$work"' EXIT

cat > "$work/policy" <<'POLICY'
version: 1
policy: |
  rule locked:
    block write file "/t/nowrite/**"
    block write file "/usr/lib/locked/**"
  rule kept:
    block unlink file "/t/keep/**"
  rule no-append:
    block append file "/t/noappend/*"
  rule no-read:
    block read file "/t/noread/*"
  rule no-open:
    block open file "/t/noopen/*"
  source SECRET = file "/t/secret"
  source SECRET = file "/usr/lib/hidden/secret*"
  rule no-leak:
    block write file "/t/out/**" if SECRET
POLICY

# folders TOP: what the attempts find.
folders() {
  local folder
  for folder in free nowrite keep noappend noread noopen out; do
    mkdir -p "$1/$folder"
    echo "in $folder" | tee "$1/$folder/a" > "$1/$folder/b"
  done
  mkdir "$1/nowrite/empty" "$1/keep/empty"
}

# A layer of an image: the lower files of an overlay.
layer=$work/layer/usr/lib
mkdir -p "$layer"/{locked,unlocked,hidden}
for file in locked/a unlocked/a unlocked/b hidden/secret hidden/other; do echo "$file" > "$layer/$file"; done
ln "$layer/hidden/other" "$layer/hidden/secret-linked"
docker create --name files-base agent true > /dev/null
docker cp "$work/layer/usr" files-base:/ > /dev/null
docker commit files-base files > /dev/null
docker rm files-base > /dev/null
folders "$work/volume"
folders "$work/upper/t"
mkdir "$work/tmpfs"
mount -t tmpfs tmpfs "$work/tmpfs"
folders "$work/tmpfs"

# attempt KIND OPTION...: one container, whose results go to a file.
attempt() {
  local kind=$1
  shift
  protected --name "files-$kind" --label "dev.actplane.policy=$(cat "$work/policy")" -v "$LIB:/lib/scenario:ro" "$@" > "$work/$kind.log" 2>&1
  relay "$work/$kind.log"
}

attempt volume -v "$work/volume:/t" agent python3 /lib/scenario/files.py volume /t
# What is to be there must be put into the overlay before the policy is on.
docker create --runtime actplane --network none --name files-overlay --label "dev.actplane.policy=$(cat "$work/policy")" \
  -v "$LIB:/lib/scenario:ro" files python3 /lib/scenario/files.py overlay /t > /dev/null
docker cp "$work/upper/t" files-overlay:/ > /dev/null
docker start -a files-overlay > "$work/overlay.log" 2>&1
relay "$work/overlay.log"
attempt tmpfs -v "$work/tmpfs:/t" agent python3 /lib/scenario/files.py tmpfs /t
exit "$failed"
