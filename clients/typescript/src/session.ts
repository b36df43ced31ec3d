/** The session of one profile: its tokens, and authenticated requests. */
import { RelayProblem } from "./http.ts";
import type { Http, RequestParts } from "./http.ts";
import type { NonceResponse, TokenPairResponse } from "./schema.ts";

/** The storage of tokens, such as `localStorage` or `sessionStorage`. */
export interface TokenStorage {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
}

/** A service, its domain in sign-in messages, and the storage of its tokens. */
export interface Service {
  readonly http: Http;
  readonly domain: string;
  readonly storage: TokenStorage;
}

interface Tokens {
  access: string;
  refresh: string;
  expiresAt: number;
}

const RENEW_SECONDS_BEFORE_END = 30;
// For 10 seconds a refresh may be retried with the same token; later its reuse ends the session.
const REFRESH_PATIENCE_SECONDS = 8;
const RENEWABLE = new Set([
  "access-token-expired",
  "not-authenticated",
  "session-ended",
  "controller-revoked",
]);

export class Session {
  readonly profile: string;
  private readonly http: Http;
  private readonly storage: TokenStorage;
  private readonly domain: string;
  private readonly sign: (message: string) => Promise<string>;
  private renewal: Promise<Tokens> | undefined;

  constructor(profile: string, service: Service, sign: (message: string) => Promise<string>) {
    this.profile = profile;
    this.http = service.http;
    this.storage = service.storage;
    this.domain = service.domain;
    this.sign = sign;
    if (this.exists) this.http.isKnown = true;
  }

  /** Whether there are tokens, maybe of an earlier visit, which may have expired. */
  get exists(): boolean {
    return this.tokens !== undefined;
  }

  /** Signs in unless there are tokens. */
  async open(): Promise<void> {
    if (!this.tokens) await this.renew();
  }

  /** Ends the session at the service and deletes the tokens. */
  async close(): Promise<void> {
    if (!this.tokens) return;
    try {
      await this.request("post", "/api/auth/logout", { body: {} });
    } finally {
      this.storage.removeItem(this.key);
    }
  }

  /** Makes a request as the profile; renews an expired token and retries. */
  async request(
    method: string,
    path: string,
    parts: RequestParts = {},
    patienceSeconds?: number,
  ): Promise<unknown> {
    const attempt = async (tokens: Tokens): Promise<unknown> => {
      const headers = { ...parts.headers, authorization: `Bearer ${tokens.access}` };
      return this.http.patiently(() => this.http.once(method, path, { ...parts, headers }), patienceSeconds);
    };
    const tokens = await this.freshTokens();
    try {
      return await attempt(tokens);
    } catch (error) {
      if (!(error instanceof RelayProblem && RENEWABLE.has(error.code))) throw error;
      return attempt(await this.renew(tokens));
    }
  }

  private async freshTokens(): Promise<Tokens> {
    const tokens = this.tokens;
    const isFresh = tokens && tokens.expiresAt - Date.now() / 1000 > RENEW_SECONDS_BEFORE_END;
    return isFresh ? tokens : this.renew();
  }

  /** Renews the tokens once for all waiting callers; `refused` are those that the service rejected. */
  private renew(refused?: Tokens): Promise<Tokens> {
    const tokens = this.tokens;
    // Another tab or request may have renewed them in the meantime.
    if (refused && tokens && tokens.access !== refused.access) return Promise.resolve(tokens);
    this.renewal ??= this.newTokens(tokens).finally(() => (this.renewal = undefined));
    return this.renewal;
  }

  private async newTokens(tokens: Tokens | undefined): Promise<Tokens> {
    if (!tokens) return this.signIn();
    const { refresh } = tokens;
    try {
      const attempt = () => this.http.once("post", "/api/auth/refresh", { body: { refresh } });
      return this.keep((await this.http.patiently(attempt, REFRESH_PATIENCE_SECONDS)) as TokenPairResponse);
    } catch (error) {
      if (!(error instanceof RelayProblem && error.status === 401)) throw error;
      this.storage.removeItem(this.key);
      return this.signIn();
    }
  }

  private signIn(): Promise<Tokens> {
    // Each attempt requests a new nonce, because a nonce is valid for one attempt.
    return this.http.patiently(async () => {
      const body = { address: this.profile };
      const { nonce, message } = (await this.http.once("post", "/api/auth/nonce", { body })) as NonceResponse;
      // A malicious service could forward another service's message, to sign in there as the profile.
      const isOurs = message.startsWith(`${this.domain} wants you to sign in with your Ethereum account:\n`);
      if (!isOurs) throw new Error(`The sign-in message of ${this.http.url} is not for ${this.domain}.`);
      const proof = { nonce, signature: await this.sign(message) };
      return this.keep(
        (await this.http.once("post", "/api/auth/verify", { body: proof })) as TokenPairResponse,
      );
    });
  }

  private keep({ access, refresh, expiresIn }: TokenPairResponse): Tokens {
    const tokens = { access, refresh, expiresAt: Date.now() / 1000 + expiresIn };
    this.storage.setItem(this.key, JSON.stringify(tokens));
    return tokens;
  }

  private get tokens(): Tokens | undefined {
    const kept = this.storage.getItem(this.key);
    return kept === null ? undefined : (JSON.parse(kept) as Tokens);
  }

  private get key(): string {
    return `credit-relay ${this.http.url} ${this.profile.toLowerCase()}`;
  }
}

/** Stores tokens in memory. */
export class MemoryStorage implements TokenStorage {
  private readonly values = new Map<string, string>();

  getItem(key: string): string | null {
    return this.values.get(key) ?? null;
  }

  setItem(key: string, value: string): void {
    this.values.set(key, value);
  }

  removeItem(key: string): void {
    this.values.delete(key);
  }
}
