/** Finds the Universal Profile browser extension in a page, and adds the service to it as a relayer. */
import type { ServedChain } from "./schema.ts";
import type { Eip1193Provider } from "./signers.ts";
import { text } from "./signers.ts";

/** A wallet announced through EIP-6963. */
export interface AnnouncedWallet {
  info: { uuid: string; name: string; icon: string; rdns: string };
  provider: Eip1193Provider;
}

/** The reverse domain name under which the extension announces itself. */
export const EXTENSION_RDNS = "cloud.universalprofile";
const ANNOUNCEMENT_MS = 200;

/** The extension's provider, by EIP-6963 or as `window.lukso`; undefined without the extension. */
export async function findExtension(waitMs = ANNOUNCEMENT_MS): Promise<Eip1193Provider | undefined> {
  const wallets = await announcedWallets(waitMs);
  const extension = wallets.find(({ info }) => info.rdns === EXTENSION_RDNS);
  return extension?.provider ?? (globalThis as { lukso?: Eip1193Provider }).lukso;
}

/** All wallets of the browser. */
export async function announcedWallets(waitMs = ANNOUNCEMENT_MS): Promise<AnnouncedWallet[]> {
  const wallets: AnnouncedWallet[] = [];
  const hear = (event: Event) => wallets.push((event as CustomEvent<AnnouncedWallet>).detail);
  window.addEventListener("eip6963:announceProvider", hear);
  window.dispatchEvent(new Event("eip6963:requestProvider"));
  await new Promise((resume) => setTimeout(resume, waitMs));
  window.removeEventListener("eip6963:announceProvider", hear);
  return wallets;
}

/**
 * What became of a chain: the wallet has added the service for the chosen profiles, or has refused it with an error, or
 * was not asked because the chain takes no calls now.
 */
export type AddedChain = { chain: ServedChain } & Outcome;
type Outcome =
  | { outcome: "added"; profiles: readonly string[] }
  | { outcome: "refused"; error: unknown }
  | { outcome: "not-asked" };

/**
 * Adds a service to the extension as a relayer of its home chain, and returns the profiles that the user chose for it.
 *
 * The extension throws code 4001 if its user declines, and if it already has this relayer.
 */
export async function addRelayer(
  provider: Eip1193Provider,
  relayer: { name: string; url: string; chainIds: readonly number[] },
): Promise<string[]> {
  const { name, url, chainIds } = relayer;
  return register(provider, { name, relayerUrl: `${withoutSlash(url)}/api/lsp15`, chainIds });
}

/**
 * Adds a service to the extension as a relayer of each of its chains that takes calls, one request after the other.
 *
 * `chains` are those of `GET /api/service`, the home chain first. The result has each of them, also those that the
 * extension refused.
 */
export async function addRelayers(
  provider: Eip1193Provider,
  relayer: { name: string; chains: readonly ServedChain[] },
): Promise<AddedChain[]> {
  const outcomes: AddedChain[] = [];
  for (const [place, chain] of relayer.chains.entries()) {
    const name = place ? `${relayer.name} (${chain.name})` : relayer.name;
    outcomes.push({ chain, ...(await outcomeOf(provider, name, chain)) });
  }
  return outcomes;
}

async function outcomeOf(provider: Eip1193Provider, name: string, chain: ServedChain): Promise<Outcome> {
  if (chain.state !== "accepting") return { outcome: "not-asked" };
  const { relayerUrl, chainId } = chain;
  try {
    return {
      outcome: "added",
      profiles: await register(provider, { name, relayerUrl, chainIds: [chainId] }),
    };
  } catch (error) {
    return { outcome: "refused", error };
  }
}

async function register(
  provider: Eip1193Provider,
  { name, relayerUrl, chainIds }: { name: string; relayerUrl: string; chainIds: readonly number[] },
): Promise<string[]> {
  const params = [{ name, apiUrl: `${withoutSlash(relayerUrl)}/`, chainIds: [...chainIds] }];
  const profiles = await provider.request({ method: "up_addTransactionRelayer", params });
  return (profiles as unknown[]).map(text);
}

const withoutSlash = (url: string): string => url.replace(/\/+$/, "");
