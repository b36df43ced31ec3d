/** One request to the service, the errors it can end with, and when it is made again. */
import type { Problem, ProblemCode } from "./schema.ts";

/**
 * The service refused a request. Branch on `code`; a newer service may send codes that this type does not name yet.
 *
 * `members` has what some codes add, such as `expectedNonce` or `clientSecret`.
 */
export class RelayProblem extends Error {
  override readonly name = "RelayProblem";
  readonly code: ProblemCode;
  readonly status: number;
  readonly detail: string;
  /** What to tell support. */
  readonly requestId: string | null;
  readonly members: Readonly<Record<string, unknown>>;
  /** Seconds to wait before the next attempt; undefined if there is nothing to wait for. */
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

/** No answer of the service arrived: the network failed, or something between here and there answered instead. */
export class ServiceUnreachable extends Error {
  override readonly name = "ServiceUnreachable";
}

export type Query = Readonly<Record<string, string | number | undefined>>;

/** The parts of a request beside its method and path. */
export interface RequestParts {
  body?: unknown;
  query?: Query | undefined;
  headers?: Readonly<Record<string, string>> | undefined;
}

const TIMEOUT_MS = 40_000;
const WAIT_STATUSES = new Set([429, 503]);
const FIRST_PAUSE_SECONDS = 0.5;

/** The service behind one address. */
export class Http {
  readonly url: string;
  readonly patienceSeconds: number;
  private readonly fetcher: typeof fetch;

  constructor(url: string, fetcher: typeof fetch, patienceSeconds: number) {
    this.url = url.replace(/\/+$/, "");
    this.fetcher = fetcher;
    this.patienceSeconds = patienceSeconds;
  }

  /** Makes a request once. */
  async once(method: string, path: string, { body, query = {}, headers = {} }: RequestParts = {}): Promise<unknown> {
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
      throw new ServiceUnreachable(`No answer of ${this.url} to ${request.method} ${path}.`, { cause });
    }
    if (response.ok) return answer;
    if (!isProblem(answer)) throw new ServiceUnreachable(`${this.url} answered ${response.status} to ${path}.`);
    throw new RelayProblem(answer, WAIT_STATUSES.has(response.status) ? secondsOf(response) : undefined);
  }

  /**
   * Makes an attempt again while the service is busy or out of reach, until `seconds` would be over.
   *
   * An attempt must be one that may be made twice. Each call of the service is, if it is made as in this package: the
   * same signed relay call is one transaction with one hash, a subscription is made once, and a check-in has a key.
   */
  async patiently<T>(attempt: () => Promise<T>, seconds = this.patienceSeconds): Promise<T> {
    const deadline = Date.now() + 1000 * seconds;
    for (let pause = FIRST_PAUSE_SECONDS; ; pause *= 2) {
      try {
        return await attempt();
      } catch (error) {
        const wait = error instanceof ServiceUnreachable ? pause : error instanceof RelayProblem ? error.retryAfter : undefined;
        if (wait === undefined || Date.now() + 1000 * wait > deadline) throw error;
        await sleep(wait);
      }
    }
  }
}

export function sleep(seconds: number): Promise<void> {
  return new Promise((resume) => setTimeout(resume, 1000 * seconds));
}

/** What Retry-After says, which is never nothing, and never a date here. */
function secondsOf(response: Response): number {
  const seconds = Number(response.headers.get("retry-after"));
  return seconds > 0 ? seconds : 1;
}

function isProblem(answer: unknown): answer is Problem & Record<string, unknown> {
  return typeof answer === "object" && answer !== null && "code" in answer && "detail" in answer;
}
