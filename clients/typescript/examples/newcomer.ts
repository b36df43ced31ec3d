/**
 * A newcomer in thirty lines: a new key, a profile for it, and its first call. The sponsor pays for both.
 *
 *     npm install credit-relay-client-1.0.0.tgz viem && npm pkg set type=module
 *     node newcomer.ts stack.json     (Node 22.18 or newer)
 *
 * `make run` writes `stack.json` to var/stack.json, with a sponsor and its API key. Only a server may have the API key;
 * clients/newcomer is a page with its server.
 */
import { readFileSync } from "node:fs";
import { RelayProblem, connect, viemSigner } from "credit-relay-client";
import { createProfile } from "credit-relay-client/server";
import { encodeFunctionData, keccak256, parseAbi, toHex } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";

interface Stack {
  base_url: string;
  sponsor: { name: string; create_key: string };
}

const { base_url: url, sponsor } = JSON.parse(readFileSync(process.argv[2] ?? "stack.json", "utf8")) as Stack;
const account = privateKeyToAccount(generatePrivateKey());
const abi = parseAbi(["function setData(bytes32 key, bytes value)"]);
const args = [keccak256(toHex("first post")), toHex("Hello, LUKSO!")] as const;

try {
  const profile = await createProfile({ url, apiKey: sponsor.create_key, controllers: [account.address] });
  console.log(`${profile.status}, the profile is ${profile.universalProfileAddress}`);
  const relay = await connect({ url, signer: viemSigner(account) });
  const payload = encodeFunctionData({ abi, functionName: "setData", args });
  const tx = await relay.send(profile.universalProfileAddress, { payload }, { sponsor: sponsor.name });
  const { status, creditsUsed, paidBy } = await tx.wait();
  console.log(`${status}, ${creditsUsed} credits used, paid by ${paidBy}`);
} catch (error) {
  if (!(error instanceof RelayProblem)) throw error;
  console.log(`refused, ${error.message}`);
  process.exitCode = 1;
}
