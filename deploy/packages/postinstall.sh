#!/bin/sh
# Lets systemd read the unit. After an upgrade a gateway that runs becomes the new one, which has the same counters;
# whether it runs at all is for the administrator to say.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	systemctl try-restart ratelimit
fi
