#!/usr/bin/env bash
# Generate clients of typed languages from docs/openapi.yaml, and read a balance of 2^40 and a nonce of 2^130 with each.
# Needs Java with Maven, Rust, and Node with npm. Swift's types are compared as text, since its compiler is rarely at hand.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD typed=$PWD/clients/generators/typed version=${GENERATOR:-7.25.0}
export PATH=$root/.venv/bin:$PATH NODE_USE_SYSTEM_CA=1 PIP_DISABLE_PIP_VERSION_CHECK=1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

mvn --quiet dependency:get -Dartifact="org.openapitools:openapi-generator-cli:$version" -Dtransitive=false
mvn --quiet dependency:copy -Dartifact="org.openapitools:openapi-generator-cli:$version" -DoutputDirectory="$folder"
for generator in kotlin rust swift6 typescript-fetch; do
  java -jar "openapi-generator-cli-$version.jar" generate -g "$generator" -i "$root/docs/openapi.yaml" -o "$generator" >"$generator.log" 2>&1
done
echo '{"quota": 1099511627776, "unit": "credits", "totalQuota": 0, "resetDate": -1}' >quota.json
echo '{"abi": "0x", "nonce": "1361129467683753853853498429727072845824", "validityTimestamps": "0"}' >transaction.json

mkdir kotlin-read && cp -r kotlin/src/main/kotlin/org/openapitools/client/models "$typed"/{Read.kt,pom.xml} ./*.json kotlin-read
(cd kotlin-read && mvn --quiet compile exec:java)

mkdir -p rust/examples && cp "$typed/read.rs" rust/examples && cp ./*.json rust
(cd rust && cargo run --quiet --example read)

models=swift6/Sources/OpenAPIClient/Models
grep -q "public var quota: Int64$" $models/Quota.swift
grep -q "public var nonce: String$" $models/UnsignedTransaction.swift
! grep -rE "public var \w+: Int\??$" $models
echo "swift: every integer is Int64, nonce is String"

mkdir node && cp -r typescript-fetch node/fetch && cp "$typed/read.ts" ./*.json node && cd node
npm init --yes --silent >npm.log && npm pkg set type=module
npm install --silent --ignore-scripts @hey-api/openapi-ts typescript@5.9 @types/node@20 esbuild
npx --no-install openapi-ts -i "$root/docs/openapi.yaml" -o hey >hey.log
npx --no-install tsc --noEmit --strict --module esnext --moduleResolution bundler --target es2022 --skipLibCheck --types node --allowImportingTsExtensions read.ts
npx --no-install esbuild read.ts --bundle --platform=node --format=esm --outfile=read.mjs --log-level=error && node read.mjs
cd ..

python3 -m venv venv && venv/bin/pip install --quiet openapi-python-client
venv/bin/openapi-python-client generate --path "$root/docs/openapi.yaml" --meta none --output-path generated >python.log
cp "$typed/read.py" . && venv/bin/python read.py
