/** Finds the Universal Profile browser extension in a page, and adds the service to it as a relayer. */
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
 * Adds a service to the extension as a relayer, and returns the profiles that its user has chosen for it.
 *
 * The extension throws code 4001 if its user declines, and if it already has this relayer.
 */
export async function addRelayer(
  provider: Eip1193Provider,
  relayer: { name: string; url: string; chainIds: readonly number[] },
): Promise<string[]> {
  const { name, url, chainIds } = relayer;
  const apiUrl = `${url.replace(/\/+$/, "")}/api/lsp15/`;
  const params = [{ name, apiUrl, chainIds: [...chainIds] }];
  const profiles = await provider.request({ method: "up_addTransactionRelayer", params });
  return (profiles as unknown[]).map(text);
}
