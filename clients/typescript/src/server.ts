/** What a sponsor’s server does with its API key. A page must not have that key, so the index does not export this. */
import { Http, sleep } from "./http.ts";
import type { RequestParts } from "./http.ts";
import { address, checked } from "./lsp25.ts";
import type { Profile } from "./schema.ts";

interface ServerOptions {
  /** Address of the service. */
  url: string;
  /** A key of the sponsor with the right `create`. */
  apiKey: string;
  /** How long to retry requests while the service is busy or unreachable; by default 60. */
  patienceSeconds?: number;
  fetch?: typeof fetch;
}

export interface CreateOptions extends ServerOptions {
  /** The addresses of the keys that control the new profile. */
  controllers?: readonly string[];
  /** The VerifiableURI of its LSP-3 metadata, in hex. */
  metadata?: string;
  /** Instead of controllers and metadata: the salt of the deployment, 32 bytes in hex, */
  salt?: string;
  /** and `abi.encode(bytes32[], bytes[])` of the data keys and values of the new profile, in hex. */
  postDeploymentData?: string;
  /** Further chains that get the same address at once, besides home. */
  chainIds?: readonly number[];
  /** What the sponsor's server has signed for this profile, for policies that want a voucher. */
  voucher?: string;
  /** What stands for the person, such as a network address, for policies that limit profiles by origin. */
  origin?: string;
  /** Calls with the same key are one profile, so keep one for each user; by default a new one for each call. */
  key?: string;
  /** How long to wait for the end of the deployment, by default 180; with 0 the profile is returned as it was accepted. */
  waitSeconds?: number;
}

export interface ReadOptions extends ServerOptions {
  /** The profile's address. */
  address: string;
}

const PATH = "/api/universal-profile";
const OPEN_STATUSES: ReadonlySet<string> = new Set(["Pending", "Submitted"]);
const PAUSE_SECONDS = 1;
// 0x and 32 bytes.
const SALT_CHARACTERS = 66;

/**
 * Has a new Universal Profile deployed at the sponsor's cost, and waits for the end of the deployment.
 *
 * The profile exists if its `status` is `Success` or `ExecutedExternally`. After `Failed` and `Cancelled`, a call with
 * the same `key` tries again. Throws a TypeError that names the option which the service would refuse.
 */
export async function createProfile(options: CreateOptions): Promise<Profile> {
  const { chainIds, voucher, origin, waitSeconds = 180 } = options;
  const body = {
    ...deploymentOf(options),
    ...(chainIds !== undefined && { chainIds: checkedChains(chainIds) }),
    ...(voucher !== undefined && { sponsorVoucher: voucher }),
    ...(origin !== undefined && { origin }),
  };
  // One key for all attempts, so that a retry after a lost response is no second profile.
  const headers = { "idempotency-key": options.key ?? crypto.randomUUID() };
  const service = serviceOf(options);
  const deadline = Date.now() + 1000 * waitSeconds;
  let profile = await service("post", PATH, { body, headers });
  while (waitSeconds > 0 && OPEN_STATUSES.has(profile.status)) {
    const place = profile.universalProfileAddress;
    if (Date.now() > deadline) throw new Error(`The profile ${place} is not final after ${waitSeconds} s.`);
    await sleep(PAUSE_SECONDS);
    profile = await service("get", `${PATH}/${place}`);
  }
  return profile;
}

/** Returns a profile that the sponsor requested before, with its present status. */
export async function requestedProfile(options: ReadOptions): Promise<Profile> {
  return serviceOf(options)("get", `${PATH}/${address(options.address, "address")}`);
}

/**
 * Opens an account for a profile that exists already, so that the sponsor can pay for its calls.
 *
 * Throws a TypeError if the address is none, or its checksum is wrong.
 */
export async function registerProfile(options: ReadOptions): Promise<Profile> {
  const body = { universalProfileAddress: address(options.address, "address") };
  return serviceOf(options)("post", `${PATH}/register`, { body });
}

/** The members of a request that tell which profile is deployed: controllers, or salt and data. */
function deploymentOf(options: CreateOptions): Record<string, unknown> {
  const { controllers, metadata = "0x", salt, postDeploymentData: data } = options;
  const hasMetadata = checked(metadata, "metadata") !== "0x";
  if (salt === undefined && data === undefined) {
    return {
      lsp6ControllerAddress: checkedControllers(controllers),
      ...(hasMetadata && { lsp3Profile: metadata }),
    };
  }
  if (controllers !== undefined)
    throw new TypeError("controllers: those of a deployment by salt are in its data.");
  if (hasMetadata) throw new TypeError("metadata: that of a deployment by salt is in its data.");
  if (checked(salt, "salt").length !== SALT_CHARACTERS) throw new TypeError(`salt: ${salt} is not 32 bytes.`);
  if (checked(data, "postDeploymentData") === "0x") throw new TypeError("postDeploymentData: there is none.");
  return { salt, postDeploymentCallData: data };
}

function checkedChains(chainIds: readonly number[]): readonly number[] {
  if (!Array.isArray(chainIds)) throw new TypeError("chainIds: this is no list of chain ids.");
  chainIds.forEach((id: unknown, place) => {
    if (!Number.isSafeInteger(id) || (id as number) < 1) {
      throw new TypeError(`chainIds[${place}]: ${String(id)} is no chain id, such as 8453.`);
    }
  });
  return chainIds;
}

function checkedControllers(controllers: readonly string[] | undefined): string[] {
  if (!Array.isArray(controllers) || controllers.length === 0) {
    throw new TypeError("controllers: this is no list of at least one address.");
  }
  return controllers.map((each: unknown, place) => address(each, `controllers[${place}]`));
}

type Request = (method: string, path: string, parts?: RequestParts) => Promise<Profile>;

/** Returns a function that makes requests with the API key, and repeats them while the service is away. */
function serviceOf({ url, apiKey, patienceSeconds = 60, fetch: fetcher = fetch }: ServerOptions): Request {
  const http = new Http(url, fetcher.bind(globalThis), patienceSeconds);
  return async (method, path, parts = {}) => {
    const headers = { ...parts.headers, authorization: `Bearer ${apiKey}` };
    return (await http.patiently(() => http.once(method, path, { ...parts, headers }))) as Profile;
  };
}
