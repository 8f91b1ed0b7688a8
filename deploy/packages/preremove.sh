#!/bin/sh
# Stops the gateway before the package goes away: dpkg then says "remove", and rpm that 0 packages are left.
set -e
if [ -d /run/systemd/system ] && { [ "$1" = remove ] || [ "$1" = 0 ]; }; then
	systemctl disable --now ratelimit
fi
