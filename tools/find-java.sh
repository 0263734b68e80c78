#!/bin/sh
# Spark needs a complete Java 17 or newer. Says which one there is; with --install puts Debian's in place if it may.
enough() {
  "$1" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | grep -qE '^(1[7-9]|[2-9][0-9]|[1-9][0-9][0-9])$'
}
found() {
  for java in "${JAVA_HOME:+$JAVA_HOME/bin/java}" java; do
    if [ -n "$java" ] && command -v "$java" >/dev/null 2>&1 && enough "$java"; then return 0; fi
  done
  return 1
}
if found; then exit 0; fi
if [ "$1" = --install ] && command -v apt-get >/dev/null 2>&1; then
  root=""
  if [ "$(id -u)" != 0 ]; then root="sudo -n"; fi
  { $root apt-get update && $root apt-get install -y --no-install-recommends openjdk-17-jre-headless; } >/dev/null 2>&1
  if found; then exit 0; fi
fi
echo "penstock: no Java 17 or newer; install one (Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME; only what runs on Spark needs it" >&2
exit 1
