// The signed-in profile: its wallet and its API requests, through the client package that wallets use.

import { EXTENSION_RDNS, addRelayers, announcedWallets, connect } from "./relay-client.js";

const REMEMBERED = "credit-relay.profile";
const PATIENCE_SECONDS = 3;
const options = { url: location.origin, storage: sessionStorage, patienceSeconds: PATIENCE_SECONDS };

/** Return the wallets of this browser as {name, provider}, the Universal Profile extension first. */
export async function findWallets() {
  const found = (await announcedWallets()).map(({ info, provider }) => ({ ...info, provider }));
  const isKnown = found.some(({ provider }) => provider === window.lukso);
  if (window.lukso && !isKnown)
    found.push({ name: "Universal Profiles", rdns: EXTENSION_RDNS, provider: window.lukso });
  return found.sort((a, b) => (b.rdns === EXTENSION_RDNS) - (a.rdns === EXTENSION_RDNS));
}

/** The tab's session has ended at the service, for example by "Sign out everywhere" on another device. */
export class SessionEnded extends Error {}

/** A wallet that is looked for when it is needed, and that signs a sign-in only where the user asked for one. */
class Wallet {
  signsIn = false;

  constructor(provider) {
    this.provider = provider;
  }

  async request(request) {
    if (request.method === "eth_accounts" && !this.provider) return [];
    if (request.method === "personal_sign" && !this.signsIn) throw new SessionEnded();
    return (await this.found()).request(request);
  }

  async found() {
    this.provider ??= (await findWallets())[0]?.provider;
    if (!this.provider) throw new Error("no-wallet");
    return this.provider;
  }
}

/** A profile and its requests. Tokens are stored for this tab only, until it is closed. */
export class Session {
  constructor(relay, wallet, address) {
    Object.assign(this, { relay, wallet, address });
  }

  /** Return this tab's earlier session, or null. */
  static async remembered() {
    const address = sessionStorage.getItem(REMEMBERED);
    if (!address) return null;
    const wallet = new Wallet();
    const relay = await connect({ ...options, provider: wallet, ask: false });
    return relay.isSignedIn(address) ? new Session(relay, wallet, address) : null;
  }

  /** Sign in: the user selects a profile in the wallet and signs a message. */
  static async begin(provider) {
    const wallet = new Wallet(provider);
    const relay = await connect({ ...options, provider: wallet });
    const [address] = relay.profiles;
    if (!address) throw new Error("no-profile");
    const session = new Session(relay, wallet, address);
    await session.signIn();
    sessionStorage.setItem(REMEMBERED, address);
    return session;
  }

  async signIn() {
    this.wallet.signsIn = true;
    try {
      // After a reload, a page has to ask for access to the profile again.
      await this.wallet.request({ method: "eth_requestAccounts", params: [] });
      await this.relay.signIn(this.address);
    } finally {
      this.wallet.signsIn = false;
    }
  }

  /** Sign in again, as the service requires before it deletes an account. */
  async signInAgain() {
    for (const key of Object.keys(sessionStorage).filter((name) =>
      name.endsWith(` ${this.address.toLowerCase()}`),
    ))
      sessionStorage.removeItem(key);
    await this.signIn();
  }

  get = (path, query) => this.relay.request(this.address, "get", path, { query });
  post = (path, body, headers) => this.relay.request(this.address, "post", path, { body, headers });
  put = (path, body) => this.relay.request(this.address, "put", path, { body });
  delete = (path, body) => this.relay.request(this.address, "delete", path, { body });

  /** Return a file of the API. The client package parses only JSON, so a JSON request renews the tokens first. */
  async text(path, query) {
    await this.get("/api/auth/me");
    const kept = Object.keys(sessionStorage).find((name) => name.endsWith(` ${this.address.toLowerCase()}`));
    const { access } = JSON.parse(sessionStorage.getItem(kept));
    const answer = await fetch(`${path}?${new URLSearchParams(query)}`, {
      headers: { authorization: `Bearer ${access}` },
    });
    if (!answer.ok) throw await answer.json();
    return answer.text();
  }

  transactions = () => this.relay.transactions(this.address);
  earnings = () => this.relay.earnings(this.address);

  /** Add this service to the extension as a relayer of each chain; returns what became of each chain. */
  async addRelayers(name) {
    // Read anew, because a chain may have been paused since the page was opened.
    const answer = await fetch("/api/service");
    if (!answer.ok) throw await answer.json();
    const { chains } = await answer.json();
    return addRelayers(await this.wallet.found(), { name, chains });
  }

  /** Have the extension sign a call and submit it; the call is accepted when this returns. */
  async send(call) {
    await this.wallet.request({ method: "eth_requestAccounts", params: [] });
    return this.relay.send(this.address, call);
  }

  async end() {
    try {
      await this.relay.signOut(this.address);
    } catch (error) {
      if (!(error instanceof SessionEnded)) throw error;
    } finally {
      Session.forget();
    }
  }

  static forget() {
    for (const key of Object.keys(sessionStorage).filter((name) => name.startsWith("credit-relay")))
      sessionStorage.removeItem(key);
  }
}

export const wasRejected = (error) => error?.code === 4001;
export const isSignedOut = (error) => error instanceof SessionEnded || error?.status === 401;
