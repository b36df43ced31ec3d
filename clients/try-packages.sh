#!/usr/bin/env bash
# Build the packages into var/packages, install each into an empty folder, and use it there like its users.
# With STACK=var/stack.json of a running stack, the example wallets relay a call.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD bin=$PWD/.venv/bin
export PATH=$bin:$PATH NODE_USE_SYSTEM_CA=1 PIP_DISABLE_PIP_VERSION_CHECK=1
stack=${STACK:+$(realpath "$STACK")}
packages=$root/var/packages
rm -rf "$packages" && mkdir -p "$packages"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

python -m devstack npm run build
python -m devstack npm pack --pack-destination "$packages"
mkdir "$folder/source"
cp -r clients/python/{pyproject.toml,README.md,src} "$folder/source" # building leaves files behind
python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir "$packages" "$folder/source"
mkdir "$folder/double"
cp -r tools/stripe_double/{pyproject.toml,README.md,stripe_double} "$folder/double"
python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir "$packages" "$folder/double"
ls "$packages"

mkdir "$folder/node" && cd "$folder/node"
cp "$root"/clients/typescript/examples/*.ts .
npm init --yes --silent >npm.log
npm pkg set type=module
npm install --silent --ignore-scripts "$packages"/*.tgz viem ethers typescript@5.9 @types/node@24
npx --no-install tsc --noEmit --strict --module nodenext --target es2022 --skipLibCheck --types node ./*.ts
node -e 'import("credit-relay-client/testing").then(({ FakeExtension }) => console.log(`tarball: ${FakeExtension.name}`))'

mkdir "$folder/python" && cd "$folder/python"
cp "$root"/clients/python/examples/*.py .
python -m venv venv
venv/bin/pip install --quiet "$packages"/*.whl
venv/bin/stripe-double --help | head -n 1
"$bin/mypy" --strict --python-executable venv/bin/python --cache-dir "$folder/mypy" ./*.py
venv/bin/python -c 'import credit_relay_client as client; print(f"wheel: {client.connect.__name__}")'

if [ -n "$stack" ]; then
  for wallet in viem ethers; do (cd "$folder/node" && node "$wallet.ts" "$stack"); done
  venv/bin/python wallet.py "$stack"
fi
