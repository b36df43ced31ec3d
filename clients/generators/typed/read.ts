/** Reads with typescript-fetch of openapi-generator, and with the types of hey-api. */
import { readFileSync } from "node:fs";
import { QuotaFromJSON } from "./fetch/models/Quota.ts";
import { UnsignedTransactionFromJSON } from "./fetch/models/UnsignedTransaction.ts";
import type { Quota, UnsignedTransaction } from "./hey/types.gen.ts";

const read = (name: string): unknown => JSON.parse(readFileSync(`${name}.json`, "utf8"));
const fetched = {
  quota: QuotaFromJSON(read("quota")),
  transaction: UnsignedTransactionFromJSON(read("transaction")),
};
const hey = { quota: read("quota") as Quota, transaction: read("transaction") as UnsignedTransaction };
for (const [name, { quota, transaction }] of Object.entries({
  "typescript-fetch": fetched,
  "hey-api": hey,
})) {
  const nonce: string = transaction.nonce;
  if (quota.quota !== 2 ** 40 || BigInt(nonce) !== 2n ** 130n) throw new Error(name);
  console.log(`${name}: balance ${quota.quota}, nonce ${nonce}`);
}
