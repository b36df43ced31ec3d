// A sponsor's server: signs a voucher for each call that a profile of the dApp may make at the sponsor's cost.
//     npm install viem
//     SPONSOR=my-dapp POLICY=first-calls CHAIN_ID=42 VOUCHER_KEY=0x… node voucher_server.ts     (Node 22.18 or newer)
import { randomBytes } from "node:crypto";
import { createServer } from "node:http";
import { privateKeyToAccount } from "viem/accounts";
import type { Address, Hex } from "viem";

const { SPONSOR = "", POLICY = "", CHAIN_ID = "42", VOUCHER_KEY = "", PORT = "8090" } = process.env;
const signer = privateKeyToAccount(VOUCHER_KEY as Hex);
const names = ["sponsor", "policy", "profile", "id", "deadline", "maximumCredits"];
const types = ["string", "string", "address", "bytes32", "uint64", "uint64"];
const Voucher = names.map((name, place) => ({ name, type: types[place] ?? "" }));
const domain = { name: "Relay sponsor", version: "1", chainId: Number(CHAIN_ID) };

async function voucherFor(profile: Address): Promise<string> {
  const id: Hex = `0x${randomBytes(32).toString("hex")}`;
  const deadline = Math.floor(Date.now() / 1000) + 300;
  const voucher = { sponsor: SPONSOR, policy: POLICY, profile, id, deadline, maximumCredits: 1000 };
  const typed = { domain, types: { Voucher }, primaryType: "Voucher", message: voucher } as const;
  const signature = await signer.signTypedData(typed);
  return Buffer.from(JSON.stringify({ ...voucher, signature })).toString("base64url");
}

createServer((request, response) => {
  const profile = new URL(request.url ?? "/", "http://localhost").searchParams.get("profile") as Address;
  // Decide here who gets a voucher: whoever solved your captcha, holds your invitation, bought your ticket.
  const refuse = () => response.writeHead(400).end("Give ?profile=0x…");
  voucherFor(profile).then((voucher) => response.end(voucher), refuse);
}).listen(Number(PORT), () => console.log(`vouchers signed by ${signer.address}`));
