#!/bin/sh
# Runs every Fuzz function of the module in this folder for the given time each, one after another.
set -eu
each=${1:-30s}
for package in $(go list ./...); do
	for target in $(go test -list '^Fuzz' "$package" | grep '^Fuzz' || true); do
		echo "== $package $target"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$each" "$package"
	done
done
