#!/bin/sh
# Installs what `make test` needs and this machine lacks, where it may; otherwise says what to install.
set -eu
cd "$(dirname "$0")/.."

command -v go >/dev/null || {
	echo "Go 1.26 or newer is needed: https://go.dev/dl/" >&2
	exit 1
}

packages=
command -v "${CC:-cc}" >/dev/null || packages="gcc libc6-dev"           # the race detector needs a C compiler
command -v redis-server >/dev/null || packages="$packages redis-server" # the tests start their own, sentinels too
command -v prometheus >/dev/null || packages="$packages prometheus"     # the tests start their own; promtool comes with it
command -v node >/dev/null || packages="$packages nodejs"               # for the SDKs that are clients of the gateway
command -v npm >/dev/null || packages="$packages npm"
command -v python3 >/dev/null || packages="$packages python3" # for the example of a client
command -v tmux >/dev/null || packages="$packages tmux"        # the terminal in which ratelimit top is tested
command -v groff >/dev/null || packages="$packages groff-base" # formats the man pages
command -v chromium >/dev/null || packages="$packages chromium fonts-liberation" # for the dashboard
command -v openssl >/dev/null || packages="$packages openssl" # the documented example of TLS uses these two
command -v curl >/dev/null || packages="$packages curl"

if [ -n "$packages" ]; then
	if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
		echo "These are missing: ${packages# }. On Debian: sudo apt-get install ${packages# }" >&2
		exit 1
	fi
	apt-get update -qq
	# Debian may start a Redis of its own on port 6379, and a Prometheus on 9090. The tests use other ports, so they are left alone.
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages # unquoted: words
fi

for scripts in interop/gateway interop/dashboard interop/tsclient interop/tokenizers; do
	installed=$scripts/node_modules/.package-lock.json # npm writes it last
	if [ ! -e $installed ] || [ $scripts/package-lock.json -nt $installed ]; then
		major=$(node -p 'process.versions.node.split(".")[0]')
		[ "$major" -ge 20 ] || {
			echo "Node.js 20 or newer is needed, and this is $major: https://nodejs.org/en/download" >&2
			exit 1
		}
		npm ci --prefix $scripts --ignore-scripts --no-audit --no-fund --loglevel error
	fi
done
