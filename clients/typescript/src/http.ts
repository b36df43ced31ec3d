/** Requests to the service, their errors and retries. */
import type { Problem, ProblemCode } from "./schema.ts";

/**
 * The service rejected a request. Branch on `code`; a newer service may send codes that this type does not include.
 *
 * `members` has the additional members of some codes, such as `expectedNonce` or `clientSecret`.
 */
export class RelayProblem extends Error {
  override readonly name = "RelayProblem";
  readonly code: ProblemCode;
  readonly status: number;
  readonly detail: string;
  /** The request id, for support. */
  readonly requestId: string | null;
  readonly members: Readonly<Record<string, unknown>>;
  /** Seconds until the next attempt; undefined if a retry is pointless. */
  readonly retryAfter: number | undefined;

  constructor(problem: Problem & Record<string, unknown>, retryAfter?: number) {
    super(`${problem.code}: ${problem.detail}`);
    const { type: _type, title: _title, code, status, detail, requestId, ...members } = problem;
    this.code = code as ProblemCode;
    this.status = status;
    this.detail = detail;
    this.requestId = requestId;
    this.members = members;
    this.retryAfter = retryAfter;
  }
}

/** No response of the service: the network failed, the URL is another program's, or a proxy responded instead. */
export class ServiceUnreachable extends Error {
  override readonly name = "ServiceUnreachable";
}

export type Query = Readonly<Record<string, string | number | undefined>>;

/** Further parts of a request. */
export interface RequestParts {
  body?: unknown;
  query?: Query | undefined;
  headers?: Readonly<Record<string, string>> | undefined;
}

const TIMEOUT_MS = 40_000;
const WAIT_STATUSES = new Set([429, 503]);
const FIRST_PAUSE_SECONDS = 0.5;
/** The longest retry at a URL from which the service has never responded: the URL is probably wrong. */
const FIRST_CONTACT_SECONDS = 4;

/** The service at one URL. */
export class Http {
  readonly url: string;
  readonly patienceSeconds: number;
  private readonly fetcher: typeof fetch;
  /** Whether the service has responded at this URL, maybe on an earlier visit. */
  isKnown = false;

  constructor(url: string, fetcher: typeof fetch, patienceSeconds: number) {
    this.url = url.replace(/\/+$/, "");
    this.fetcher = fetcher;
    this.patienceSeconds = patienceSeconds;
  }

  /** Makes a request once. */
  async once(
    method: string,
    path: string,
    { body, query = {}, headers = {} }: RequestParts = {},
  ): Promise<unknown> {
    const address = new URL(this.url + path);
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) address.searchParams.set(name, String(value));
    }
    const request: RequestInit = { method: method.toUpperCase(), headers: { ...headers } };
    if (body !== undefined) {
      request.headers = { ...headers, "content-type": "application/json" };
      request.body = JSON.stringify(body);
    }
    let response: Response;
    let answer: unknown;
    try {
      response = await this.fetcher(address, { ...request, signal: AbortSignal.timeout(TIMEOUT_MS) });
      answer = await response.json();
    } catch (cause) {
      throw this.unreachable(`No response of ${this.url} to ${request.method} ${path}.`, { cause });
    }
    this.isKnown ||= response.ok || isProblem(answer);
    if (response.ok) return answer;
    if (!isProblem(answer)) throw this.unreachable(`${this.url} responded ${response.status} to ${path}.`);
    throw new RelayProblem(answer, secondsOf(response));
  }

  private unreachable(text: string, options?: ErrorOptions): ServiceUnreachable {
    return new ServiceUnreachable(this.isKnown ? text : `${text} Is it the URL of the service?`, options);
  }

  /**
   * Retries an attempt while the service is busy or unreachable, for at most `seconds`; for four seconds if it has never responded.
   *
   * The attempt must be idempotent. All requests of this package are: the same signed relay call is one transaction, a
   * subscription is created once, and a check-in, a purchase and a new profile have an idempotency key.
   */
  async patiently<T>(attempt: () => Promise<T>, seconds = this.patienceSeconds): Promise<T> {
    const began = Date.now();
    for (let pause = FIRST_PAUSE_SECONDS; ; pause *= 2) {
      try {
        return await attempt();
      } catch (error) {
        const wait =
          error instanceof ServiceUnreachable
            ? pause
            : error instanceof RelayProblem
              ? error.retryAfter
              : undefined;
        const longest = this.isKnown ? seconds : Math.min(seconds, FIRST_CONTACT_SECONDS);
        if (wait === undefined || Date.now() + 1000 * wait > began + 1000 * longest) throw error;
        await sleep(wait);
      }
    }
  }
}

export function sleep(seconds: number): Promise<void> {
  return new Promise((resume) => setTimeout(resume, 1000 * seconds));
}

/** The seconds of Retry-After; this service never sends a date. */
function secondsOf(response: Response): number | undefined {
  const seconds = Number(response.headers.get("retry-after"));
  if (seconds > 0) return seconds;
  return WAIT_STATUSES.has(response.status) ? 1 : undefined;
}

function isProblem(answer: unknown): answer is Problem & Record<string, unknown> {
  return typeof answer === "object" && answer !== null && "code" in answer && "detail" in answer;
}
