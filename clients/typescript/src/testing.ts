/**
 * A fake of the Universal Profile browser extension for tests.
 *
 * It supports the extension's documented methods for sign-in, adding a relayer and relaying, and signs with a local key
 * without dialogs. By default its user approves everything.
 */
import { ChainReader } from "./chain.ts";
import type { Node } from "./chain.ts";
import { EXTENSION_RDNS } from "./extension.ts";
import type { AnnouncedWallet } from "./extension.ts";
import { bytes, encodeCalls, relayCallHash } from "./lsp25.ts";
import { text } from "./signers.ts";
import type { Eip1193Provider, Signer } from "./signers.ts";

export interface ExtensionOptions {
  /** The profiles of the extension's user; the first one is connected. */
  profiles: readonly string[];
  /** The key of a controller of all profiles. */
  signer: Signer;
  /** A node of the extension's chain. */
  node: Node;
  /** Its name for pages. */
  name?: string;
  /** Whether the user approves a request; by default always. */
  approves?: (request: { method: string; params: readonly unknown[] }) => boolean;
  fetch?: typeof fetch;
}

interface Relayer {
  name: string;
  apiUrl: string;
  chainIds: readonly (number | string)[];
}

type Listener = (value: unknown) => void;

const REJECTED = 4001;
const UNAUTHORIZED = 4100;
const UNSUPPORTED_METHOD = 4200;
const INVALID_PARAMS = -32602;
const UNRECOGNIZED_CHAIN = 4902;
const HOUR_SECONDS = 3600;

/** An EIP-1193 error. */
export class ProviderRpcError extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

export class FakeExtension implements Eip1193Provider {
  /** All requests so far, for tests. */
  readonly requests: { method: string; params: readonly unknown[] }[] = [];
  relayers: Relayer[] = [];
  private readonly options: ExtensionOptions;
  private readonly chain: ChainReader;
  private readonly listeners = new Map<string, Set<Listener>>();
  private isConnected = false;

  constructor(options: ExtensionOptions) {
    this.options = options;
    this.chain = new ChainReader(options.node, (options.fetch ?? fetch).bind(globalThis));
  }

  async request({
    method,
    params = [],
  }: {
    method: string;
    params?: readonly unknown[] | object;
  }): Promise<unknown> {
    const list = Array.isArray(params) ? (params as readonly unknown[]) : [params];
    this.requests.push({ method, params: list });
    switch (method) {
      case "eth_chainId":
        return `0x${(await this.chain.chainId()).toString(16)}`;
      case "eth_accounts":
        return this.accounts;
      case "eth_requestAccounts":
        return this.connect(list);
      case "personal_sign":
        return this.sign(method, list, list[0], list[1]);
      case "eth_sign":
        return this.sign(method, list, list[1], list[0]);
      case "eth_sendTransaction":
        return this.sendTransaction(list);
      case "wallet_switchEthereumChain":
        return this.switchChain(list);
      case "up_addTransactionRelayer":
        return this.addRelayer(list);
      default:
        throw new ProviderRpcError(UNSUPPORTED_METHOD, `The extension does not support ${method}.`);
    }
  }

  on(event: string, listener: Listener): this {
    this.listeners.set(event, (this.listeners.get(event) ?? new Set()).add(listener));
    return this;
  }

  removeListener(event: string, listener: Listener): this {
    this.listeners.get(event)?.delete(listener);
    return this;
  }

  /** Installs the extension in a page: as `window.lukso`, and announced through EIP-6963 on request. */
  install(page: Window & { lukso?: Eip1193Provider }): void {
    const icon = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg'/%3E";
    const name = this.options.name ?? "Universal Profiles";
    const info = { uuid: crypto.randomUUID(), name, icon, rdns: EXTENSION_RDNS };
    const detail: AnnouncedWallet = Object.freeze({ info, provider: this });
    const announce = () => page.dispatchEvent(new CustomEvent("eip6963:announceProvider", { detail }));
    page.lukso = this;
    page.addEventListener("eip6963:requestProvider", announce);
    announce();
  }

  private get accounts(): readonly string[] {
    return this.isConnected ? this.options.profiles.slice(0, 1) : [];
  }

  private connect(params: readonly unknown[]): readonly string[] {
    if (!this.isConnected) {
      this.ask("eth_requestAccounts", params);
      this.isConnected = true;
      this.emit("accountsChanged", this.accounts);
    }
    return this.accounts;
  }

  /** Signs a personal message for the profile, with either method. */
  private async sign(
    method: string,
    params: readonly unknown[],
    message: unknown,
    account: unknown,
  ): Promise<string> {
    this.demandAccount(account);
    this.ask(method, params);
    const content = text(message);
    return this.options.signer.signMessage(/^0x([0-9a-f]{2})*$/i.test(content) ? bytes(content) : content);
  }

  /** Signs a relay call and sends it to the newest relayer of its chain (LSP-15). */
  private async sendTransaction(params: readonly unknown[]): Promise<string> {
    const { from, to, value = "0x0", data = "0x" } = (params[0] ?? {}) as Record<string, string | undefined>;
    if (to === undefined) throw new ProviderRpcError(INVALID_PARAMS, "A transaction needs a receiver.");
    const profile = this.demandAccount(from);
    this.ask("eth_sendTransaction", params);
    const toItself = to.toLowerCase() === profile.toLowerCase();
    const payload = toItself ? data : encodeCalls({ to, value: BigInt(value), data });
    const [chainId, keyManager] = await Promise.all([this.chain.chainId(), this.chain.keyManager(profile)]);
    const relayer = this.relayers
      .filter(({ chainIds }) => chainIds.some((id) => BigInt(id) === chainId))
      .at(-1);
    if (!relayer) throw new ProviderRpcError(UNAUTHORIZED, "The profile has no relayer on this chain.");
    const nonce = await this.chain.nonce(keyManager, this.options.signer.address, 0n);
    const validityTimestamps = BigInt(Math.floor(Date.now() / 1000) + HOUR_SECONDS);
    const call = { chainId, keyManager, nonce, payload, validityTimestamps };
    const signature = await this.options.signer.signHash(relayCallHash(call));
    const numbers = { nonce: Number(nonce), validityTimestamps: `0x${validityTimestamps.toString(16)}` };
    const body = { address: profile, transaction: { abi: payload, signature, ...numbers } };
    const answer = await this.post(`${relayer.apiUrl.replace(/\/+$/, "")}/execute`, body);
    return text(answer["transactionHash"]);
  }

  private async switchChain(params: readonly unknown[]): Promise<null> {
    const { chainId } = (params[0] ?? {}) as { chainId?: string };
    if (chainId === undefined || BigInt(chainId) !== (await this.chain.chainId())) {
      throw new ProviderRpcError(UNRECOGNIZED_CHAIN, "The extension does not know this chain.");
    }
    return null;
  }

  /** Adds a relayer; rejects an existing one as if the user had declined. */
  private addRelayer(params: readonly unknown[]): readonly string[] {
    const { name, apiUrl, chainIds } = (params[0] ?? {}) as Partial<Relayer>;
    if (!name || !apiUrl || !chainIds?.length) {
      throw new ProviderRpcError(INVALID_PARAMS, "A relayer needs name, apiUrl and chainIds.");
    }
    this.ask("up_addTransactionRelayer", params);
    if (this.relayers.some((relayer) => relayer.apiUrl === apiUrl)) {
      throw new ProviderRpcError(REJECTED, "The relayer is there already.");
    }
    this.relayers.push({ name, apiUrl, chainIds });
    return [...this.options.profiles];
  }

  private ask(method: string, params: readonly unknown[]): void {
    const approves = this.options.approves ?? (() => true);
    if (!approves({ method, params })) throw new ProviderRpcError(REJECTED, "User denied request.");
  }

  private demandAccount(account: unknown): string {
    const profile = this.accounts.find((each) => each.toLowerCase() === String(account).toLowerCase());
    if (profile === undefined)
      throw new ProviderRpcError(UNAUTHORIZED, `${String(account)} is not connected.`);
    return profile;
  }

  private async post(url: string, body: unknown): Promise<Record<string, unknown>> {
    const request = {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    };
    const response = await (this.options.fetch ?? fetch)(url, request);
    const answer = (await response.json()) as Record<string, unknown>;
    if (!response.ok) throw new Error(`The relayer answered ${response.status}: ${String(answer["detail"])}`);
    return answer;
  }

  private emit(event: string, value: unknown): void {
    for (const listener of this.listeners.get(event) ?? []) listener(value);
  }
}
