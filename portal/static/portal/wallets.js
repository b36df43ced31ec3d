// Wallets of the browser: found by EIP-6963, or as `window.lukso` of the Universal Profile extension.

/** Return the providers that announce themselves within a moment, the Universal Profile extension first. */
export async function findWallets() {
  const found = new Map();
  const note = ({ detail }) => found.set(detail.info.rdns, { name: detail.info.name, provider: detail.provider });
  addEventListener("eip6963:announceProvider", note);
  dispatchEvent(new Event("eip6963:requestProvider"));
  await new Promise((resolve) => setTimeout(resolve, 300));
  removeEventListener("eip6963:announceProvider", note);
  const known = [...found.values()].map(({ provider }) => provider);
  if (window.lukso && !known.includes(window.lukso)) found.set("window.lukso", { name: "Universal Profile", provider: window.lukso });
  return [...found.values()].sort((a, b) => isProfileWallet(b) - isProfileWallet(a));
}

const isProfileWallet = ({ name }) => Number(/universal ?profile/i.test(name));

/** Ask the wallet for the profile that it opens to this page. */
export async function profileOf(provider) {
  const [address] = await provider.request({ method: "eth_requestAccounts", params: [] });
  if (!address) throw new Error("The extension showed no profile to this page.");
  return address;
}

/** Have a controller of the profile sign a message; the extension shows it first. */
export function signMessage(provider, address, message) {
  const hex = [...new TextEncoder().encode(message)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return provider.request({ method: "personal_sign", params: [`0x${hex}`, address] });
}

/** Ask the extension to relay through this service from now on; returns the profiles that the person chose. */
export function addRelayer(provider, service) {
  const relayer = { name: "Credit relay", apiUrl: service.relayerUrl, chainIds: [service.chainId] };
  return provider.request({ method: "up_addTransactionRelayer", params: [relayer] });
}

/** Have the extension send a call of the profile; it signs and gives it to its relayer. */
export function sendTransaction(provider, transaction) {
  return provider.request({ method: "eth_sendTransaction", params: [transaction] });
}

export const wasRejected = (error) => error?.code === 4001;

/** Return the wallet's provider that opens this profile to the page. */
export async function providerOf(address) {
  for (const { provider } of await findWallets()) {
    const opened = await provider.request({ method: "eth_accounts", params: [] });
    if (opened.some((account) => account.toLowerCase() === address.toLowerCase())) return provider;
  }
  throw new Error("Your extension does not show this profile to the page. Choose it in the extension, then try again.");
}
