/**
 * The fake Universal Profile extension with a plain test key, as one script for pages under test.
 *
 *     const extension = installExtension({ profiles: ["0x…"], privateKey: "0x…", node: { request: … } });
 *
 * If the page's policy forbids requests to a node, the test must forward those of `node`.
 */
import { secp256k1 } from "@noble/curves/secp256k1.js";
import { bytes, hex, join, keccak256 } from "../src/lsp25.ts";
import type { Hex } from "../src/lsp25.ts";
import type { Signer } from "../src/signers.ts";
import { FakeExtension } from "../src/testing.ts";
import type { ExtensionOptions } from "../src/testing.ts";

/** Signs with a key, without any wallet library. */
export function keySigner(privateKey: string): Signer {
  const key = bytes(privateKey);
  const point = secp256k1.getPublicKey(key, false).slice(1);
  const signHash = async (hash: Hex): Promise<string> => {
    const signature = secp256k1.sign(bytes(hash), key, { prehash: false, format: "recovered" });
    // The library writes the recovery bit first, Ethereum has 27 or 28 last.
    return hex(Uint8Array.of(...signature.slice(1), 27 + (signature[0] ?? 0)));
  };
  const signMessage = (message: string | Uint8Array): Promise<string> => {
    const content = typeof message === "string" ? new TextEncoder().encode(message) : message;
    const prefix = new TextEncoder().encode(`\x19Ethereum Signed Message:\n${content.length}`);
    return signHash(keccak256(join([hex(prefix), hex(content)])));
  };
  return { address: `0x${keccak256(hex(point)).slice(-40)}`, signHash, signMessage };
}

/** Puts the extension into this page. */
export function installExtension(
  options: Omit<ExtensionOptions, "signer"> & { privateKey: string },
): FakeExtension {
  const extension = new FakeExtension({ ...options, signer: keySigner(options.privateKey) });
  extension.install(window);
  return extension;
}

Object.assign(globalThis, { installExtension });
