#!/usr/bin/env bash
# Generates the page's types of the API from the document that the server serves.
source "$(dirname "$0")/lib.sh"

node_is || die "needs Node.js 20.19 or newer with npm"
page_packages
document=$(mktemp)
trap 'rm -f "$document"' EXIT
go run ./internal/openapi >"$document"
cd web
npx --no-install openapi-typescript "$document" -o src/gen/api.ts
