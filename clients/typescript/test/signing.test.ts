import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Interface, Wallet } from "ethers";
import { encodeFunctionData, parseAbi } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { keySigner } from "../browser/extension.ts";
import { encodeCalls, ethersSigner, quotaMessage, relayCallHash, viemSigner } from "../src/index.ts";
import type { Hex } from "../src/index.ts";

interface Vectors {
  private_key: Hex;
  controller: string;
  profile: string;
  key_manager: string;
  payload: string;
  lsp25: { chain_id: number; nonce: string; validity_timestamps: string; hash: Hex; signature: string }[];
  quota: { timestamp: number; personal_sign_of_inner: { signature: string } };
}

const file = new URL("../../../docs/examples/vectors.json", import.meta.url);
const vectors = JSON.parse(readFileSync(file, "utf8")) as Vectors;
const signers = {
  viem: viemSigner(privateKeyToAccount(vectors.private_key)),
  ethers: ethersSigner(new Wallet(vectors.private_key)),
  "a plain key": keySigner(vectors.private_key),
};
const ABI = [
  "function execute(uint256 operation, address to, uint256 value, bytes data)",
  "function executeBatch(uint256[] operations, address[] to, uint256[] values, bytes[] data)",
] as const;

for (const [name, signer] of Object.entries(signers)) {
  test(`with ${name}, hashes and signatures are those of the vectors`, async () => {
    assert.equal(signer.address.toLowerCase(), vectors.controller.toLowerCase());
    for (const vector of vectors.lsp25) {
      const hash = relayCallHash({
        chainId: BigInt(vector.chain_id),
        keyManager: vectors.key_manager,
        nonce: BigInt(vector.nonce),
        payload: vectors.payload,
        validityTimestamps: BigInt(vector.validity_timestamps),
      });
      assert.equal(hash, vector.hash);
      assert.equal(await signer.signHash(hash), vector.signature);
    }
    const message = quotaMessage(vectors.profile, vectors.quota.timestamp);
    assert.equal(await signer.signMessage(message), vectors.quota.personal_sign_of_inner.signature);
    const text = "Größe: 1 LYX";
    assert.equal(await signer.signMessage(text), await new Wallet(vectors.private_key).signMessage(text));
  });
}

test("calls are encoded as viem and ethers encode them", () => {
  const calls = [
    { to: vectors.profile as Hex, value: 5n, data: "0x" as Hex },
    { to: vectors.key_manager as Hex, value: 0n, data: `0x${"12".repeat(33)}` as Hex },
    { to: vectors.profile as Hex, value: 2n ** 255n, data: `0x${"34".repeat(64)}` as Hex },
  ];
  for (const call of calls) {
    const args = [0n, call.to, call.value, call.data] as const;
    const expected = encodeFunctionData({ abi: parseAbi(ABI), functionName: "execute", args });
    assert.equal(encodeCalls(call), expected);
    assert.equal(encodeCalls([call]), expected);
  }
  const columns = [
    calls.map(() => 0n),
    ...(["to", "value", "data"] as const).map((name) => calls.map((call) => call[name])),
  ];
  assert.equal(encodeCalls(calls), new Interface(ABI).encodeFunctionData("executeBatch", columns));
});

test("invalid addresses, hex and 256-bit numbers are rejected", () => {
  const to = vectors.profile;
  assert.throws(() => encodeCalls({ to: "alice.lyx" }), /is not an address/);
  assert.throws(() => encodeCalls({ to, data: "0x123" }), /is not hex/);
  assert.throws(() => encodeCalls({ to, value: -1n }), /256 bits/);
  assert.throws(() => encodeCalls([]), /no call/);
});

const addresses = JSON.parse(
  readFileSync(new URL("../../../tests/clients/addresses.json", import.meta.url), "utf8"),
) as { address: string; code: string | null }[];

for (const { address, code } of addresses) {
  test(`${JSON.stringify(address)} is ${code === null ? "an address" : "refused"}`, () => {
    const encode = () => encodeCalls([{ to: vectors.profile }, { to: address }]);
    if (code === null) assert.ok(encode());
    else
      assert.throws(
        encode,
        code === "address-checksum"
          ? /^TypeError: calls\[1\]\.to: .*checksum/
          : /^TypeError: calls\[1\]\.to: /,
      );
  });
}

test("the member that cannot be encoded is named", () => {
  const to = vectors.profile;
  const refused: [object, RegExp][] = [
    [{}, /call\.to: nothing is not an address/],
    [{ to, value: 1 }, /call\.value: 1 is not a bigint/],
    [{ to, value: -1n }, /call\.value: -1 does not fit/],
    [{ to, value: 2n ** 256n }, /call\.value: \d+ does not fit/],
    [{ to, data: "12" }, /call\.data: 12 is not hex/],
    [{ to, data: "0x123" }, /call\.data: 0x123 is not hex/],
  ];
  for (const [call, expected] of refused) assert.throws(() => encodeCalls(call as never), expected);
});
