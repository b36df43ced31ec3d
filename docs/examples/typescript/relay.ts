/**
 * A complete small client: sign a profile in, relay one call, and wait until it is final.
 *
 *     npm install ethers@6 && npm pkg set type=module
 *     node --experimental-strip-types relay.ts stack.json     (Node 22.6 or newer)
 *
 * `stack.json` is what `make run` writes to var/stack.json. For another service, write a
 * file with the same three members: base_url, rpc_url, and profiles, a list whose first
 * item has profile_address and controller_private_key.
 */
import { readFileSync } from "node:fs";
import { Contract, Interface, JsonRpcProvider, SigningKey, Wallet } from "ethers";
import { concat, getBytes, keccak256, solidityPacked, solidityPackedKeccak256 } from "ethers";

const PROFILE = new Interface([
  "function owner() view returns (address)",
  "function execute(uint256 operation, address to, uint256 value, bytes data)",
]);
const KEY_MANAGER = new Interface(["function getNonce(address, uint128) view returns (uint256)"]);
const CALL = 0n;

export interface RelayCall {
  chainId: bigint;
  keyManager: string;
  nonce: bigint;
  payload: string;
  /** start << 128 | end, in unix seconds; 0 for always. */
  validity?: bigint;
}

/** The 32 bytes that a controller signs. A service that relays sends no value, so the last word is 0. */
export function lsp25Hash({ chainId, keyManager, nonce, payload, validity = 0n }: RelayCall): string {
  const words = solidityPacked(
    ["uint256", "uint256", "uint256", "uint256", "uint256", "bytes"],
    [25n, chainId, nonce, validity, 0n, payload],
  );
  return keccak256(concat(["0x1900", keyManager, words]));
}

/** Signs the hash itself. `wallet.signMessage` would add a prefix, and no key manager accepts that. */
export function signRelayCall(privateKey: string, digest: string): string {
  return new SigningKey(privateKey).sign(digest).serialized;
}

/** The 32 bytes that `signMessage` takes to ask for the quota. */
export function quotaMessage(profile: string, timestamp: number): Uint8Array {
  return getBytes(solidityPackedKeccak256(["address", "uint256"], [profile, timestamp]));
}

interface Stack {
  base_url: string;
  rpc_url: string;
  profiles: { profile_address: string; controller_private_key: string }[];
}

export interface Status {
  status: string;
  creditsUsed: number;
  creditsBefore: number;
  creditsAfter: number;
}

/** The service is busy: repeat the request after some seconds (429 and 503). */
class Busy extends Error {
  readonly seconds: number;

  constructor(message: string, seconds: number) {
    super(message);
    this.seconds = seconds;
  }
}

/** What `request` returns; while the service is busy, it is repeated. */
async function withRetries<T>(request: () => Promise<T>, attempts = 5): Promise<T> {
  for (let attempt = 1; attempt < attempts; attempt += 1) {
    try {
      return await request();
    } catch (error) {
      if (!(error instanceof Busy)) throw error;
      await pause(error.seconds);
    }
  }
  return request();
}

/** One controller of one profile. */
export class Client {
  readonly profile: string;
  readonly wallet: Wallet;
  private readonly baseUrl: string;
  private readonly node: JsonRpcProvider;
  private token = "";

  constructor(stack: Stack) {
    const owner = stack.profiles[0]!;
    this.baseUrl = stack.base_url;
    this.profile = owner.profile_address;
    this.wallet = new Wallet(owner.controller_private_key);
    this.node = new JsonRpcProvider(stack.rpc_url);
  }

  /** Signs the service's message and keeps the access token. */
  async signIn(): Promise<void> {
    const tokens = await withRetries(async () => {
      // Each time with a new nonce: one is good for one attempt, also where the answer is 503.
      const { nonce, message } = await this.post("/api/auth/nonce", { address: this.profile });
      const signature = await this.wallet.signMessage(message);
      return this.post("/api/auth/verify", { nonce, signature });
    });
    this.token = tokens.access;
  }

  /** The credits that can be spent now. */
  async quota(): Promise<number> {
    const answer = await withRetries(async () => {
      // Each time with the time of now: it is good for 5 seconds.
      const timestamp = Math.floor(Date.now() / 1000);
      const signature = await this.wallet.signMessage(quotaMessage(this.profile, timestamp));
      return this.post("/api/relay/quota", { address: this.profile, timestamp, signature });
    });
    return answer.quota;
  }

  /** Signs the payload for the key manager's next nonce, sends it, and returns the transaction's hash. */
  async relay(payload: string, channel = 0n): Promise<string> {
    const keyManager: string = await this.read(this.profile, PROFILE, "owner");
    const nonce: bigint = await this.read(keyManager, KEY_MANAGER, "getNonce", this.wallet.address, channel);
    const { chainId } = await this.node.getNetwork();
    const digest = lsp25Hash({ chainId, keyManager, nonce, payload });
    const signature = signRelayCall(this.wallet.privateKey, digest);
    // The nonce goes as text: above 2^53 a JSON number loses digits.
    const transaction = { abi: payload, signature, nonce: nonce.toString() };
    const body = { keyManagerAddress: keyManager, transaction };
    // The very same again: the same relay call twice is one transaction.
    return (await withRetries(() => this.post("/api/relay/execute", body))).transactionHash;
  }

  /** The status record once it is final. */
  async wait(transactionHash: string, seconds = 120): Promise<Status> {
    for (let second = 0; second < seconds; second += 1) {
      const status: Status = await withRetries(() => this.post("/api/relay/transactionStatus", { transactionHash }));
      if (status.status !== "Pending" && status.status !== "Submitted") return status;
      await pause(1);
    }
    throw new Error(`${transactionHash} is not final after ${seconds} s`);
  }

  close(): void {
    this.node.destroy();
  }

  /** The answer; throws `Busy` if the request may succeed later. */
  private async post(path: string, body: object): Promise<any> {
    const headers: Record<string, string> = { "Content-Type": "application/json" };
    if (this.token) headers.Authorization = `Bearer ${this.token}`;
    const response = await fetch(this.baseUrl + path, { method: "POST", headers, body: JSON.stringify(body) });
    const answer: any = await response.json();
    if (response.ok) return answer;
    const message = `${answer.code}: ${answer.detail}`;
    if (![429, 503].includes(response.status)) throw new Error(message);
    throw new Busy(message, Number(response.headers.get("Retry-After") ?? 1));
  }

  private read(contract: string, abi: Interface, name: string, ...values: unknown[]): Promise<any> {
    return new Contract(contract, abi, this.node).getFunction(name)(...values);
  }
}

function pause(seconds: number): Promise<void> {
  return new Promise((resume) => setTimeout(resume, 1000 * seconds));
}

/** Relays a transfer of 1 wei from the profile to its controller. */
async function main(stackFile: string): Promise<void> {
  const client = new Client(JSON.parse(readFileSync(stackFile, "utf8")));
  await client.signIn();
  console.log(`signed in as ${client.profile}, ${await client.quota()} credits`);
  const payload = PROFILE.encodeFunctionData("execute", [CALL, client.wallet.address, 1n, "0x"]);
  const transactionHash = await client.relay(payload);
  console.log(`accepted as ${transactionHash}`);
  const end = await client.wait(transactionHash);
  console.log(`${end.status}, ${end.creditsUsed} credits used, ${end.creditsAfter} left`);
  client.close();
}

if (process.argv[1]?.endsWith("relay.ts") && process.argv[2]) await main(process.argv[2]);
