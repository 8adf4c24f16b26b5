#!/bin/sh
# build.sh [--tag]: make the image of Neo4j, GDS and Browser for a machine that can't pull the official one, and
# print its tag; with --tag only print it. What is needed: root, docker, debootstrap, mvn, a Debian mirror and a
# Maven repository, both as this machine has them set up. Nothing is left outside of Docker but Maven's own cache.
#
# The tag is a hash of the files here, so that it is built once and whenever one of them changes. The base, which
# takes the downloads, has a tag of its own and is made anew only when pom.xml or this file changes.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
suite=bookworm # the last Debian with Java 17, which Neo4j 5 is made for

version() { sed -n "s:.*<$1.version>\(.*\)</$1.version>.*:\1:p" "$here/pom.xml"; }
hash() { (cd "$here" && cat "$@" | sha256sum | cut -c1-12); }
base=graphmem/neo4j-base:$(hash pom.xml build.sh)
image=graphmem/neo4j-local:$(version neo4j)-gds$(version gds)-$(hash pom.xml build.sh Dockerfile neo4j.conf entry.sh archive.sh)

exists() { docker image inspect "$1" >/dev/null 2>&1; }
if [ "${1:-}" = --tag ] || exists "$image"; then echo "$image"; exit; fi

fetch_jars() {
  for part in lib plugins; do
    mvn -q -B -f "$here/pom.xml" -P "$part" dependency:copy-dependencies -DoutputDirectory="$work/$part" >&2
  done
  # A second version of what the server brings itself keeps it from starting.
  for jar in "$work"/lib/*.jar; do rm -f "$work/plugins/${jar##*/}"; done
  (cd "$work/plugins" && rm -f jackson-*.jar commons-text-*.jar javassist-*.jar slf4j-*.jar cypher-ast-factory-9*.jar)
}

make_root() {
  # This machine's own mirror where apt knows one for the suite, else debootstrap's default.
  mirror=$(apt-get indextargets --format '$(CODENAME) $(REPO_URI)' 2>/dev/null | sed -n "s/^$suite //p" | head -n 1)
  debootstrap --variant=minbase --include=ca-certificates,openjdk-17-jre-headless,tini "$suite" "$work/system" ${mirror:+"$mirror"} \
    >"$work/debootstrap.log" || { cat "$work/debootstrap.log" >&2; return 1; }
  (cd "$work/system" && rm -rf var/cache/apt/* var/lib/apt/lists/* usr/share/doc/* usr/share/man/* usr/share/locale/*)
}

make_base() {
  for tool in debootstrap mvn; do
    command -v "$tool" >/dev/null || { echo "build.sh needs $tool: apt-get install debootstrap maven" >&2; exit 1; }
  done
  [ "$(id -u)" = 0 ] || { echo "build.sh has to be run by root, which debootstrap needs" >&2; exit 1; }
  make_root &
  root=$!
  fetch_jars
  wait "$root"
  root=
  mkdir -p "$work/system/opt/neo4j"
  mv "$work/lib" "$work/plugins" "$work/system/opt/neo4j/"
  tar -C "$work/system" --numeric-owner -c . | docker import --message "Debian $suite, Java, Neo4j's jars" - "$base" >&2
}

work=$(mktemp -d)
root=
trap '[ -z "$root" ] || kill "$root" 2>/dev/null; wait; rm -rf "$work"' EXIT
if ! exists "$base"; then
  echo "making $base: some minutes" >&2
  make_base
fi
echo "making $image: a minute or two" >&2
mkdir "$work/context"
cp "$here/Dockerfile" "$here/neo4j.conf" "$here/entry.sh" "$here/archive.sh" "$work/context/"
# The old builder is in every Docker and asks no registry for anything.
DOCKER_BUILDKIT=0 docker build --quiet --tag "$image" --build-arg BASE="$base" "$work/context" >"$work/build.log" 2>&1 \
  || { cat "$work/build.log" >&2; exit 1; }
echo "$image"
