import assert from "node:assert/strict";
import { test } from "node:test";
import { addRelayer, addRelayers, connect, encodeCalls, findExtension } from "../src/index.ts";
import type { ServedChain } from "../src/index.ts";
import { FakeExtension } from "../src/testing.ts";
import { FakeService, HASH, KEY_MANAGER, PAYLOAD, PROFILE, URL, fakeNode, signer } from "./service.ts";

function extensionOf(service: FakeService, refused: readonly string[] = []): FakeExtension {
  const approves = ({ method }: { method: string }) => !refused.includes(method);
  return new FakeExtension({ profiles: [PROFILE], signer, node: fakeNode(), fetch: service.fetch, approves });
}

const servedChain = (chainId: number, path = `/${chainId}`): ServedChain => ({
  chainId,
  name: `Chain ${chainId}`,
  currency: "ETH",
  creditWei: "1",
  creditWeiFrom: 1_767_225_600,
  explorerUrl: "",
  relayerUrl: `${URL}/api/lsp15${path}`,
  state: "accepting",
});
const RELAYER = { name: "Credit relay", url: URL, chainIds: [42] };

test("a page signs in, adds the relayer and relays by the extension", async () => {
  const service = new FakeService();
  const provider = extensionOf(service);
  const relay = await connect({ url: URL, provider, fetch: service.fetch });

  assert.deepEqual(relay.profiles, [PROFILE]);
  assert.deepEqual(await addRelayer(provider, RELAYER), [PROFILE]);
  const tx = await relay.send(PROFILE, { to: KEY_MANAGER, value: 1n });
  assert.equal((await tx.wait()).status, "Success");

  assert.equal(tx.hash, HASH);
  const [{ signature }] = service.sent("/api/auth/verify") as [{ signature: string }];
  assert.match(signature, /^signed \d+$/);
  const [body] = service.sent("/api/lsp15/execute") as [{ address: string; transaction: { abi: string } }];
  assert.deepEqual([body.address, body.transaction.abi], [PROFILE, PAYLOAD]);
});

test("several calls, and calls of the profile itself, go as a transaction to itself", async () => {
  const service = new FakeService();
  const provider = extensionOf(service);
  const relay = await connect({ url: URL, provider, fetch: service.fetch });
  await addRelayer(provider, RELAYER);
  const calls = [{ to: KEY_MANAGER }, { to: PROFILE, value: 2n }];

  await relay.send(PROFILE, calls);
  await relay.send(PROFILE, { payload: "0x7f23690c" });

  const payloads = service
    .sent("/api/lsp15/execute")
    .map(({ transaction }) => (transaction as { abi: string }).abi);
  assert.deepEqual(payloads, [encodeCalls(calls), "0x7f23690c"]);
});

test("a declined request and an existing relayer end with 4001", async () => {
  const provider = extensionOf(new FakeService());
  await addRelayer(provider, RELAYER);

  await assert.rejects(addRelayer(provider, RELAYER), { code: 4001 });
  const declining = extensionOf(new FakeService(), ["eth_requestAccounts"]);
  await assert.rejects(connect({ url: URL, provider: declining }), { code: 4001 });
  assert.deepEqual((await connect({ url: URL, provider: declining, ask: false })).profiles, []);
});

test("each chain that takes calls is added with its own URL, and each keeps its outcome", async () => {
  const service = new FakeService();
  const asked = (params: readonly unknown[]) => (params[0] as { chainIds: number[] }).chainIds[0];
  const provider = new FakeExtension({
    profiles: [PROFILE],
    signer,
    node: fakeNode(),
    fetch: service.fetch,
    approves: ({ method, params }) => method !== "up_addTransactionRelayer" || asked(params) !== 10,
  });
  const [home, op, base, ink] = [servedChain(42, ""), servedChain(10), servedChain(8453), servedChain(57073)];
  ink.state = "paused";

  const outcomes = await addRelayers(provider, { name: "Relay", chains: [home, op, base, ink] });

  assert.deepEqual(
    outcomes.map(({ chain, outcome }) => [chain.chainId, outcome]),
    [
      [42, "added"],
      [10, "refused"],
      [8453, "added"],
      [57073, "not-asked"],
    ],
  );
  assert.deepEqual(outcomes[0], { chain: home, outcome: "added", profiles: [PROFILE] });
  assert.deepEqual(provider.relayers, [
    { name: "Relay", apiUrl: `${URL}/api/lsp15/`, chainIds: [42] },
    { name: "Relay (Chain 8453)", apiUrl: `${URL}/api/lsp15/8453/`, chainIds: [8453] },
  ]);
  // The extension is on chain 42, so its calls go to the relayer of that chain, which was not added last.
  const relay = await connect({ url: URL, provider, fetch: service.fetch });
  await relay.send(PROFILE, { to: KEY_MANAGER, value: 1n });
  assert.equal(service.sent("/api/lsp15/execute").length, 1);
});

test("errors have the codes of EIP-1193", async () => {
  const provider = extensionOf(new FakeService());
  const refusals = [
    [{ method: "personal_sign", params: ["0x00", PROFILE] }, 4100],
    [{ method: "eth_signTypedData_v4", params: [] }, 4200],
    [{ method: "up_addTransactionRelayer", params: [{ name: "No address" }] }, -32602],
    [{ method: "wallet_switchEthereumChain", params: [{ chainId: "0x1" }] }, 4902],
  ] as const;
  for (const [request, code] of refusals) await assert.rejects(provider.request(request), { code });
  assert.equal(
    await provider.request({ method: "wallet_switchEthereumChain", params: [{ chainId: "0x2a" }] }),
    null,
  );
});

test("a page finds it through EIP-6963 and window.lukso", async () => {
  const page = new EventTarget();
  Object.assign(globalThis, { window: page });
  const provider = extensionOf(new FakeService());

  assert.equal(await findExtension(0), undefined);
  provider.install(page as Window);
  assert.equal(await findExtension(0), provider);
  assert.equal((page as { lukso?: unknown }).lukso, provider);
});
