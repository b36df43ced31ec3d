import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { RelayProblem } from "../src/index.ts";
import { createProfile, registerProfile, requestedProfile } from "../src/server.ts";
import { FakeService, HASH, KEY_MANAGER, PROFILE, URL, problem } from "./service.ts";

const PATH = "/api/universal-profile";
const OF_PROFILE = `${PATH}/${PROFILE}`;
const CONTROLLER = KEY_MANAGER;

function asked(status: string): Record<string, unknown> {
  return { universalProfileAddress: PROFILE, status, transactionHash: HASH, controllers: [] };
}

function optionsOf(service: FakeService) {
  return { url: URL, apiKey: "sponsor_key", controllers: [CONTROLLER], fetch: service.fetch };
}

function keysOf(service: FakeService): (string | undefined)[] {
  return service.headers.map((headers) => headers["idempotency-key"]);
}

test("a profile is requested with the API key and followed to the end of its deployment", async () => {
  const service = new FakeService()
    .next(PATH, () => [200, asked("Pending")])
    .next(OF_PROFILE, ...["Submitted", "Success"].map((status) => () => [200, asked(status)] as never));

  const profile = await createProfile({
    ...optionsOf(service),
    metadata: "0x00ff",
    voucher: "mine",
    origin: "192.0.2.7",
  });

  assert.deepEqual(profile, asked("Success"));
  const named = { sponsorVoucher: "mine", origin: "192.0.2.7" };
  const body = { lsp6ControllerAddress: [CONTROLLER], lsp3Profile: "0x00ff", ...named };
  assert.deepEqual(service.bodies, [
    [PATH, body],
    [OF_PROFILE, {}],
    [OF_PROFILE, {}],
  ]);
  for (const headers of service.headers) assert.equal(headers["authorization"], "Bearer sponsor_key");
});

test("a profile of salt and data is requested for further chains, and an existing one registered", async () => {
  const ended = () => [200, asked("Success")] as never;
  const service = new FakeService().next(PATH, ended).next(`${PATH}/register`, ended);
  const { controllers: _, ...options } = optionsOf(service);
  const salt = `0x${"5a".repeat(32)}`;

  await createProfile({ ...options, salt, postDeploymentData: "0x00ff", chainIds: [8453, 1] });
  assert.deepEqual(await registerProfile({ ...options, address: PROFILE }), asked("Success"));

  assert.deepEqual(service.bodies, [
    [PATH, { salt, postDeploymentCallData: "0x00ff", chainIds: [8453, 1] }],
    [`${PATH}/register`, { universalProfileAddress: PROFILE }],
  ]);
  assert.equal(service.headers.at(-1)?.["authorization"], "Bearer sponsor_key");
});

test("retries after lost responses have one key, and other profiles have their own", async () => {
  const away = () => {
    throw new TypeError("fetch failed");
  };
  const accepted = () => [200, asked("Success")] as never;
  const service = new FakeService().next(
    PATH,
    () => problem(503, "busy"),
    away,
    accepted,
    accepted,
    accepted,
  );

  await createProfile(optionsOf(service));
  await createProfile(optionsOf(service));
  await createProfile({ ...optionsOf(service), key: "user-4711" });

  const [first, ...later] = keysOf(service);
  assert.deepEqual(later.slice(0, 2), [first, first]);
  assert.equal(new Set(later.slice(1)).size, 3);
  assert.equal(later.at(-1), "user-4711");
  assert.deepEqual(service.sent(PATH), Array(5).fill({ lsp6ControllerAddress: [CONTROLLER] }));
});

test("without waiting the profile is returned as it was accepted, and read later", async () => {
  const service = new FakeService()
    .next(PATH, () => [200, asked("Pending")])
    .next(OF_PROFILE, () => [200, asked("Failed")]);

  const { status, universalProfileAddress: address } = await createProfile({
    ...optionsOf(service),
    waitSeconds: 0,
  });
  assert.equal(status, "Pending");
  assert.equal(service.bodies.length, 1);
  assert.equal((await requestedProfile({ ...optionsOf(service), address })).status, "Failed");
});

test("a deployment that is not final in time is an error that names the profile", async () => {
  const open = () => [200, asked("Submitted")] as never;
  const service = new FakeService().next(PATH, open).next(OF_PROFILE, ...Array(9).fill(open));

  const late = createProfile({ ...optionsOf(service), waitSeconds: 0.5 });

  await assert.rejects(late, new RegExp(`${PROFILE} is not final after 0.5 s`));
});

test("what the sponsor's policies refuse is a problem with its code", async () => {
  const limit = () => problem(402, "sponsor-limit-window-calls", { limit: 20, used: 20 });
  const service = new FakeService().next(PATH, limit);

  const refusal = await createProfile(optionsOf(service)).catch((error: unknown) => error);

  assert.ok(refusal instanceof RelayProblem);
  assert.deepEqual([refusal.code, refusal.members], ["sponsor-limit-window-calls", { limit: 20, used: 20 }]);
  assert.equal(service.bodies.length, 1);
});

const addresses = JSON.parse(
  readFileSync(new globalThis.URL("../../../tests/clients/addresses.json", import.meta.url), "utf8"),
) as { address: string; code: string | null }[];

for (const { address } of addresses.filter(({ code }) => code !== null)) {
  test(`${JSON.stringify(address)} is refused before anything is sent`, async () => {
    const service = new FakeService();
    const options = { ...optionsOf(service), controllers: [CONTROLLER, address] };
    await assert.rejects(createProfile(options), /^TypeError: controllers\[1\]: /);
    await assert.rejects(requestedProfile({ ...options, address }), /^TypeError: address: /);
    await assert.rejects(registerProfile({ ...options, address }), /^TypeError: address: /);
    assert.equal(service.bodies.length, 0);
  });
}

const SALT = `0x${"5a".repeat(32)}`;
const OF_DATA = { controllers: undefined, salt: SALT, postDeploymentData: "0x00" };
const refused: [object, RegExp][] = [
  [{ controllers: [] }, /^TypeError: controllers: /],
  [{ controllers: CONTROLLER }, /^TypeError: controllers: /],
  [{ metadata: "00ff" }, /^TypeError: metadata: 00ff is not hex/],
  [{ metadata: new Uint8Array(2) }, /^TypeError: metadata: /],
  [{ controllers: undefined }, /^TypeError: controllers: /],
  [{ salt: SALT, postDeploymentData: "0x00" }, /^TypeError: controllers: /],
  [{ ...OF_DATA, metadata: "0x00" }, /^TypeError: metadata: /],
  [{ ...OF_DATA, salt: "0x00" }, /^TypeError: salt: 0x00 is not 32 bytes/],
  [{ ...OF_DATA, salt: undefined }, /^TypeError: salt: nothing is not hex/],
  [{ ...OF_DATA, postDeploymentData: undefined }, /^TypeError: postDeploymentData: nothing is not hex/],
  [{ ...OF_DATA, postDeploymentData: "0x" }, /^TypeError: postDeploymentData: /],
  [{ chainIds: 8453 }, /^TypeError: chainIds: /],
  [{ chainIds: [1, "8453"] }, /^TypeError: chainIds\[1\]: 8453 is no chain id/],
  [{ chainIds: [0] }, /^TypeError: chainIds\[0\]: /],
];

for (const [mistake, message] of refused) {
  test(`${JSON.stringify(mistake)} is refused before anything is sent`, async () => {
    const service = new FakeService();
    await assert.rejects(createProfile({ ...optionsOf(service), ...mistake }), message);
    assert.equal(service.bodies.length, 0);
  });
}
