/**
 * A dApp whose sponsor pays: the first calls of a new profile by its policy, later ones with a voucher of its server.
 *
 *     npm install credit-relay-client-1.0.0.tgz viem && npm pkg set type=module
 *     node sponsored.ts stack.json http://127.0.0.1:8090     (Node 22.18 or newer; the address of the voucher server)
 *
 * `make run` writes `stack.json` to var/stack.json, with a sponsor. docs/sponsors.md has the server.
 */
import { readFileSync } from "node:fs";
import { RelayProblem, connect, viemSigner } from "credit-relay-client";
import type { Hex } from "credit-relay-client";
import { privateKeyToAccount } from "viem/accounts";

interface Stack {
  base_url: string;
  profiles: [{ profile_address: string; controller_private_key: Hex }];
  sponsor: { name: string };
}

const [, , file = "stack.json", server = "http://127.0.0.1:8090"] = process.argv;
const stack = JSON.parse(readFileSync(file, "utf8")) as Stack;
const { profile_address: profile, controller_private_key: key } = stack.profiles[0];
const account = privateKeyToAccount(key);
const sponsor = stack.sponsor.name;

const relay = await connect({ url: stack.base_url, signer: viemSigner(account) });
const call = { to: account.address, value: 1n };
const tx = await relay.send(profile, call, { sponsor }).catch(async (error: unknown) => {
  if (!(error instanceof RelayProblem && error.code === "sponsor-limit-user-calls")) throw error;
  const sponsorVoucher = await (await fetch(`${server}/?profile=${profile}`)).text();
  return relay.send(profile, call, { sponsor, sponsorVoucher });
});
const { status, creditsUsed, paidBy } = await tx.wait();
console.log(`${status}, ${creditsUsed} credits used, paid by ${paidBy}`);
