/**
 * Bundles the client for the service's pages; with --check, fails if the file would change.
 * With --extension, bundles the stand-in for the browser extension instead, which is not kept.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const { entry, file, format } = process.argv.includes("--extension")
  ? { entry: "clients/typescript/browser/extension.ts", file: "tools/devstack/extension.js", format: "iife" }
  : { entry: "clients/typescript/src/index.ts", file: "portal/static/portal/relay-client.js", format: "esm" };

const { outputFiles } = await build({
  absWorkingDir: root,
  entryPoints: [entry],
  bundle: true,
  format,
  target: "es2022",
  charset: "utf8",
  legalComments: "inline",
  banner: { js: `// Made from ${entry} by \`python -m devstack npm run bundle\`; change it there.` },
  write: false,
});
const text = outputFiles[0].text;
if (!process.argv.includes("--check")) writeFileSync(root + file, text);
else if (readFileSync(root + file, "utf8") !== text)
  throw new Error(`${file} differs from its sources: run python -m devstack npm run bundle.`);
