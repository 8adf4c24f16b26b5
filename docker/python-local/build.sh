#!/bin/sh
# build.sh [--tag]: make a plain image with Debian's Python 3.11 for a machine that can't pull python:3.11-slim, and
# print its tag; with --tag only print it. What is needed: root, docker, debootstrap and a Debian mirror as this
# machine has it set up. The tag is a hash of this file, so that it is built once.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
suite=bookworm # the Debian with Python 3.11
image=graphmem/python-local:3.11-$(sha256sum <"$here/build.sh" | cut -c1-12)

exists() { docker image inspect "$1" >/dev/null 2>&1; }
if [ "${1:-}" = --tag ] || exists "$image"; then echo "$image"; exit; fi
command -v debootstrap >/dev/null || { echo "build.sh needs debootstrap: apt-get install debootstrap" >&2; exit 1; }
[ "$(id -u)" = 0 ] || { echo "build.sh has to be run by root, which debootstrap needs" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo "making $image: a minute" >&2
# This machine's own mirror where apt knows one for the suite, else debootstrap's default.
mirror=$(apt-get indextargets --format '$(CODENAME) $(REPO_URI)' 2>/dev/null | sed -n "s/^$suite //p" | head -n 1)
debootstrap --variant=minbase --include=python3,python3-venv "$suite" "$work/system" ${mirror:+"$mirror"} \
  >"$work/debootstrap.log" || { cat "$work/debootstrap.log" >&2; exit 1; }
(cd "$work/system" && rm -rf var/cache/apt/* var/lib/apt/lists/* usr/share/doc/* usr/share/man/* usr/share/locale/*)
tar -C "$work/system" --numeric-owner -c . | docker import --message "Debian $suite, Python 3.11" - "$image" >&2
echo "$image"
