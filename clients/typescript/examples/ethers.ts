/**
 * A wallet in thirty lines with ethers: sign in, send 1 wei from the profile to its controller, wait for a final status.
 *
 *     npm install credit-relay-client-1.0.0.tgz ethers && npm pkg set type=module
 *     node ethers.ts stack.json     (Node 22.18 or newer)
 *
 * `make run` writes `stack.json` to var/stack.json. For another service, write a file with the same members.
 */
import { readFileSync } from "node:fs";
import { connect, ethersSigner } from "credit-relay-client";
import { Wallet } from "ethers";

interface Stack {
  base_url: string;
  rpc_url: string;
  profiles: [{ profile_address: string; controller_private_key: string }];
}

const stack = JSON.parse(readFileSync(process.argv[2] ?? "stack.json", "utf8")) as Stack;
const { profile_address: profile, controller_private_key: key } = stack.profiles[0];
const wallet = new Wallet(key);

const relay = await connect({ url: stack.base_url, signer: ethersSigner(wallet), node: stack.rpc_url });
console.log(`signed in as ${profile}, ${(await relay.quota(profile)).quota} credits`);
const tx = await relay.send(profile, { to: wallet.address, value: 1n });
console.log(`accepted as ${tx.hash}`);
const { status, creditsUsed, creditsAfter } = await tx.wait();
console.log(`${status}, ${creditsUsed} credits used, ${creditsAfter} left`);
