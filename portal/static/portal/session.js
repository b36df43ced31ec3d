// The signed-in profile: its wallet and its API requests, through the client package that wallets use.

import { EXTENSION_RDNS, addRelayer, announcedWallets, connect } from "./relay-client.js";

const REMEMBERED = "credit-relay.profile";
const PATIENCE_SECONDS = 10;
const options = { url: location.origin, storage: sessionStorage, patienceSeconds: PATIENCE_SECONDS };

/** Return the wallets of this browser as {name, provider}, the Universal Profile extension first. */
export async function findWallets() {
  const found = (await announcedWallets()).map(({ info, provider }) => ({ ...info, provider }));
  const isKnown = found.some(({ provider }) => provider === window.lukso);
  if (window.lukso && !isKnown) found.push({ name: "Universal Profiles", rdns: EXTENSION_RDNS, provider: window.lukso });
  return found.sort((a, b) => (b.rdns === EXTENSION_RDNS) - (a.rdns === EXTENSION_RDNS));
}

/** A profile and its requests. Tokens are stored for this tab only, until it is closed. */
export class Session {
  constructor(relay, provider, address) {
    Object.assign(this, { relay, provider, address });
  }

  /** Return this tab's earlier session, or null. */
  static async remembered() {
    const address = sessionStorage.getItem(REMEMBERED);
    const [wallet] = address ? await findWallets() : [];
    if (!wallet) return null;
    const relay = await connect({ ...options, provider: wallet.provider, ask: false });
    return relay.isSignedIn(address) ? new Session(relay, wallet.provider, address) : null;
  }

  /** Sign in: the user selects a profile in the wallet and signs a message. */
  static async begin(provider) {
    const relay = await connect({ ...options, provider });
    const [address] = relay.profiles;
    if (!address) throw new Error("The extension did not share a profile with this page.");
    await relay.signIn(address);
    sessionStorage.setItem(REMEMBERED, address);
    return new Session(relay, provider, address);
  }

  get = (path, query) => this.relay.request(this.address, "get", path, { query });
  post = (path, body, headers) => this.relay.request(this.address, "post", path, { body, headers });
  delete = (path, body) => this.relay.request(this.address, "delete", path, { body });
  transactions = () => this.relay.transactions(this.address);
  earnings = () => this.relay.earnings(this.address);

  /** Add this service to the extension as a relayer; returns the profiles that the user selected. */
  addRelayer({ chainId }) {
    return addRelayer(this.provider, { name: "Credit relay", url: location.origin, chainIds: [chainId] });
  }

  /** Have the extension sign a call and submit it; the call is accepted when this returns. */
  async send(call) {
    // After a reload, the page has to request access to the profile again.
    await this.provider.request({ method: "eth_requestAccounts", params: [] });
    return this.relay.send(this.address, call);
  }

  async end() {
    await this.relay.signOut(this.address);
    Session.forget();
  }

  static forget() {
    for (const key of Object.keys(sessionStorage).filter((name) => name.startsWith("credit-relay"))) sessionStorage.removeItem(key);
  }
}

export const wasRejected = (error) => error?.code === 4001;
export const isSignedOut = (error) => error?.status === 401;
