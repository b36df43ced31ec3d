import assert from "node:assert/strict";
import { test } from "node:test";
import { Interface, Wallet } from "ethers";
import { connect, ethersSigner, RelayProblem, relayCallHash } from "../src/index.ts";
import { FakeService, KEY_MANAGER, PROFILE, URL, problem, signer } from "./service.ts";

const BUY = "/api/payments/purchaseCredits";
const TOP_UP = "/api/payments/topUp";
const PAID = {
  purchaseId: "0d9f7a54-5d1e-4f0c-9a35-1c2f6c6f7f0e",
  status: "paid",
  pack: "usd-10",
  credits: 10_000,
};

function relayOf(service: FakeService) {
  return connect({ url: URL, signer, fetch: service.fetch });
}

/** What was sent to a path: method, body and idempotency key. */
function sent(service: FakeService, path: string) {
  const requests = service.bodies.map(([requested, body], number) => {
    const key = service.headers[number]?.["idempotency-key"];
    return { requested, request: [service.methods[number], body, key] };
  });
  return requests.filter(({ requested }) => requested === path).map(({ request }) => request);
}

test("a purchase is repeated with its key while the service is busy", async () => {
  const busy = () => problem(503, "busy");
  const service = new FakeService().next(BUY, busy, busy, () => [200, PAID]);
  const relay = await relayOf(service);

  assert.deepEqual(await relay.purchaseCredits(PROFILE, { pack: "usd-10" }), PAID);

  const [first, ...repeats] = sent(service, BUY);
  assert.deepEqual(repeats, [first, first]);
  assert.deepEqual(first?.slice(0, 2), ["POST", { pack: "usd-10" }]);
  assert.match(String(first?.[2]), /^[0-9a-f-]{36}$/);
});

test("every purchase has a key of its own, unless the caller continues one", async () => {
  const confirm = () => problem(402, "authentication-required", { clientSecret: "pi_1_secret_2" });
  const service = new FakeService().next(
    BUY,
    confirm,
    () => [200, PAID],
    () => [200, PAID],
    () => [200, PAID],
  );
  const relay = await relayOf(service);
  const amount = { amount: 2550, currency: "eur" };

  await assert.rejects(relay.purchaseCredits(PROFILE, amount, "mine"), (error: unknown) => {
    assert.ok(error instanceof RelayProblem);
    assert.deepEqual(
      [error.code, error.members],
      ["authentication-required", { clientSecret: "pi_1_secret_2" }],
    );
    return true;
  });
  assert.deepEqual(await relay.purchaseCredits(PROFILE, amount, "mine"), PAID);
  for (let number = 0; number < 2; number += 1) await relay.purchaseCredits(PROFILE, amount);

  const keys = sent(service, BUY).map(([, , key]) => key);
  assert.deepEqual(keys.slice(0, 2), ["mine", "mine"]);
  assert.equal(new Set(keys).size, 3);
});

test("packs and top-up are read, and top-up is set", async () => {
  const packs = { packs: [{ pack: "usd-10", cost: 1000 }], currencies: [] };
  const terms = { enabled: true, threshold: 500, pack: "usd-10", monthlyLimit: 3000, consent: "I agree." };
  const service = new FakeService()
    .next("/api/payments/packs", () => [200, packs])
    .next(
      TOP_UP,
      () => [200, { status: "off" }],
      (body) => [200, { ...body, status: "on" }],
    );
  const relay = await relayOf(service);

  assert.deepEqual(await relay.packs(PROFILE), packs);
  assert.equal((await relay.topUp(PROFILE)).status, "off");
  assert.equal((await relay.setTopUp(PROFILE, terms)).status, "on");

  assert.deepEqual(sent(service, TOP_UP), [
    ["GET", {}, undefined],
    ["PUT", terms, undefined],
  ]);
});

test("a copy is requested with the data of the first deployment, if they are given", async () => {
  const path = "/api/relay/copyProfile";
  const made = { universalProfileAddress: PROFILE, chainId: 8453, transactionHash: null };
  const first = { salt: `0x${"12".repeat(32)}`, postDeploymentCallData: "0x00" };
  const service = new FakeService().next(
    path,
    () => [200, made],
    () => [200, made],
  );
  const relay = await relayOf(service);

  assert.deepEqual(await relay.copyProfile(PROFILE, 8453), made);
  await relay.copyProfile(PROFILE, 8453, first);

  assert.deepEqual(
    sent(service, path).map(([, body]) => body),
    [{ chainId: 8453 }, { chainId: 8453, firstDeployment: first }],
  );
});

test("a removal that the user has seen is signed and sent with the copy", async () => {
  const path = "/api/relay/copyProfile";
  const made = { universalProfileAddress: PROFILE, chainId: 8453, transactionHash: null };
  const removal = [
    { address: KEY_MANAGER, permissions: `0x${"00".repeat(32)}` },
    { address: PROFILE, permissions: `0x${"800".padStart(64, "0")}` },
  ];
  const needed = problem(409, "copy-needs-removal", { removal, keyManagerAddress: KEY_MANAGER });
  const service = new FakeService().next(
    path,
    () => needed,
    () => needed,
    () => [200, made],
  );
  const wallet = ethersSigner(Wallet.createRandom());
  const relay = await connect({ url: URL, signer: wallet, fetch: service.fetch });

  await assert.rejects(relay.copyProfile(PROFILE, 8453), { code: "copy-needs-removal" });
  assert.deepEqual(await relay.copyProfile(PROFILE, 8453, undefined, removal), made);

  const bodies = sent(service, path).map(([, body]) => body as Record<string, string>);
  const payload = new Interface(["function setDataBatch(bytes32[],bytes[])"]).encodeFunctionData(
    "setDataBatch",
    [
      removal.map(({ address }) => `0x4b80742de2bf82acb3630000${address.slice(2)}`),
      ["0x", removal[1]?.permissions],
    ],
  );
  const hash = relayCallHash({ chainId: 8453n, keyManager: KEY_MANAGER, nonce: 0n, payload });
  assert.equal(bodies[2]?.["removalSignature"], await wallet.signHash(hash));
});
