import assert from "node:assert/strict";
import { test } from "node:test";
import { connect, RelayProblem, ServiceUnreachable } from "../src/index.ts";
import type { Relay, TokenStorage } from "../src/index.ts";
import {
  FakeService,
  HASH,
  KEY_MANAGER,
  PAYLOAD,
  PROFILE,
  QUOTE,
  URL,
  fakeNode,
  problem,
  signer,
} from "./service.ts";

const CALL = { to: KEY_MANAGER, value: 1n };
const EXECUTE = "/api/relay/execute";

function relayOf(service: FakeService, options: object = {}): Promise<Relay> {
  return connect({ url: URL, signer, node: fakeNode(), fetch: service.fetch, ...options });
}

function nonces(service: FakeService): unknown[] {
  return service.sent(EXECUTE).map(({ transaction }) => (transaction as { nonce: string }).nonce);
}

test("a call is signed, submitted and followed", async () => {
  const service = new FakeService();
  const relay = await relayOf(service);

  const tx = await relay.send(PROFILE, CALL);
  const { status, creditsUsed } = await tx.wait();

  assert.deepEqual([tx.hash, status, creditsUsed], [HASH, "Success", 7]);
  const [body] = service.sent(EXECUTE) as [
    { keyManagerAddress: string; transaction: Record<string, string> },
  ];
  assert.equal(body.keyManagerAddress, KEY_MANAGER);
  assert.equal(body.transaction["abi"], PAYLOAD);
  assert.equal(body.transaction["nonce"], "4");
  const left = Number(body.transaction["validityTimestamps"]) - Date.now() / 1000;
  assert.ok(left > 3500 && left <= 3600);
});

test("while the service is busy or unreachable, exactly the same call is retried", async () => {
  const away = () => {
    throw new TypeError("fetch failed");
  };
  const early = () => problem(422, "relay-call-not-yet-valid");
  const service = new FakeService().next(EXECUTE, () => problem(503, "chain-unavailable"), early, away);
  const relay = await relayOf(service);

  assert.equal((await relay.send(PROFILE, CALL)).hash, HASH);

  const bodies = service.sent(EXECUTE);
  assert.equal(bodies.length, 4);
  for (const body of bodies) assert.deepEqual(body, bodies[0]);
});

test("retries end after a timeout, and other errors are not retried", async () => {
  const busy = () => problem(503, "busy");
  const service = new FakeService().next(
    EXECUTE,
    () => problem(402, "insufficient-credits", { available: 3 }),
    busy,
  );
  const impatient = await relayOf(service, { patienceSeconds: -1 });

  await assert.rejects(impatient.send(PROFILE, CALL), (error: RelayProblem) => {
    assert.deepEqual(
      [error.code, error.status, error.members["available"]],
      ["insufficient-credits", 402, 3],
    );
    return error instanceof RelayProblem;
  });
  await assert.rejects(impatient.send(PROFILE, CALL), { name: "RelayProblem", retryAfter: 0.01 });
  service.next(EXECUTE, () => [502, {}]);
  await assert.rejects(impatient.send(PROFILE, CALL), ServiceUnreachable);
  assert.equal(service.sent(EXECUTE).length, 3);
});

test("a URL that never responded is given up after seconds", async (context) => {
  context.mock.timers.enable({ apis: ["Date", "setTimeout"] });
  const wrong = () => Promise.resolve(new Response("{}", { status: 404 }));
  const relay = await connect({ url: URL, signer, fetch: wrong });
  let outcome: unknown;
  relay.signIn(PROFILE).catch((error: unknown) => (outcome = error));

  for (let ms = 0; ms < 5000 && outcome === undefined; ms += 50) {
    for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
    context.mock.timers.tick(50);
  }

  assert.ok(outcome instanceof ServiceUnreachable);
  assert.match(outcome.message, /responded 404 to .*\. Is it the URL of the service\?/);
});

test("calls of a channel are prepared one at a time", async () => {
  const service = new FakeService();
  const relay = await relayOf(service);

  await Promise.all([relay.send(PROFILE, CALL), relay.send(PROFILE, CALL), relay.send(PROFILE, CALL)]);

  assert.deepEqual(nonces(service), ["4", "5", "6"]);
});

test("a call with a used nonce or an expired quote is prepared again, once", async () => {
  const service = new FakeService().next(EXECUTE, () => problem(409, "quote-expired"));

  await (await relayOf(service)).send(PROFILE, CALL);

  assert.deepEqual(nonces(service), ["4", "5"]);
  assert.equal(service.headers.at(-1)?.["relay-quote"], QUOTE.id);
  const both = [() => problem(409, "relay-nonce-taken"), () => problem(409, "relay-nonce-gap")];
  await assert.rejects((await relayOf(service.next(EXECUTE, ...both))).send(PROFILE, CALL), {
    code: "relay-nonce-gap",
  });
});

for (const quote of [QUOTE, null]) {
  test(`a sponsor and its voucher go with a call ${quote ? "with" : "without"} a quote, and only where the sponsor pays`, async () => {
    const paid = {
      keyManagerAddress: KEY_MANAGER,
      chainId: 42,
      refusals: [],
      quote,
      transaction: { nonce: 4 },
    };
    const service = new FakeService().next(
      "/api/relay/prepare",
      () => [200, { ...paid, sponsor: { name: "my-dapp" } }],
      () => [200, { ...paid, sponsor: null }],
    );
    const relay = await relayOf(service);
    const options = {
      sponsor: "my-dapp",
      sponsorFallback: "user",
      sponsorVoucher: `voucher-${Math.random()}`,
    } as const;

    await relay.send(PROFILE, CALL, options);
    const {
      "relay-quote": bound,
      "relay-sponsor": named,
      "relay-sponsor-voucher": voucher,
    } = service.headers.at(-1) ?? {};
    assert.deepEqual([bound, named, voucher], [quote?.id, "my-dapp", options.sponsorVoucher]);
    await relay.send(PROFILE, CALL, options);
    assert.equal(service.headers.at(-1)?.["relay-sponsor-voucher"], undefined);

    const asked = service
      .sent("/api/relay/prepare")
      .map(({ sponsor, sponsorFallback, sponsorVoucher }) => ({ sponsor, sponsorFallback, sponsorVoucher }));
    assert.deepEqual(asked, [options, options]);
  });
}

test("cost and reasons for rejection are known before anything is signed", async () => {
  const [, refusal] = problem(402, "insufficient-credits");
  const refusing = () => [200, { expectedCost: 7, highestCost: 9, refusals: [refusal] }] as never;
  const service = new FakeService().next("/api/relay/prepare", refusing);
  const call = await (await relayOf(service)).prepare(PROFILE, CALL);

  assert.deepEqual(
    [call.expectedCost, call.highestCost, call.refusals[0]?.code],
    [7, 9, "insufficient-credits"],
  );
  await assert.rejects(call.send(), { code: "insufficient-credits" });
  assert.deepEqual(service.sent(EXECUTE), []);
});

test("nothing is signed for a key manager or chain other than the node's", async () => {
  for (const [keyManagerAddress, chainId] of [
    [PROFILE, 42],
    [KEY_MANAGER, 4201],
  ] as const) {
    const answer = { keyManagerAddress, chainId, transaction: { nonce: 0 }, refusals: [] };
    const service = new FakeService().next("/api/relay/prepare", () => [200, answer]);
    await assert.rejects((await relayOf(service)).send(PROFILE, CALL), /another key manager or chain/);
    assert.deepEqual(service.sent(EXECUTE), []);
  }
});

test("a sign-in is retried with a new nonce", async () => {
  const service = new FakeService().next("/api/auth/verify", () => problem(503, "chain-unavailable"));

  await (await relayOf(service)).signIn(PROFILE);

  const attempts = service.sent("/api/auth/verify");
  assert.equal(attempts.length, 2);
  for (const { nonce, signature } of attempts) assert.equal(signature, `signed ${String(nonce)}`);
  assert.notEqual(attempts[0]?.["nonce"], attempts[1]?.["nonce"]);
});

test("the message of another service is not signed", async () => {
  const relay = await relayOf(new FakeService(), { domain: "elsewhere.example" });

  await assert.rejects(relay.signIn(PROFILE), /not for elsewhere.example/);
});

test("an expired token is renewed once for all waiting requests", async () => {
  const expired = () => problem(401, "access-token-expired");
  const service = new FakeService().next("/api/user/dashboardInfo", expired, expired);
  const relay = await relayOf(service);
  await relay.signIn(PROFILE);

  await Promise.all([relay.dashboard(PROFILE), relay.dashboard(PROFILE)]);

  assert.equal(service.sent("/api/auth/refresh").length, 1);
  assert.equal(service.sent("/api/auth/verify").length, 1);
  assert.equal(new Set(service.headers.slice(-2).map(({ authorization }) => authorization)).size, 1);
});

test("after the end of a session the profile signs in again", async () => {
  const service = new FakeService()
    .next("/api/user/dashboardInfo", () => problem(401, "session-ended"))
    .next("/api/auth/refresh", () => problem(401, "session-ended"));
  const relay = await relayOf(service);
  await relay.signIn(PROFILE);

  await relay.dashboard(PROFILE);

  assert.equal(service.sent("/api/auth/verify").length, 2);
});

test("a quota request and its retry sign the current time", async () => {
  const service = new FakeService().next(
    "/api/relay/quota",
    () => [...problem(503, "busy").slice(0, 2), { "retry-after": "1" }] as never,
  );

  assert.equal((await (await relayOf(service)).quota(PROFILE)).quota, 5);

  const [first, second] = service.sent("/api/relay/quota");
  assert.ok(Number(second?.["timestamp"]) > Number(first?.["timestamp"]));
});

test("histories are read page by page, from this service only", async () => {
  const page = (results: unknown[], next: string | null) => () =>
    [200, { results, next, previous: null }] as never;
  const next = "https://elsewhere.example/api/user/transactions?cursor=x%3D";
  const service = new FakeService().next("/api/user/transactions", page([1, 2], next), page([3], null));
  const rows: unknown[] = [];

  for await (const row of (await relayOf(service)).transactions(PROFILE)) rows.push(row);

  assert.deepEqual(rows, [1, 2, 3]);
  assert.equal(service.sent("/api/user/transactions?cursor=x%3D").length, 1);
});

function storageOf(values: Map<string, string>): TokenStorage {
  return {
    getItem: (key) => values.get(key) ?? null,
    setItem: (key, value) => void values.set(key, value),
    removeItem: (key) => void values.delete(key),
  };
}

test("tokens renewed by another tab are used", async () => {
  const values = new Map<string, string>();
  const refusing = () => {
    for (const key of values.keys())
      values.set(key, JSON.stringify({ access: "theirs", refresh: "", expiresAt: 1e10 }));
    return problem(401, "access-token-expired");
  };
  const service = new FakeService().next("/api/user/dashboardInfo", refusing);

  await (await relayOf(service, { storage: storageOf(values) })).dashboard(PROFILE);

  assert.equal(service.headers.at(-1)?.["authorization"], "Bearer theirs");
  assert.equal(service.sent("/api/auth/refresh").length, 0);
});

test("stored tokens outlive the program, and signing out deletes them", async () => {
  const storage = storageOf(new Map());
  const service = new FakeService();
  await (await relayOf(service, { storage })).signIn(PROFILE);

  const later = await relayOf(service, { storage });
  assert.ok(later.isSignedIn(PROFILE.toLowerCase()));
  await later.dashboard(PROFILE);
  await later.signOut(PROFILE);

  assert.equal(service.sent("/api/auth/verify").length, 1);
  assert.ok(!later.isSignedIn(PROFILE));
});
