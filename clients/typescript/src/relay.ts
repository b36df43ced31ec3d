/** A wallet's side of the service: sign in, relay a call, follow it, and read what there is to read. */
import { ChainReader } from "./chain.ts";
import type { Node } from "./chain.ts";
import { Http, RelayProblem, sleep } from "./http.ts";
import type { RequestParts } from "./http.ts";
import { encodeCalls, quotaMessage, relayCallHash } from "./lsp25.ts";
import type { Call, Hex } from "./lsp25.ts";
import type {
  CheckInResult,
  Dashboard,
  DatedEarning,
  DatedTransaction,
  Quota,
  TransactionHash,
  TransactionStatus,
  paths,
} from "./schema.ts";
import { MemoryStorage, Session } from "./session.ts";
import type { Service, TokenStorage } from "./session.ts";
import { personalSign, text } from "./signers.ts";
import type { Eip1193Provider, Signer } from "./signers.ts";
import type { Answer, Body, MethodOf, QueryOf } from "./typing.ts";

interface CommonOptions {
  /** Address of the service. */
  url: string;
  /** What the service calls itself in sign-in messages; the host of `url` by default. */
  domain?: string;
  /** Where tokens are kept; in memory by default. */
  storage?: TokenStorage;
  /** How long requests are repeated while the service is busy or out of reach; 60 by default. */
  patienceSeconds?: number;
  fetch?: typeof fetch;
}

/** A wallet that signs and relays itself, such as the Universal Profile extension. */
export interface ProviderOptions extends CommonOptions {
  provider: Eip1193Provider;
  /** Whether the wallet may ask its user to connect; without that, profiles are those that are connected already. */
  ask?: boolean;
}

/** A key that is at hand, and a node to read key managers and nonces from. */
export interface SignerOptions extends CommonOptions {
  signer: Signer;
  node: Node;
}

export interface SendOptions {
  /** Calls of one channel run in order, those of several do not wait for each other; 0 by default. */
  channel?: bigint;
  /** How long the signed call may be executed; an hour by default. */
  validSeconds?: number;
}

/** What a profile is to do: one call, several under one signature, or an encoded call of the profile itself. */
export type Work = Call | readonly Call[] | { payload: string };

/** How relay calls are signed and handed in. */
interface Route {
  readonly profiles: readonly string[];
  signMessage(profile: string, message: string | Uint8Array): Promise<string>;
  send(session: Session, work: Work, options: SendOptions): Promise<string>;
}

const OPEN_STATUSES: ReadonlySet<string> = new Set(["Pending", "Submitted"]);
const POLL_SECONDS = 1;
const HOUR_SECONDS = 3600;

/** Connects a wallet to a service. Signing in is done with the first request that needs it. */
export async function connect(options: ProviderOptions | SignerOptions): Promise<Relay> {
  const { url, domain = new URL(url).host, storage = new MemoryStorage(), patienceSeconds = 60 } = options;
  const fetcher = (options.fetch ?? fetch).bind(globalThis);
  const http = new Http(url, fetcher, patienceSeconds);
  const route =
    "provider" in options
      ? await ProviderRoute.of(options.provider, options.ask ?? true)
      : await SignerRoute.of(options.signer, new ChainReader(options.node, fetcher));
  return new Relay({ http, domain, storage }, route);
}

/** The service, for the profiles of one wallet. */
export class Relay {
  /** The profiles that the provider has connected; empty with a signer, which may sign for several. */
  readonly profiles: readonly string[];
  private readonly service: Service;
  private readonly route: Route;
  private readonly sessions = new Map<string, Session>();

  constructor(service: Service, route: Route) {
    this.service = service;
    this.route = route;
    this.profiles = route.profiles;
  }

  /** Signs a profile in now, instead of with its first request. */
  async signIn(profile: string): Promise<void> {
    await this.session(profile).open();
  }

  /** Whether a profile has signed in, maybe on an earlier visit. */
  isSignedIn(profile: string): boolean {
    return this.session(profile).exists;
  }

  async signOut(profile: string): Promise<void> {
    await this.session(profile).close();
  }

  /** Signs a call and hands it in; the service has accepted it when this returns, and it is not mined yet. */
  async send(profile: string, work: Work, options: SendOptions = {}): Promise<SentTransaction> {
    const session = this.session(profile);
    await session.open();
    return new SentTransaction(await this.route.send(session, work, options), session);
  }

  /** A transaction that was sent before, by its hash. */
  transaction(profile: string, hash: string): SentTransaction {
    return new SentTransaction(hash, this.session(profile));
  }

  /** What can be spent; the wallet signs the time for this. */
  async quota(profile: string): Promise<Quota> {
    const session = this.session(profile);
    await session.open();
    // Each attempt has a time of its own, because one is good for 5 seconds.
    return this.service.http.patiently(async () => {
      const timestamp = Math.floor(Date.now() / 1000);
      const signature = await this.route.signMessage(profile, quotaMessage(profile, timestamp));
      const body = { address: profile, timestamp, signature };
      return (await session.request("post", "/api/relay/quota", { body }, 0)) as Quota;
    });
  }

  dashboard(profile: string): Promise<Dashboard> {
    return this.request(profile, "get", "/api/user/dashboardInfo");
  }

  /** Everything that changed the balance except relay calls, newest first. */
  earnings(profile: string): AsyncGenerator<DatedEarning> {
    return this.pages<DatedEarning>(profile, "/api/user/earnings");
  }

  /** The relay calls of the profile, newest first. */
  transactions(profile: string): AsyncGenerator<DatedTransaction> {
    return this.pages<DatedTransaction>(profile, "/api/user/transactions");
  }

  /** Checks in; the same `key` is the same draw, however often it is sent. */
  checkIn(profile: string, key: string = crypto.randomUUID()): Promise<CheckInResult> {
    return this.request(profile, "post", "/api/user/executeCheckIn", { headers: { "idempotency-key": key } });
  }

  /** Makes any request of the API in the name of a profile; body, query and answer have their documented types. */
  async request<Path extends keyof paths, Method extends MethodOf<Path>>(
    profile: string,
    method: Method,
    path: Path,
    parts: RequestParts & { body?: Body<Path, Method>; query?: QueryOf<Path, Method> } = {},
  ): Promise<Answer<Path, Method>> {
    return (await this.session(profile).request(method, path, parts)) as Answer<Path, Method>;
  }

  private async *pages<Row>(profile: string, first: string): AsyncGenerator<Row> {
    for (let path: string | null = first; path !== null; ) {
      const page = (await this.session(profile).request("get", path)) as { next: string | null; results: Row[] };
      yield* page.results;
      // The token goes to no other place than this service.
      const next: URL | null = page.next === null ? null : new URL(page.next);
      path = next && next.pathname + next.search;
    }
  }

  private session(profile: string): Session {
    const key = profile.toLowerCase();
    let session = this.sessions.get(key);
    if (!session) {
      session = new Session(profile, this.service, (message) => this.route.signMessage(profile, message));
      this.sessions.set(key, session);
    }
    return session;
  }
}

/** A relay call that the service has accepted. */
export class SentTransaction {
  readonly hash: string;
  private readonly session: Session;

  constructor(hash: string, session: Session) {
    this.hash = hash;
    this.session = session;
  }

  async status(): Promise<TransactionStatus> {
    const body = { transactionHash: this.hash };
    return (await this.session.request("post", "/api/relay/transactionStatus", { body })) as TransactionStatus;
  }

  /** Waits until the call is final, which it is as `Success`, but also as `Failed`, `Expired` or `Cancelled`. */
  async wait(seconds = 180): Promise<TransactionStatus> {
    const deadline = Date.now() + 1000 * seconds;
    for (;;) {
      const status = await this.status();
      if (!OPEN_STATUSES.has(status.status)) return status;
      if (Date.now() > deadline) throw new Error(`${this.hash} is still ${status.status} after ${seconds} s.`);
      await sleep(POLL_SECONDS);
    }
  }
}

/** Signs with a key, and hands the signed call in. */
class SignerRoute implements Route {
  readonly profiles = [];
  private readonly signer: Signer;
  private readonly chain: ChainReader;
  private readonly chainId: bigint;
  /** By channel: the call that is being sent, and the nonce after it, which the chain does not know yet. */
  private readonly channels = new Map<string, Promise<bigint>>();

  private constructor(signer: Signer, chain: ChainReader, chainId: bigint) {
    this.signer = signer;
    this.chain = chain;
    this.chainId = chainId;
  }

  static async of(signer: Signer, chain: ChainReader): Promise<SignerRoute> {
    return new SignerRoute(signer, chain, await chain.chainId());
  }

  signMessage(_profile: string, message: string | Uint8Array): Promise<string> {
    return this.signer.signMessage(message);
  }

  async send(session: Session, work: Work, options: SendOptions): Promise<string> {
    const { channel = 0n, validSeconds = HOUR_SECONDS } = options;
    const payload = payloadOf(work);
    const keyManager = await this.chain.keyManager(session.profile);
    const validityTimestamps = BigInt(Math.floor(Date.now() / 1000) + validSeconds);
    const execute = async (nonce: bigint): Promise<string> => {
      const call = { chainId: this.chainId, keyManager, nonce, payload, validityTimestamps };
      const signature = await this.signer.signHash(relayCallHash(call));
      // Numbers go as text: above 2^53 a JSON number loses digits.
      const numbers = { nonce: String(nonce), validityTimestamps: String(validityTimestamps) };
      const body = { keyManagerAddress: keyManager, transaction: { abi: payload, signature, ...numbers } };
      return ((await session.request("post", "/api/relay/execute", { body })) as TransactionHash).transactionHash;
    };
    return this.inTurn(`${keyManager} ${channel}`, async (after) => {
      const onChain = await this.chain.nonce(keyManager, this.signer.address, channel);
      let nonce = after > onChain ? after : onChain;
      try {
        return { hash: await execute(nonce), next: nonce + 1n };
      } catch (error) {
        if (!(error instanceof RelayProblem && error.code === "relay-nonce-gap")) throw error;
        // A call before this one has ended without using its nonce up. Nothing was stored, so this one takes it.
        nonce = BigInt(text(error.members["expectedNonce"]));
        return { hash: await execute(nonce), next: nonce + 1n };
      }
    });
  }

  /** Sends the calls of a channel one after the other, each with the nonce after the one before. */
  private async inTurn(
    channel: string,
    send: (after: bigint) => Promise<{ hash: string; next: bigint }>,
  ): Promise<string> {
    const sent = (this.channels.get(channel) ?? Promise.resolve(0n)).then(async (after) => {
      try {
        return await send(after);
      } catch (error) {
        return { error, next: after };
      }
    });
    this.channels.set(channel, sent.then(({ next }) => next));
    const outcome = await sent;
    if ("error" in outcome) throw outcome.error;
    return outcome.hash;
  }
}

/** Leaves signing and handing in to the wallet behind a provider: it relays by the service that its user has chosen. */
class ProviderRoute implements Route {
  readonly profiles: readonly string[];
  private readonly provider: Eip1193Provider;

  private constructor(provider: Eip1193Provider, profiles: readonly string[]) {
    this.provider = provider;
    this.profiles = profiles;
  }

  static async of(provider: Eip1193Provider, ask: boolean): Promise<ProviderRoute> {
    const profiles = await provider.request({ method: ask ? "eth_requestAccounts" : "eth_accounts" });
    return new ProviderRoute(provider, (profiles as unknown[]).map(text));
  }

  signMessage(profile: string, message: string | Uint8Array): Promise<string> {
    return personalSign(this.provider, profile, message);
  }

  async send({ profile }: Session, work: Work): Promise<string> {
    // What a profile is to do with itself, such as setData or executeBatch, goes as a transaction to itself.
    const isPlain = "to" in work;
    const to = isPlain ? work.to : profile;
    const data = isPlain ? (work.data ?? "0x") : payloadOf(work);
    const value: Hex = `0x${((isPlain && work.value) || 0n).toString(16)}`;
    return text(
      await this.provider.request({ method: "eth_sendTransaction", params: [{ from: profile, to, value, data }] }),
    );
  }
}

function payloadOf(work: Work): string {
  return "payload" in work ? work.payload : encodeCalls(work);
}

