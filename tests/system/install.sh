#!/bin/sh
# Debian packages that `make test-system` needs; installs only what is missing.
set -eu
missing=""
for program in strace chromium busybox shellcheck; do
    command -v "$program" >/dev/null 2>&1 || missing="$missing $program"
done
[ -z "$missing" ] && exit 0
apt-get update -qq
# shellcheck disable=SC2086 - a list of package names
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
