/** Relay calls of Universal Profiles through a credit relay gateway. */
export { connect, PreparedCall, Relay, SentTransaction } from "./relay.ts";
export type { PrepareOptions, ProviderOptions, SendOptions, SignerOptions } from "./relay.ts";
export type { Work } from "./routes.ts";
export { ethersSigner, viemSigner } from "./signers.ts";
export type { Eip1193Provider, EthersWallet, Signer, ViemAccount } from "./signers.ts";
export { RelayProblem, ServiceUnreachable } from "./http.ts";
export { addRelayer, addRelayers, announcedWallets, EXTENSION_RDNS, findExtension } from "./extension.ts";
export type { AddedChain, AnnouncedWallet } from "./extension.ts";
export { encodeCalls, quotaMessage, relayCallHash } from "./lsp25.ts";
export type { Call, Hex, RelayCall } from "./lsp25.ts";
export { ChainReader } from "./chain.ts";
export type { Node } from "./chain.ts";
export type { TokenStorage } from "./session.ts";
export type { Answer, Body, MethodOf, QueryOf } from "./typing.ts";
export type * from "./schema.ts";
