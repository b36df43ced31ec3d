/** A fake service that records requests; tests set some of its responses. */
import { encodeCalls } from "../src/index.ts";
import type { Eip1193Provider, Signer } from "../src/index.ts";

export const PROFILE = "0xBB645D97B0c7D101ca0d73131e521fe89B463BFD";
export const KEY_MANAGER = "0xABaBaBaBABabABabAbAbABAbABabababaBaBABaB";
export const HASH = `0x${"ab".repeat(32)}`;
export const URL = "https://gateway.example";
export const PAYLOAD = encodeCalls({ to: KEY_MANAGER, value: 1n });

export const QUOTE = { id: "0d9f7a54-5d1e-4f0c-9a35-1c2f6c6f7f0e", cost: 8, expiresAt: 1 };
const PREPARED = {
  keyManagerAddress: KEY_MANAGER,
  chainId: 42,
  expectedCost: 7,
  highestCost: 9,
  refusals: [],
  quote: QUOTE,
};

type Json = Record<string, unknown>;
type Reply = (
  body: Json,
  request: RequestInit,
) => [status: number, answer: Json, headers?: Record<string, string>];

export class FakeService {
  readonly bodies: [path: string, body: Json][] = [];
  readonly methods: string[] = [];
  readonly headers: Record<string, string>[] = [];
  private readonly replies = new Map<string, Reply[]>();
  private tokens = 0;

  /** Sets the responses to the next requests of a path; later ones get the default. */
  next(path: string, ...replies: Reply[]): this {
    this.replies.set(path, replies);
    return this;
  }

  sent(path: string): Json[] {
    return this.bodies.filter(([requested]) => requested === path).map(([, body]) => body);
  }

  readonly fetch: typeof fetch = async (address, request = {}) => {
    const { pathname, search } = new globalThis.URL(String(address));
    const body = request.body ? (JSON.parse(String(request.body)) as Json) : {};
    this.bodies.push([pathname + search, body]);
    this.methods.push(request.method ?? "GET");
    this.headers.push(request.headers as Record<string, string>);
    const [status, answer, headers = {}] = (this.replies.get(pathname)?.shift() ?? this.usual(pathname))(
      body,
      request,
    );
    return new Response(JSON.stringify(answer), { status, headers });
  };

  private usual(path: string): Reply {
    this.tokens += 1;
    const number = String(this.tokens);
    const message = `gateway.example wants you to sign in with your Ethereum account:\n${PROFILE}\n\n${number}`;
    const tokens = {
      access: `access-${number}`,
      refresh: `refresh-${number}`,
      expiresIn: 600,
      address: PROFILE,
    };
    const answers: Record<string, Json> = {
      "/api/relay/prepare": {
        ...PREPARED,
        transaction: { nonce: this.sent("/api/relay/execute").length + 4 },
      },
      "/api/auth/nonce": { nonce: number, message, expiresAt: "" },
      "/api/auth/verify": tokens,
      "/api/auth/refresh": tokens,
      "/api/relay/execute": { transactionHash: HASH },
      "/api/lsp15/execute": { transactionHash: HASH },
      [`/api/relay/transactions/${HASH}`]: { status: "Success", creditsUsed: 7 },
      "/api/relay/quota": { quota: 5, unit: "credits", totalQuota: 0, resetDate: -1 },
    };
    return () => [200, answers[path] ?? {}];
  }
}

export function problem(
  status: number,
  code: string,
  members: Json = {},
): [number, Json, Record<string, string>] {
  const wait: Record<string, string> = [422, 503].includes(status) ? { "retry-after": "0.01" } : {};
  return [status, { type: "", title: "", status, code, detail: "", requestId: null, ...members }, wait];
}

/** A node whose key managers expect a nonce. */
export function fakeNode(nonce = 4n): Eip1193Provider {
  return {
    async request({ method, params }) {
      if (method === "eth_chainId") return "0x2a";
      const [{ data }] = params as [{ data: string }];
      const answer = data.startsWith("0x8da5cb5b") ? BigInt(KEY_MANAGER) : nonce;
      return `0x${answer.toString(16).padStart(64, "0")}`;
    },
  };
}

/** A fake signer whose signature names the signed value. */
export const signer: Signer = {
  address: "0x19E7E376E7C213B7E7e7e46cc70A5dD086DAff2A",
  signMessage: async (message) =>
    `signed ${typeof message === "string" ? message.split("\n").at(-1) : message.length}`,
  signHash: async (hash) => `signed ${hash}`,
};
