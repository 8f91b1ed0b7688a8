#!/bin/sh
# Installs what `make test` needs and this machine lacks, where it may; otherwise says what to install.
set -eu

command -v go >/dev/null || {
	echo "Go 1.26 or newer is needed: https://go.dev/dl/" >&2
	exit 1
}

packages=
command -v "${CC:-cc}" >/dev/null || packages="gcc libc6-dev"           # the race detector needs a C compiler
command -v redis-server >/dev/null || packages="$packages redis-server" # the tests start their own, sentinels too
command -v prometheus >/dev/null || packages="$packages prometheus"     # the tests start their own; promtool comes with it
[ -n "$packages" ] || exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
	apt-get update -qq
	# Debian may start a Redis of its own on port 6379, and a Prometheus on 9090. The tests use other ports, so they are left alone.
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages # unquoted: words
	exit 0
fi
echo "These are missing: ${packages# }. On Debian: sudo apt-get install ${packages# }" >&2
exit 1
