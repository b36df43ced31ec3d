// The API as this page uses it. Tokens live in this tab only and are gone when it is closed.

const KEY = "credit-relay.session";

/** A refusal of the API: `code` never changes, `detail` is for people, `members` is the whole problem document. */
export class Problem extends Error {
  constructor(members, retryAfter) {
    super(members.detail || members.title);
    Object.assign(this, { code: members.code, members, retryAfter });
  }
}

export class Api {
  #session = JSON.parse(sessionStorage.getItem(KEY) ?? "null");
  #refreshing = null;

  get address() {
    return this.#session?.address ?? null;
  }

  /** Sign in: `sign(message)` has a controller of the profile sign the text. */
  async signIn(address, sign) {
    const { nonce, message } = await this.#send("POST", "/api/auth/nonce", { address });
    this.#keep(await this.#send("POST", "/api/auth/verify", { nonce, address, signature: await sign(message) }));
  }

  forget() {
    this.#keep(null);
  }

  get = (path) => this.#authorised("GET", path);
  post = (path, body = {}, headers = {}) => this.#authorised("POST", path, body, headers);
  delete = (path, body) => this.#authorised("DELETE", path, body);

  /** Read what anybody may read. */
  open = (path) => this.#send("GET", path);

  async #authorised(method, path, body, headers = {}) {
    try {
      return await this.#send(method, path, body, { ...headers, Authorization: `Bearer ${this.#session?.access}` });
    } catch (error) {
      if (error.code !== "access-token-expired") throw error;
      await this.#refresh();
      return this.#send(method, path, body, { ...headers, Authorization: `Bearer ${this.#session.access}` });
    }
  }

  // Requests that expire together share one refresh: a refresh token is good for one exchange.
  #refresh() {
    this.#refreshing ??= this.#send("POST", "/api/auth/refresh", { refresh: this.#session.refresh })
      .then((pair) => this.#keep(pair))
      .finally(() => (this.#refreshing = null));
    return this.#refreshing;
  }

  #keep(session) {
    this.#session = session;
    if (session) sessionStorage.setItem(KEY, JSON.stringify(session));
    else sessionStorage.removeItem(KEY);
  }

  async #send(method, path, body, headers = {}) {
    const options = { method, headers: { ...headers } };
    if (body !== undefined) {
      options.headers["Content-Type"] = "application/json";
      options.body = JSON.stringify(body);
    }
    const response = await fetch(path, options);
    const members = await response.json();
    if (response.ok) return members;
    throw new Problem(members, Number(response.headers.get("Retry-After")));
  }
}

/** Whether the person has to sign in again. */
export const isSignedOut = (error) =>
  error instanceof Problem && (error.members.status === 401 || ["session-ended", "account-inactive"].includes(error.code));
