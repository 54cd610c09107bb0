#!/usr/bin/env bash
# Tries a deployment: deploy/try.sh <file with SERVICE_TOKEN> <gateway> <other gateway>. CORE_URL
# names a core. Creates a workspace, a connection and an installation, sends a message through one
# gateway and fails unless the other gateway returns it.
set -euo pipefail
secrets=$(realpath "$1") sender=$2 reader=$3
cd "$(dirname "$0")/.."

administer() { node --env-file="$secrets" admin/main.ts "$@" --json; }
workspace=$(administer workspaces create --name Shop | grep -o 'ws_[a-z0-9]*')
connection=$(administer connections create --workspace "$workspace" --name Website | grep -o 'con_[a-z0-9]*')
site_key=$(administer installations create --connection "$connection" --origin https://shop.example | grep -o 'pk_[a-z0-9]*')
echo "workspace $workspace, site key $site_key"

api=/api/integrations/v1/widget
page=(-sS --fail-with-body -H 'Origin: https://shop.example' -H 'X-Service-Widget-Version: 1.0' -H 'Content-Type: application/json')
session=$(curl "${page[@]}" "$sender$api/sessions" -H "Idempotency-Key: session-$workspace" \
  -d '{"publicSiteKey":"'"$site_key"'","clientInstanceId":"try"}')
grant=$(echo "$session" | grep -o '"accessGrant":"[^"]*' | cut -d '"' -f 4)
authorized=(-H "Authorization: Bearer $grant")
curl "${page[@]}" "${authorized[@]}" "$sender$api/messages" -H 'Idempotency-Key: message-1' \
  -d '{"clientOperationId":"message-1","body":"Is anybody there?","contentType":"text"}' > /dev/null
curl "${page[@]}" "${authorized[@]}" "$reader$api/messages?afterSequence=0" | grep -o '"body":"Is anybody there?"'
