/** A wallet's side of the service: sign in, relay a call, follow it, and read what there is to read. */
import { ChainReader } from "./chain.ts";
import type { Node } from "./chain.ts";
import { Http, RelayProblem, sleep } from "./http.ts";
import type { RequestParts } from "./http.ts";
import { encodeCalls, encodeRemoval, quotaMessage, relayCallHash } from "./lsp25.ts";
import { ProviderRoute, SignerRoute } from "./routes.ts";
import type { Draft, Route, Work } from "./routes.ts";
import type {
  CheckInResult,
  Controller,
  Copy,
  Dashboard,
  DatedEarning,
  DatedTransaction,
  FirstDeploymentRequest,
  NewPurchaseRequest,
  Packs,
  Prepared,
  Purchase,
  Quota,
  Quote,
  TopUp,
  TopUpTermsRequest,
  TransactionStatus,
  paths,
} from "./schema.ts";
import { MemoryStorage, Session } from "./session.ts";
import type { Service, TokenStorage } from "./session.ts";
import { text } from "./signers.ts";
import type { Eip1193Provider, Signer } from "./signers.ts";
import type { Answer, Body, MethodOf, QueryOf } from "./typing.ts";

interface CommonOptions {
  /** Address of the service. */
  url: string;
  /** The service's domain in sign-in messages; by default the host of `url`. */
  domain?: string;
  /** The storage of tokens; by default memory. */
  storage?: TokenStorage;
  /** How long to retry requests while the service is busy or unreachable; by default 60. */
  patienceSeconds?: number;
  fetch?: typeof fetch;
}

/** A wallet that signs and relays by itself, such as the Universal Profile extension. */
export interface ProviderOptions extends CommonOptions {
  provider: Eip1193Provider;
  /** Whether the wallet may ask its user to connect; otherwise only connected profiles are used. */
  ask?: boolean;
}

/** A local key. */
export interface SignerOptions extends CommonOptions {
  signer: Signer;
  /** A node of the chain, to verify the key manager and chain in the service's responses. */
  node?: Node;
}

export interface SendOptions {
  /** Calls of one channel run in order, channels are independent; by default 0. */
  channel?: bigint;
  /** The validity of the signed call; by default an hour. */
  validSeconds?: number;
  /** One of the service's chains; by default its home chain. Not with a provider, whose wallet is on a chain itself. */
  chainId?: number;
  /** The name of a sponsor that pays. Not with a provider, whose wallet submits calls itself. */
  sponsor?: string;
  /** "user": the user pays where the sponsor does not. Without it, the call is rejected then. */
  sponsorFallback?: "user";
  /** What the sponsor's server has signed for this call. */
  sponsorVoucher?: string;
}

export interface PrepareOptions extends SendOptions {
  /**
   * Whether to request a quote (the default): the call then costs at most that if it is sent within a minute. To show a
   * price while the user is typing, do not request one, because each quote reserves a part of the service's loss limit
   * for the profile. A wallet behind a provider submits calls without a quote.
   */
  quote?: boolean;
}

/** The service rejected the call because the prepared nonce or quote is outdated. */
const OUTDATED: ReadonlySet<string> = new Set([
  ...["relay-nonce-gap", "relay-nonce-taken", "relay-nonce-used"],
  ...["quote-expired", "quote-used", "quote-outdated", "quote-not-found", "quote-for-other-call"],
]);
const OPEN_STATUSES: ReadonlySet<string> = new Set(["Pending", "Submitted"]);
const WAIT_SECONDS = 20;
const PAUSE_SECONDS = 0.5;
const HOUR_SECONDS = 3600;

/** Connects a wallet to a service. The first request that needs a session signs in. */
export async function connect(options: ProviderOptions | SignerOptions): Promise<Relay> {
  const { url, domain = new URL(url).host, storage = new MemoryStorage(), patienceSeconds = 60 } = options;
  const fetcher = (options.fetch ?? fetch).bind(globalThis);
  const http = new Http(url, fetcher, patienceSeconds);
  const route =
    "provider" in options
      ? await ProviderRoute.of(options.provider, options.ask ?? true)
      : new SignerRoute(
          options.signer,
          options.node === undefined ? undefined : new ChainReader(options.node, fetcher),
        );
  return new Relay({ http, domain, storage }, route);
}

/** A service, for the profiles of one wallet. */
export class Relay {
  /** The profiles that the provider has connected; empty with a signer, which may sign for several. */
  readonly profiles: readonly string[];
  private readonly service: Service;
  private readonly route: Route;
  private readonly sessions = new Map<string, Session>();
  /** By channel: the call that is being sent. */
  private readonly channels = new Map<string, Promise<unknown>>();

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

  /** Returns the cost of a call, and why the service would reject it, before the wallet signs it. */
  async prepare(profile: string, work: Work, options: PrepareOptions = {}): Promise<PreparedCall> {
    const { channel = 0n, validSeconds = HOUR_SECONDS } = options;
    const quote = this.route.controller !== undefined && (options.quote ?? true);
    if (options.sponsor !== undefined && this.route.controller === undefined) {
      throw new Error("The wallet behind a provider submits calls itself, so they can name no sponsor.");
    }
    if (options.chainId !== undefined && this.route.controller === undefined) {
      throw new Error("The wallet behind a provider submits calls itself, to the chain that it is on.");
    }
    const session = this.session(profile);
    const payload = "payload" in work ? work.payload : encodeCalls(work);
    const validityTimestamps = BigInt(Math.floor(Date.now() / 1000) + validSeconds);
    // Numbers as text, because JSON numbers above 2^53 lose digits.
    const numbers = { channel: String(channel), validityTimestamps: String(validityTimestamps) };
    const { controller } = this.route;
    const { sponsor, sponsorFallback = null, sponsorVoucher, chainId } = options;
    const payer =
      sponsor === undefined ? {} : { sponsor, sponsorFallback, ...(sponsorVoucher && { sponsorVoucher }) };
    const body = {
      transaction: { abi: payload },
      ...numbers,
      quote,
      ...payer,
      ...(controller && { controller }),
      ...(chainId !== undefined && { chainId }),
    };
    const prepared = (await session.request("post", "/api/relay/prepare", { body })) as Prepared;
    if (chainId !== undefined && prepared.chainId !== chainId) {
      throw new Error("The service prepared the call for another chain.");
    }
    return new PreparedCall(
      { session, work, payload, validityTimestamps, prepared, sponsorVoucher, chainId },
      this.route,
    );
  }

  /**
   * Prepares, signs and submits a call. When this returns, the service has accepted it, but it is not mined yet.
   *
   * Calls of one channel run in order; channels are independent.
   */
  send(profile: string, work: Work, options: SendOptions = {}): Promise<SentTransaction> {
    const attempt = async (): Promise<SentTransaction> => (await this.prepare(profile, work, options)).send();
    // One at a time, so that no two calls are prepared with the same nonce.
    const { chainId = "", channel = 0n } = options;
    return this.inTurn(`${profile.toLowerCase()} ${chainId} ${channel}`, async () => {
      try {
        return await attempt();
      } catch (error) {
        if (!(error instanceof RelayProblem && OUTDATED.has(error.code))) throw error;
        // Another program has used the nonce, or gas costs more now: prepare once more.
        return attempt();
      }
    });
  }

  /** A transaction that was sent before, by its hash. */
  transaction(profile: string, hash: string): SentTransaction {
    return new SentTransaction(hash, this.session(profile));
  }

  /**
   * Deploys the profile on another chain at the same addresses, for the user's credits.
   *
   * A copy begins with the controllers of the first deployment. `firstDeployment` has its salt and data, which the
   * service knows only of profiles that it created. Without a `transactionHash` the copy existed already; otherwise
   * follow it with `transaction`.
   *
   * If the home chain has removed one of them, the problem `copy-needs-removal` has a member `removal`. Show it to the
   * user, then pass it here: it is signed, and executed in the transaction of the copy.
   */
  async copyProfile(
    profile: string,
    chainId: number,
    firstDeployment?: FirstDeploymentRequest,
    removal?: readonly Controller[],
  ): Promise<Copy> {
    const body = { chainId, ...(firstDeployment && { firstDeployment }) };
    const path = "/api/relay/copyProfile";
    try {
      return await this.request(profile, "post", path, { body });
    } catch (error) {
      if (!removal || !(error instanceof RelayProblem && error.code === "copy-needs-removal")) throw error;
      const keyManager = text(error.members["keyManagerAddress"]);
      const call = { chainId: BigInt(chainId), keyManager, nonce: 0n, payload: encodeRemoval(removal) };
      const removalSignature = await this.route.signHash(relayCallHash(call));
      return this.request(profile, "post", path, { body: { ...body, removalSignature } });
    }
  }

  /** The available credits; the wallet signs a timestamp. */
  async quota(profile: string): Promise<Quota> {
    const session = this.session(profile);
    await session.open();
    // Each attempt signs a new timestamp, because one is valid for 5 seconds.
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

  /** All ledger entries except relay charges, newest first. */
  earnings(profile: string): AsyncGenerator<DatedEarning> {
    return this.pages<DatedEarning>(profile, "/api/user/earnings");
  }

  /** The relay calls of the profile, newest first. */
  transactions(profile: string): AsyncGenerator<DatedTransaction> {
    return this.pages<DatedTransaction>(profile, "/api/user/transactions");
  }

  /** Checks in; a retry with the same `key` returns the same draw. */
  checkIn(profile: string, key: string = crypto.randomUUID()): Promise<CheckInResult> {
    return this.request(profile, "post", "/api/user/executeCheckIn", { headers: { "idempotency-key": key } });
  }

  /** The packs of credits, and the currencies in which any amount is sold. */
  packs(profile: string): Promise<Packs> {
    return this.request(profile, "get", "/api/payments/packs");
  }

  /**
   * Buys a pack, or an amount in minor units, with the card captured last.
   *
   * Pass the same `key` to continue a purchase after a `RelayProblem`, such as `card-declined` or
   * `authentication-required`: the card is charged once.
   */
  purchaseCredits(
    profile: string,
    what: NewPurchaseRequest,
    key: string = crypto.randomUUID(),
  ): Promise<Purchase> {
    const headers = { "idempotency-key": key };
    return this.request(profile, "post", "/api/payments/purchaseCredits", { body: what, headers });
  }

  /** Automatic top-up. */
  topUp(profile: string): Promise<TopUp> {
    return this.request(profile, "get", "/api/payments/topUp");
  }

  /** Turns automatic top-up on with the user's consent, or off. */
  setTopUp(profile: string, terms: TopUpTermsRequest): Promise<TopUp> {
    return this.request(profile, "put", "/api/payments/topUp", { body: terms });
  }

  /** Makes any request of the API as a profile; body, query and response have their documented types. */
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
      const page = (await this.session(profile).request("get", path)) as {
        next: string | null;
        results: Row[];
      };
      yield* page.results;
      // The token is sent only to this service.
      const next: URL | null = page.next === null ? null : new URL(page.next);
      path = next && next.pathname + next.search;
    }
  }

  private inTurn<Result>(channel: string, work: () => Promise<Result>): Promise<Result> {
    const result = (this.channels.get(channel) ?? Promise.resolve()).then(work);
    this.channels.set(
      channel,
      result.catch(() => undefined),
    );
    return result;
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

/** A call with its nonce, its cost, and the reasons for which the service would reject it now. */
export class PreparedCall {
  /** The service's answer. */
  readonly prepared: Prepared;
  private readonly draft: Draft;
  private readonly route: Route;

  constructor(draft: Draft, route: Route) {
    this.prepared = draft.prepared;
    this.draft = draft;
    this.route = route;
  }

  /** Its cost in credits at the current gas price; null if it cannot be executed. */
  get expectedCost(): number | null {
    return this.prepared.expectedCost;
  }

  /** The credits held until it is settled. */
  get highestCost(): number | null {
    return this.prepared.highestCost;
  }

  /** A quote: the maximum cost in credits if it is sent in time. */
  get quote(): Quote | null {
    return this.prepared.quote;
  }

  /** Why the service would reject it now. */
  get refusals(): RelayProblem[] {
    return this.prepared.refusals.map((refusal) => new RelayProblem({ ...refusal }));
  }

  /** Signs and submits it; one that would be rejected is not signed. */
  async send(): Promise<SentTransaction> {
    const [refusal] = this.refusals;
    if (refusal) throw refusal;
    return new SentTransaction(await this.route.send(this.draft), this.draft.session);
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

  status(): Promise<TransactionStatus> {
    return this.statusWithin(0);
  }

  /** Waits for a final status: `Success`, `Failed`, `Expired` or `Cancelled`. */
  async wait(seconds = 180): Promise<TransactionStatus> {
    const deadline = Date.now() + 1000 * seconds;
    for (let began = Date.now(); began < deadline; began = Date.now()) {
      // Long polling: the service answers when the status changes.
      const status = await this.statusWithin(Math.min(WAIT_SECONDS, Math.ceil((deadline - began) / 1000)));
      if (!OPEN_STATUSES.has(status.status)) return status;
      await sleep(Math.max(0, PAUSE_SECONDS - (Date.now() - began) / 1000));
    }
    throw new Error(`${this.hash} is not final after ${seconds} s.`);
  }

  private async statusWithin(wait: number): Promise<TransactionStatus> {
    return (await this.session.request("get", `/api/relay/transactions/${this.hash}`, {
      query: { wait },
    })) as TransactionStatus;
  }
}
