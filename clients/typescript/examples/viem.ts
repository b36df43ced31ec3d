/**
 * A wallet in thirty lines with viem: sign in, send 1 wei from the profile to its controller, wait for a final status.
 *
 *     npm install credit-relay-client-1.0.0.tgz viem && npm pkg set type=module
 *     node viem.ts stack.json     (Node 22.18 or newer)
 *
 * `make run` writes `stack.json` to var/stack.json. For another service, write a file with the same members.
 */
import { readFileSync } from "node:fs";
import { connect, viemSigner } from "credit-relay-client";
import type { Hex } from "credit-relay-client";
import { privateKeyToAccount } from "viem/accounts";

interface Stack {
  base_url: string;
  rpc_url: string;
  profiles: [{ profile_address: string; controller_private_key: Hex }];
}

const stack = JSON.parse(readFileSync(process.argv[2] ?? "stack.json", "utf8")) as Stack;
const { profile_address: profile, controller_private_key: key } = stack.profiles[0];
const account = privateKeyToAccount(key);

const relay = await connect({ url: stack.base_url, signer: viemSigner(account), node: stack.rpc_url });
console.log(`signed in as ${profile}, ${(await relay.quota(profile)).quota} credits`);
const tx = await relay.send(profile, { to: account.address, value: 1n });
console.log(`accepted as ${tx.hash}`);
const { status, creditsUsed, creditsAfter } = await tx.wait();
console.log(`${status}, ${creditsUsed} credits used, ${creditsAfter} left`);
