/** Writes src/schema.ts, which Git ignores, from docs/openapi.yaml. */
import { readFileSync, writeFileSync } from "node:fs";
import openapiTS, { astToString } from "openapi-typescript";

const document = new URL("../../../docs/openapi.yaml", import.meta.url);
const schema = new URL("../src/schema.ts", import.meta.url);

const types = await openapiTS(document, { rootTypes: true, rootTypesNoSchemaPrefix: true, silent: true });
const codes = [...new Set(readFileSync(document, "utf8").match(/(?<=\bcode: )[a-z0-9-]+$/gm))].sort();
// No alias for each response of an error: all have the same body, Problem.
const source = astToString(types).replace(/^export type \w+ = components\['responses'\].*\n/gm, "");
const text = `/** Types of the API, generated from docs/openapi.yaml. */

/** Every documented problem code. */
export type ProblemCode =
${codes.map((code) => `  | "${code}"`).join("\n")};

${source}`;

writeFileSync(schema, text);
