/** Writes src/schema.ts from docs/openapi.yaml; with --check, fails if that would change it. */
import { readFileSync, writeFileSync } from "node:fs";
import openapiTS, { astToString } from "openapi-typescript";

const document = new URL("../../../docs/openapi.yaml", import.meta.url);
const schema = new URL("../src/schema.ts", import.meta.url);

const types = await openapiTS(document, { rootTypes: true, rootTypesNoSchemaPrefix: true, silent: true });
const codes = [...new Set(readFileSync(document, "utf8").match(/(?<=\bcode: )[a-z0-9-]+$/gm))].sort();
const text = `/** Types of the API, generated from docs/openapi.yaml by \`make schema\`. */

/** Every code that a documented refusal can have. */
export type ProblemCode =
${codes.map((code) => `  | "${code}"`).join("\n")};

${astToString(types)}`;

if (!process.argv.includes("--check")) writeFileSync(schema, text);
else if (readFileSync(schema, "utf8") !== text) throw new Error("src/schema.ts differs from docs/openapi.yaml: run make schema.");
