#!/bin/sh
# Installs Debian or Ubuntu packages, as root or with sudo. Fails, having said why, where it cannot.
#
#     scripts/apt-install.sh chromium
set -eu

say() { printf 'apt-install: %s\n' "$*" >&2; }

if ! command -v apt-get >/dev/null 2>&1; then
    say "no apt-get here to install $*"
    exit 1
fi
root=
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null 2>&1; then
        say "as root: apt-get install $*"
        exit 1
    fi
    root=sudo
fi
say "installing $*"
export DEBIAN_FRONTEND=noninteractive
$root apt-get update -qq >&2
$root apt-get install -y -qq --no-install-recommends "$@" >&2
