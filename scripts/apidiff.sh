#!/bin/sh
# Compares the exported Go API with that of a tag or commit, the last tag by default, and prints what
# is not compatible. From v1.0.0 on, such a change fails unless the next version is a major one.
set -eu
cd "$(dirname "$0")/.."
base=${1:-$(git describe --tags --abbrev=0 2>/dev/null || true)}
if [ -z "$base" ]; then
	echo "there is no tag yet, so nothing to compare with: name a commit, make apidiff BASE=…" >&2
	exit 0
fi
old=$(mktemp -d)
trap 'git worktree remove --force "$old"' EXIT
git worktree add --quiet --detach --force "$old" "$base"
tools=$PWD/tools/go.mod
apidiff() { # it tells of every internal package that it ignores
	go tool -modfile="$tools" apidiff -m "$@" 2>"$old/log" || {
		cat "$old/log" >&2
		exit 1
	}
}
(cd "$old" && apidiff -w "$old/api" "$(go list -m)")
changes=$(apidiff -incompatible "$old/api" "$(go list -m)")
if [ -z "$changes" ]; then
	echo "the API is compatible with $base"
	exit 0
fi
echo "incompatible with $base:"
echo "$changes"
case $base in
v0.* | [!v]*) ;;
*) exit 1 ;;
esac
