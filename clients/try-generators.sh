#!/usr/bin/env bash
# Generate clients from docs/openapi.yaml with common generators, and call a running stack with them.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD bin=$PWD/.venv/bin
export PATH=$bin:$PATH NODE_USE_SYSTEM_CA=1 PIP_DISABLE_PIP_VERSION_CHECK=1
stack=$(realpath "${STACK:-var/stack.json}")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

mkdir "$folder/node" && cd "$folder/node"
cp "$root/clients/generators/typescript.ts" .
npm init --yes --silent >npm.log
npm pkg set type=module
npm install --silent --ignore-scripts openapi-typescript openapi-fetch viem typescript@5.9 @types/node@24
npx --yes @redocly/cli@2 lint "$root/docs/openapi.yaml" --format summary
npx --no-install openapi-typescript "$root/docs/openapi.yaml" --output schema.d.ts
npx --no-install tsc --strict --module nodenext --target es2022 --skipLibCheck --types node typescript.ts
node typescript.js "$stack"

mkdir "$folder/python" && cd "$folder/python"
python -m venv venv
venv/bin/pip install --quiet openapi-python-client eth-account
venv/bin/openapi-python-client generate --path "$root/docs/openapi.yaml" --meta none --output-path credit_relay_gateway_client
cp "$root/clients/generators/python.py" calls.py
venv/bin/python calls.py "$stack"
