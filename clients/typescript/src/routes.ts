/** Two ways to submit a relay call: with a local key, or through the wallet behind a provider. */
import type { ChainReader } from "./chain.ts";
import { relayCallHash } from "./lsp25.ts";
import type { Call, Hex } from "./lsp25.ts";
import type { Prepared, TransactionHash } from "./schema.ts";
import type { Session } from "./session.ts";
import { personalSign, text } from "./signers.ts";
import type { Eip1193Provider, Signer } from "./signers.ts";

/** One call, several under one signature, or an encoded call of the profile itself. */
export type Work = Call | readonly Call[] | { payload: string };

/** How to sign messages and relay calls, and to submit calls. */
export interface Route {
  readonly profiles: readonly string[];
  /** The signing controller; undefined if the wallet chooses it. */
  readonly controller: string | undefined;
  signMessage(profile: string, message: string | Uint8Array): Promise<string>;
  /** The signature over the hash of a relay call. */
  signHash(hash: Hex): Promise<string>;
  send(draft: Draft): Promise<string>;
}

/** A call that is ready to be signed. */
export interface Draft {
  session: Session;
  work: Work;
  payload: string;
  validityTimestamps: bigint;
  prepared: Prepared;
  sponsorVoucher: string | undefined;
  chainId: number | undefined;
}

/** Signs with a local key and submits the signed call. */
export class SignerRoute implements Route {
  readonly profiles = [];
  readonly controller: string;
  private readonly signer: Signer;
  private readonly chain: ChainReader | undefined;

  constructor(signer: Signer, chain: ChainReader | undefined) {
    this.signer = signer;
    this.controller = signer.address;
    this.chain = chain;
  }

  signMessage(_profile: string, message: string | Uint8Array): Promise<string> {
    return this.signer.signMessage(message);
  }

  signHash(hash: Hex): Promise<string> {
    return this.signer.signHash(hash);
  }

  async send(draft: Draft): Promise<string> {
    const { session, payload, validityTimestamps, prepared, sponsorVoucher } = draft;
    const { keyManagerAddress, transaction } = prepared;
    const chainId = BigInt(prepared.chainId);
    await this.check(session.profile, keyManagerAddress, chainId);
    // The client computes the hash itself, because a service could answer the hash of another call.
    const nonce = BigInt(transaction.nonce);
    const call = { chainId, keyManager: keyManagerAddress, nonce, payload, validityTimestamps };
    const signature = await this.signer.signHash(relayCallHash(call));
    const numbers = { nonce: String(nonce), validityTimestamps: String(validityTimestamps) };
    const body = {
      keyManagerAddress,
      transaction: { abi: payload, signature, ...numbers },
      ...(draft.chainId !== undefined && { chainId: draft.chainId }),
    };
    const headers: Record<string, string> = {};
    if (prepared.quote) headers["relay-quote"] = prepared.quote.id;
    // A quote decides by itself who pays; a voucher belongs to a sponsor that is named.
    if (prepared.sponsor) {
      headers["relay-sponsor"] = prepared.sponsor.name;
      if (sponsorVoucher) headers["relay-sponsor-voucher"] = sponsorVoucher;
    }
    const answer = (await session.request("post", "/api/relay/execute", {
      body,
      headers,
    })) as TransactionHash;
    return answer.transactionHash;
  }

  private async check(profile: string, keyManager: string, chainId: bigint): Promise<void> {
    if (!this.chain) return;
    const onChain = await this.chain.keyManager(profile);
    if (onChain.toLowerCase() !== keyManager.toLowerCase() || (await this.chain.chainId()) !== chainId) {
      throw new Error("The service prepared the call for another key manager or chain than the node names.");
    }
  }
}

/** The wallet behind a provider signs and submits, through the relayer that its user has chosen. */
export class ProviderRoute implements Route {
  readonly profiles: readonly string[];
  readonly controller = undefined;
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

  signHash(): Promise<string> {
    return Promise.reject(new Error("A wallet behind a provider signs only the calls that it sends itself."));
  }

  async send({ session: { profile }, work, payload }: Draft): Promise<string> {
    // A call of the profile itself, such as setData or executeBatch, is sent as a transaction to itself.
    const { to, value = 0n, data = "0x" } = "to" in work ? work : { to: profile, data: payload };
    const transaction = { from: profile, to, value: `0x${value.toString(16)}`, data };
    return text(await this.provider.request({ method: "eth_sendTransaction", params: [transaction] }));
  }
}
