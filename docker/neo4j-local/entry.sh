#!/bin/sh
# Starts the server as the official image does, as far as graphmem needs it: NEO4J_AUTH is neo4j/PASSWORD or none,
# NEO4J_PLUGINS names graph-data-science or doesn't, NEO4J_server_memory_heap_max__size=2g sets what its name says,
# the database is in /data. `entry.sh archive` writes the class archive when the server stops (see archive.sh).
set -eu
home=/opt/neo4j
conf=$home/conf/neo4j.conf
archive=$home/server.jsa

as_neo4j() { setpriv --reuid=neo4j --regid=neo4j --clear-groups --no-new-privs "$@"; }
setting() { sed -n "s/^$1=//p" "$conf"; }

cp "$home/neo4j.conf" "$conf"
jars="$home/lib/*"
case ${NEO4J_PLUGINS:-} in
*graph-data-science*) jars="$jars:$home/plugins/*" ;;
# The server looks into the folder by itself, and half of GDS keeps it from starting.
*) echo "server.directories.plugins=$home/run" >>"$conf" ;;
esac
# As in the official image: a dot of the setting is _ in the variable's name, and an underscore is __.
env | grep '^NEO4J_[a-z]' | while IFS='=' read -r name value; do
  key=$(printf '%s' "${name#NEO4J_}" | sed 's/__/%/g; s/_/./g; s/%/_/g')
  [ "$key" = server.jvm.additional ] || sed -i "/^$key=/d" "$conf"
  printf '%s=%s\n' "$key" "$value" >>"$conf"
done

mkdir -p /data /logs
chown -R neo4j:neo4j /data /logs
case ${NEO4J_AUTH:-} in
none) echo "dbms.security.auth_enabled=false" >>"$conf" ;;
neo4j/?*)
  # Only before the first start: a volume that was in use keeps its password.
  if [ ! -d /data/databases ] && [ ! -e /data/dbms/auth.ini ]; then
    NEO4J_HOME=$home NEO4J_CONF=$home/conf as_neo4j java -XX:SharedArchiveFile="$archive" -XX:TieredStopAtLevel=1 \
      -cp "$jars" -Dbasedir="$home" org.neo4j.server.startup.Neo4jAdminCommand \
      dbms set-initial-password "${NEO4J_AUTH#neo4j/}" >/dev/null
  fi ;;
*) echo "NEO4J_AUTH has to be neo4j/PASSWORD or none" >&2; exit 2 ;;
esac
unset NEO4J_AUTH

if [ "${1:-}" = archive ]; then classes=-XX:ArchiveClassesAtExit=$archive; else classes=-XX:SharedArchiveFile=$archive; fi
# The server's own class, not `Neo4jCommand console`, which is a second Java that only reads the settings.
# shellcheck disable=SC2046
exec setpriv --reuid=neo4j --regid=neo4j --clear-groups --no-new-privs java -cp "$jars" "$classes" -Dfile.encoding=UTF-8 \
  -Xms"$(setting server.memory.heap.initial_size)" -Xmx"$(setting server.memory.heap.max_size)" \
  $(setting server.jvm.additional) \
  org.neo4j.server.CommunityEntryPoint --home-dir="$home" --config-dir="$home/conf" --console-mode
