#!/bin/sh
# Installs what `make test` needs and this machine lacks, where it may; otherwise says what to install.
set -eu

command -v go >/dev/null || {
	echo "Go 1.26 or newer is needed: https://go.dev/dl/" >&2
	exit 1
}

# The race detector needs a C compiler.
command -v "${CC:-cc}" >/dev/null && exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
	apt-get update -qq
	apt-get install -y -qq gcc libc6-dev
	exit 0
fi
echo "A C compiler is needed for the race detector. On Debian: sudo apt-get install gcc libc6-dev" >&2
exit 1
