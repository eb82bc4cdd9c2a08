# SPDX-License-Identifier: Apache-2.0
#
# Debian's cloud kernels, unpacked and never installed. Sourced, never run.
#
# A kernel is a folder $CACHE/kernels/NAME: vmlinuz, release (uname -r), version
# (the package's), lib/modules/RELEASE with decompressed modules and modules.dep.
# shellcheck shell=bash

# kernel_suites NAME: the Debian suites to look in, and the start of the version.
kernel_suites() {
  case $1 in
    5.10) echo 5.10. bullseye bullseye-security ;;
    6.1) echo 6.1. bookworm bookworm-security ;;
    6.12) echo 6.12. trixie trixie-security ;;
    new) echo '' trixie-backports ;;
    *) die "kernel \"$1\" is not one of 5.10, 6.1, 6.12, new" ;;
  esac
}

# kernel_dir NAME: prints the kernel's folder, having fetched it if need be.
# ACTPLANE_REFRESH=1 looks for a newer version of one that is there.
kernel_dir() {
  local dir=$CACHE/kernels/$1
  kernel_suites "$1" > /dev/null   # ends here if there is no such kernel
  if [ ! -e "$dir/release" ] || [ -n "${ACTPLANE_REFRESH:-}" ]; then
    need_packages kmod xz-utils zstd debian-archive-keyring
    with_lock "kernel-$1" kernel_fetch "$1" "$dir" >&2
  fi
  echo "$dir"
}

# private_apt FOLDER SUITE...: an APT with sources and lists of its own, so that
# the machine's state stays as it is. The machine's proxy and trust settings hold.
private_apt() {
  local apt=$1 suite uri
  shift
  mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
  : > "$apt/sources.list"
  for suite in "$@"; do
    case $suite in
      *-security) uri=$(security_mirror) ;;
      *) uri=$(debian_mirror) ;;
    esac
    # Without a security archive the point releases' kernels serve as well.
    [ -z "$uri" ] ||
      echo "deb [arch=amd64 signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $uri $suite main" >> "$apt/sources.list"
  done
  cat > "$apt/apt.conf" << CONF
Dir::Etc::sourcelist "$apt/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::State::lists "$apt/lists";
Dir::Cache "$apt/cache";
Acquire::Languages "none";
Acquire::Retries "3";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
APT::Sandbox::User "root";
CONF
}

# kernel_fetch NAME FOLDER: resolves the meta package to today's kernel, downloads
# and unpacks it. Holds the kernel's lock.
kernel_fetch() {
  local name=$1 dir=$2 start suites version image package parts tmp release apt
  [ ! -e "$dir/release" ] || [ -n "${ACTPLANE_REFRESH:-}" ] || return 0   # another process was first
  apt=$CACHE/apt/$name
  read -r start suites < <(kernel_suites "$name" | sed 's/^ /* /')
  # shellcheck disable=SC2086
  private_apt "$apt" $suites
  export APT_CONFIG=$apt/apt.conf
  apt-get update -qq || say "some of the suites ($suites) could not be read; trying with the others"
  [ "$start" != '*' ] || start=
  version=$(apt-cache madison linux-image-cloud-amd64 | awk -v start="$start" 'index($3, start) == 1 { print $3 }' | sort -V | tail -n 1)
  [ -n "$version" ] || die "no kernel \"$name\" in the suites $suites of the machine's Debian archive"
  if [ "$(cat "$dir/version" 2> /dev/null)" = "$version" ]; then return 0; fi

  image=$(apt-cache depends "linux-image-cloud-amd64=$version" | sed -n 's/.*Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1)
  # From 7.x on linux-image is empty: vmlinuz, the modules and the list of built-in
  # modules are packages of their own.
  parts=$(apt-cache show "$image" | sed -n 's/^Depends: //p' | tr -s ',|' '\n' |
    sed -n 's/^ *\(linux-\(binary\|modules\|base\)-[0-9][^ ]*\).*/\1/p' | sort -u)
  tmp=$(mktemp -d "$CACHE/kernel.XXXXXX")
  for package in ${parts:-"$image"}; do
    (cd "$tmp" && apt-get download -qq "$package")
  done
  for package in "$tmp"/*.deb; do dpkg-deb -x "$package" "$tmp/unpacked"; done
  kernel_unpack "$tmp"
  release=$(cat "$tmp/release")
  echo "$version" > "$tmp/version"
  chmod 755 "$tmp"
  mkdir -p "$CACHE/kernels"
  rm -rf "$dir"
  mv -T "$tmp" "$dir"
  say "kernel $name is Debian's $version ($release)"
}

# kernel_unpack FOLDER: brings FOLDER/unpacked into the layout told above. Modules
# are decompressed here once, because emulated machines are slow at that.
kernel_unpack() {
  local tmp=$1 release
  mkdir -p "$tmp/lib/modules"
  find "$tmp/unpacked" -type d -path '*lib/modules' -exec cp -al {}/. "$tmp/lib/modules/" \;
  release=$(ls "$tmp/lib/modules")
  mv "$(find "$tmp/unpacked" "$tmp/lib/modules" -name 'vmlinuz*' -type f | head -n 1)" "$tmp/vmlinuz"
  rm -rf "$tmp/unpacked" "$tmp"/*.deb
  find "$tmp/lib/modules" -name '*.ko.xz' -print0 | xargs -0 -r -P 2 -n 64 xz -d
  find "$tmp/lib/modules" -name '*.ko.zst' -print0 | xargs -0 -r -P 2 -n 64 zstd -q -d --rm
  depmod -b "$tmp" "$release"
  echo "$release" > "$tmp/release"
}
