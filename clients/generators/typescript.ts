/** One call of each kind by openapi-fetch, with the types of openapi-typescript. */
import { readFileSync } from "node:fs";
import { privateKeyToAccount } from "viem/accounts";
import createClient from "openapi-fetch";
import type { paths } from "./schema.js";

const stack = JSON.parse(readFileSync(process.argv[2] ?? "", "utf8")) as {
  base_url: string;
  profiles: [{ profile_address: string; controller_private_key: `0x${string}` }];
};
const { profile_address: address, controller_private_key: key } = stack.profiles[0];
const client = createClient<paths>({ baseUrl: stack.base_url });

const challenge = await client.POST("/api/auth/nonce", { body: { address } });
if (!challenge.data) throw new Error(challenge.error.code);
const { nonce, message } = challenge.data;
const signature = await privateKeyToAccount(key).signMessage({ message });
const tokens = await client.POST("/api/auth/verify", { body: { nonce, signature } });
if (!tokens.data) throw new Error(tokens.error.code);
const headers = { Authorization: `Bearer ${tokens.data.access}` };
const page = await client.GET("/api/user/transactions", { headers, params: { query: { limit: 1 } } });
if (!page.data) throw new Error(page.error.code);
// Neither currency nor cancelAtEndOfBillingPeriod has to be there.
const upsert = await client.POST("/api/payments/upsertSubscription", {
  headers,
  body: { subscriptionCost: 1000 },
});
console.log(`openapi-fetch: ${page.data.results.length} transaction, ${upsert.error?.code ?? "subscribed"}`);
