#!/bin/sh
# Debian packages that `make test-system` needs; installs only what is missing.
set -eu
missing=""
for pair in strace:strace chromium:chromium prometheus:prometheus busybox:busybox shellcheck:shellcheck mkfs.xfs:xfsprogs mkfs.exfat:exfatprogs mount.exfat-fuse:exfat-fuse; do
    command -v "${pair%%:*}" >/dev/null 2>&1 || missing="$missing ${pair#*:}"
done
[ -z "$missing" ] && exit 0
apt-get update -qq
# In runlevel 1 no daemon is started: the tests start Prometheus themselves.
# shellcheck disable=SC2086 - a list of package names
RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
