/** Reads from the chain: key manager, nonce and chain id. */
import { addressWord, join, selector, word } from "./lsp25.ts";
import type { Hex } from "./lsp25.ts";
import { text } from "./signers.ts";
import type { Eip1193Provider } from "./signers.ts";

/** A node: its URL, or an object that sends requests to it, such as a public client of viem. */
export type Node = string | Eip1193Provider;

/** View functions of profiles and key managers, called through a node. */
export class ChainReader {
  private readonly provider: Eip1193Provider;

  constructor(node: Node, fetcher: typeof fetch) {
    this.provider = typeof node === "string" ? overHttp(node, fetcher) : node;
  }

  async chainId(): Promise<bigint> {
    return BigInt(text(await this.provider.request({ method: "eth_chainId" })));
  }

  /** The key manager of a profile: its owner. */
  async keyManager(profile: string): Promise<Hex> {
    const owner = await this.view(profile, [selector("owner()")]);
    return `0x${owner.slice(-40)}`;
  }

  /** The next nonce of a controller in a channel. */
  async nonce(keyManager: string, controller: string, channel: bigint): Promise<bigint> {
    const question = selector("getNonce(address,uint128)");
    return BigInt(await this.view(keyManager, [question, addressWord(controller), word(channel)]));
  }

  private async view(contract: string, calldata: readonly string[]): Promise<string> {
    const params = [{ to: contract, data: join(calldata) }, "latest"];
    const answer = text(await this.provider.request({ method: "eth_call", params }));
    if (answer.length !== 66) throw new TypeError(`${contract} is no contract that answers this.`);
    return answer;
  }
}

function overHttp(url: string, fetcher: typeof fetch): Eip1193Provider {
  return {
    async request({ method, params = [] }) {
      const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
      const response = await fetcher(url, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body,
      });
      const { result, error } = (await response.json()) as { result?: unknown; error?: { message: string } };
      if (error) throw new Error(`${method}: ${error.message}`);
      return result;
    },
  };
}
