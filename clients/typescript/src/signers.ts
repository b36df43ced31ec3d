/** Signers: of viem, of ethers, or your own. Their types are structural; neither library is loaded. */
import type { Hex } from "./lsp25.ts";
import { hex } from "./lsp25.ts";

/** A controller of a profile: a key with LSP-6 permissions. */
export interface Signer {
  readonly address: string;
  /** Signs like `personal_sign`, for sign-in and quota. */
  signMessage(message: string | Uint8Array): Promise<string>;
  /** Signs 32 bytes without a prefix, for relay calls. */
  signHash(hash: Hex): Promise<string>;
}

/** The used part of a viem account, such as the result of `privateKeyToAccount`. */
export interface ViemAccount {
  readonly address: string;
  signMessage(parameters: { message: string | { raw: Uint8Array } }): Promise<string>;
  sign?: ((parameters: { hash: Hex }) => Promise<string>) | undefined;
}

/** The used part of a `Wallet` of ethers 6. */
export interface EthersWallet {
  readonly address: string;
  signMessage(message: string | Uint8Array): Promise<string>;
  readonly signingKey: { sign(digest: string): { readonly serialized: string } };
}

/** Signs with a local account of viem. */
export function viemSigner(account: ViemAccount): Signer {
  const { address, sign } = account;
  if (!sign) throw new TypeError("This account of viem cannot sign a hash; use one made from a key.");
  return {
    address,
    signMessage: (message) =>
      account.signMessage({ message: typeof message === "string" ? message : { raw: message } }),
    signHash: (hash) => sign({ hash }),
  };
}

/** Signs with a `Wallet` of ethers. */
export function ethersSigner(wallet: EthersWallet): Signer {
  return {
    address: wallet.address,
    signMessage: (message) => wallet.signMessage(message),
    signHash: async (hash) => wallet.signingKey.sign(hash).serialized,
  };
}

/** An EIP-1193 provider. */
export interface Eip1193Provider {
  request(request: { method: string; params?: readonly unknown[] | object }): Promise<unknown>;
}

/** Signs a message with one account of the wallet behind a provider. */
export async function personalSign(
  provider: Eip1193Provider,
  profile: string,
  message: string | Uint8Array,
): Promise<string> {
  const raw = typeof message === "string" ? new TextEncoder().encode(message) : message;
  return text(await provider.request({ method: "personal_sign", params: [hex(raw), profile] }));
}

/** Returns the answer if it is a string. */
export function text(answer: unknown): string {
  if (typeof answer !== "string") throw new TypeError(`Expected a string, not ${JSON.stringify(answer)}.`);
  return answer;
}
