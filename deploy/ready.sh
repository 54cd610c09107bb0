#!/usr/bin/env bash
# Health check of the images: deploy/ready.sh PORT. Succeeds if /readyz answers 200 on this port. It
# needs no tool but bash, because a Node process every few seconds costs more than an idle part.
set -euo pipefail
exec 3<>"/dev/tcp/127.0.0.1/$1"
printf 'GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' >&3
read -r -t 3 _ status _ <&3
[ "$status" = 200 ]
