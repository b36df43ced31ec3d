// Made from clients/typescript/src/index.ts by `python -m devstack npm run bundle`; change it there.

// clients/typescript/node_modules/@noble/hashes/_u64.js
var U32_MASK64 = /* @__PURE__ */ (() => BigInt(2 ** 32 - 1))();
var _32n = /* @__PURE__ */ BigInt(32);
function fromBig(n, le = false) {
  if (le)
    return { h: Number(n & U32_MASK64), l: Number(n >> _32n & U32_MASK64) };
  return { h: Number(n >> _32n & U32_MASK64) | 0, l: Number(n & U32_MASK64) | 0 };
}
function split(lst, le = false) {
  const len = lst.length;
  let Ah = new Uint32Array(len);
  let Al = new Uint32Array(len);
  for (let i = 0; i < len; i++) {
    const { h, l } = fromBig(lst[i], le);
    [Ah[i], Al[i]] = [h, l];
  }
  return [Ah, Al];
}

// clients/typescript/node_modules/@noble/hashes/utils.js
function isBytes(a) {
  return a instanceof Uint8Array || ArrayBuffer.isView(a) && a.constructor.name === "Uint8Array" && "BYTES_PER_ELEMENT" in a && a.BYTES_PER_ELEMENT === 1;
}
var atitle = (title) => title ? `"${title}" ` : "";
function anumber(n, title = "") {
  if (typeof n !== "number")
    throw new TypeError(atitle(title) + "expected number, got " + typeof n);
  if (!Number.isSafeInteger(n) || n < 0)
    throw new RangeError(atitle(title) + "expected integer >= 0, got " + n);
  return n;
}
function abool(value, title = "") {
  if (typeof value !== "boolean")
    throw new TypeError(atitle(title) + "expected boolean, got type=" + typeof value);
  return value;
}
function abytes(value, length, title = "") {
  if (isBytes(value) && (length === void 0 || value.length === length))
    return value;
  if (length !== void 0)
    anumber(length, "length");
  const bytes2 = isBytes(value);
  const ofLen = length !== void 0 ? ` of length ${length}` : "";
  const got = bytes2 ? `length=${value.length}` : `type=${typeof value}`;
  const message = atitle(title) + "expected Uint8Array" + ofLen + ", got " + got;
  if (!bytes2)
    throw new TypeError(message);
  throw new RangeError(message);
}
var aobject = (value, label) => {
  if (value === null || typeof value !== "object" || Array.isArray(value))
    throw new TypeError((label === "object" ? "" : `"${label}" `) + "expected object, got type=" + typeof value);
};
var aopts = (value, label) => {
  aobject(value, label);
  const proto = Object.getPrototypeOf(value);
  if (proto !== Object.prototype && proto !== null)
    throw new TypeError(`"${label}" expected plain object`);
  if (Object.hasOwn(value, "__proto__"))
    throw new TypeError(`"${label}.__proto__" is not allowed`);
};
function aexists(instance, checkFinished = true) {
  if (instance.destroyed)
    throw new Error("hash was destroyed");
  if (checkFinished && instance.finished)
    throw new Error("digest() was already called");
}
function aoutput(out, instance) {
  abytes(out, void 0, "output");
  const min = instance.outputLen;
  if (!(out.length >= min)) {
    throw new RangeError('"output" expected length >= ' + min);
  }
}
function u32(arr) {
  return new Uint32Array(arr.buffer, arr.byteOffset, Math.floor(arr.byteLength / 4));
}
function clean(...arrays) {
  for (let i = 0; i < arrays.length; i++) {
    arrays[i].fill(0);
  }
}
var isLE = /* @__PURE__ */ (() => new Uint8Array(new Uint32Array([287454020]).buffer)[0] === 68)();
function byteSwap(word2) {
  return word2 << 24 & 4278190080 | word2 << 8 & 16711680 | word2 >>> 8 & 65280 | word2 >>> 24 & 255;
}
function byteSwap32(arr) {
  for (let i = 0; i < arr.length; i++) {
    arr[i] = byteSwap(arr[i]);
  }
  return arr;
}
var swap32IfBE = isLE ? (u) => u : byteSwap32;
function checkOpts(defaults, opts, title = "opts") {
  aopts(defaults, "defaults");
  if (opts !== void 0)
    aopts(opts, title);
  const merged = Object.assign(/* @__PURE__ */ Object.create(null), defaults, opts);
  return merged;
}
function createHasher(hashCons, info = {}) {
  if (typeof hashCons !== "function")
    throw new TypeError('"hashCons" expected function, got type=' + typeof hashCons);
  info = checkOpts({}, info, "info");
  const hashC = (msg, opts) => hashCons(opts).update(msg).digest();
  const tmp = hashCons(void 0);
  hashC.outputLen = tmp.outputLen;
  hashC.blockLen = tmp.blockLen;
  hashC.canXOF = tmp.canXOF;
  hashC.create = (opts) => hashCons(opts);
  Object.assign(hashC, info);
  return Object.freeze(hashC);
}

// clients/typescript/node_modules/@noble/hashes/sha3.js
var _0n = BigInt(0);
var _1n = BigInt(1);
var _2n = BigInt(2);
var _7n = BigInt(7);
var _256n = BigInt(256);
var _0x71n = BigInt(113);
var SHA3_PI = [];
var SHA3_ROTL = [];
var _SHA3_IOTA = [];
for (let round = 0, R = _1n, x = 1, y = 0; round < 24; round++) {
  [x, y] = [y, (2 * x + 3 * y) % 5];
  SHA3_PI.push(2 * (5 * y + x));
  SHA3_ROTL.push((round + 1) * (round + 2) / 2 % 64);
  let t = _0n;
  for (let j = 0; j < 7; j++) {
    R = (R << _1n ^ (R >> _7n) * _0x71n) % _256n;
    if (R & _2n)
      t ^= _1n << (_1n << BigInt(j)) - _1n;
  }
  _SHA3_IOTA.push(t);
}
var IOTAS = split(_SHA3_IOTA, true);
var SHA3_IOTA_H = IOTAS[0];
var SHA3_IOTA_L = IOTAS[1];
var rotlSH = (h, l, s) => h << s | l >>> 32 - s;
var rotlSL = (h, l, s) => l << s | h >>> 32 - s;
var rotlBH = (h, l, s) => l << s - 32 | h >>> 64 - s;
var rotlBL = (h, l, s) => h << s - 32 | l >>> 64 - s;
var rotlH = (h, l, s) => s > 32 ? rotlBH(h, l, s) : rotlSH(h, l, s);
var rotlL = (h, l, s) => s > 32 ? rotlBL(h, l, s) : rotlSL(h, l, s);
var B = new Uint32Array(5 * 2);
function keccakP(s, rounds = 24) {
  if (!(s instanceof Uint32Array))
    throw new TypeError('"s" expected Uint32Array(50), got type=' + typeof s);
  if (s.length !== 50)
    throw new RangeError('"s" expected Uint32Array(50), got length=' + s.length);
  anumber(rounds, "rounds");
  if (rounds < 1 || rounds > 24)
    throw new Error('"rounds" expected integer 1..24');
  for (let round = 24 - rounds; round < 24; round++) {
    for (let x = 0; x < 10; x++)
      B[x] = s[x] ^ s[x + 10] ^ s[x + 20] ^ s[x + 30] ^ s[x + 40];
    for (let x = 0; x < 10; x += 2) {
      const idx1 = (x + 8) % 10;
      const idx0 = (x + 2) % 10;
      const B0 = B[idx0];
      const B1 = B[idx0 + 1];
      const Th = rotlH(B0, B1, 1) ^ B[idx1];
      const Tl = rotlL(B0, B1, 1) ^ B[idx1 + 1];
      for (let y = 0; y < 50; y += 10) {
        s[x + y] ^= Th;
        s[x + y + 1] ^= Tl;
      }
    }
    let curH = s[2];
    let curL = s[3];
    for (let t = 0; t < 24; t++) {
      const shift = SHA3_ROTL[t];
      const Th = rotlH(curH, curL, shift);
      const Tl = rotlL(curH, curL, shift);
      const PI = SHA3_PI[t];
      curH = s[PI];
      curL = s[PI + 1];
      s[PI] = Th;
      s[PI + 1] = Tl;
    }
    for (let y = 0; y < 50; y += 10) {
      const b0 = s[y], b1 = s[y + 1], b2 = s[y + 2], b3 = s[y + 3];
      s[y] ^= ~s[y + 2] & s[y + 4];
      s[y + 1] ^= ~s[y + 3] & s[y + 5];
      s[y + 2] ^= ~s[y + 4] & s[y + 6];
      s[y + 3] ^= ~s[y + 5] & s[y + 7];
      s[y + 4] ^= ~s[y + 6] & s[y + 8];
      s[y + 5] ^= ~s[y + 7] & s[y + 9];
      s[y + 6] ^= ~s[y + 8] & b0;
      s[y + 7] ^= ~s[y + 9] & b1;
      s[y + 8] ^= ~b0 & b2;
      s[y + 9] ^= ~b1 & b3;
    }
    s[0] ^= SHA3_IOTA_H[round];
    s[1] ^= SHA3_IOTA_L[round];
  }
  clean(B);
}
var Keccak = class _Keccak {
  state;
  pos = 0;
  posOut = 0;
  finished = false;
  state32;
  destroyed = false;
  blockLen;
  suffix;
  outputLen;
  canXOF;
  enableXOF = false;
  rounds;
  // NOTE: we accept arguments in bytes instead of bits here.
  constructor(blockLen, suffix, outputLen, enableXOF = false, rounds = 24) {
    anumber(blockLen, "blockLen");
    anumber(suffix, "suffix");
    anumber(rounds, "rounds");
    abool(enableXOF, "enableXOF");
    this.blockLen = blockLen;
    this.suffix = suffix;
    this.outputLen = outputLen;
    this.enableXOF = enableXOF;
    this.canXOF = enableXOF;
    this.rounds = rounds;
    anumber(outputLen, "outputLen");
    if (!(0 < blockLen && blockLen < 200))
      throw new Error('"blockLen" must be 1..199');
    this.state = new Uint8Array(200);
    this.state32 = u32(this.state);
  }
  clone() {
    return this._cloneInto();
  }
  keccak() {
    swap32IfBE(this.state32);
    keccakP(this.state32, this.rounds);
    swap32IfBE(this.state32);
    this.posOut = 0;
    this.pos = 0;
  }
  update(data) {
    aexists(this);
    abytes(data);
    const { blockLen, state, state32 } = this;
    const len = data.length;
    const canUseU32 = blockLen % 4 === 0 && data.byteOffset % 4 === 0;
    const blockLen32 = blockLen / 4;
    const data32 = canUseU32 && len >= blockLen ? u32(data) : void 0;
    for (let pos = 0; pos < len; ) {
      if (data32 !== void 0 && this.pos === 0 && pos % 4 === 0 && len - pos >= blockLen) {
        for (let i = 0, o = pos / 4; i < blockLen32; i++)
          state32[i] ^= data32[o + i];
        pos += blockLen;
        this.pos = blockLen;
        this.keccak();
        continue;
      }
      const take = Math.min(blockLen - this.pos, len - pos);
      for (let i = 0; i < take; i++)
        state[this.pos++] ^= data[pos++];
      if (this.pos === blockLen)
        this.keccak();
    }
    return this;
  }
  finish() {
    if (this.finished)
      return;
    this.finished = true;
    const { state, suffix, pos, blockLen } = this;
    state[pos] ^= suffix;
    if ((suffix & 128) !== 0 && pos === blockLen - 1)
      this.keccak();
    state[blockLen - 1] ^= 128;
    this.keccak();
  }
  writeInto(out) {
    aexists(this, false);
    abytes(out);
    this.finish();
    const bufferOut = this.state;
    const { blockLen } = this;
    for (let pos = 0, len = out.length; pos < len; ) {
      if (this.posOut >= blockLen)
        this.keccak();
      const take = Math.min(blockLen - this.posOut, len - pos);
      out.set(bufferOut.subarray(this.posOut, this.posOut + take), pos);
      this.posOut += take;
      pos += take;
    }
    return out;
  }
  xofInto(out) {
    if (!this.enableXOF)
      throw new Error("XOF is not enabled");
    return this.writeInto(out);
  }
  xof(bytes2) {
    anumber(bytes2);
    return this.xofInto(new Uint8Array(bytes2));
  }
  digestInto(out) {
    aoutput(out, this);
    if (this.finished)
      throw new Error("digest() was already called");
    this.writeInto(out.length === this.outputLen ? out : out.subarray(0, this.outputLen));
    this.destroy();
  }
  digest() {
    const out = new Uint8Array(this.outputLen);
    this.digestInto(out);
    return out;
  }
  destroy() {
    this.destroyed = true;
    clean(this.state);
  }
  _cloneInto(to) {
    const { blockLen, suffix, outputLen, rounds, enableXOF } = this;
    to ||= new _Keccak(blockLen, suffix, outputLen, enableXOF, rounds);
    to.blockLen = blockLen;
    to.state32.set(this.state32);
    to.pos = this.pos;
    to.posOut = this.posOut;
    to.finished = this.finished;
    to.rounds = rounds;
    to.suffix = suffix;
    to.outputLen = outputLen;
    to.enableXOF = enableXOF;
    to.canXOF = this.canXOF;
    to.destroyed = this.destroyed;
    return to;
  }
};
var genKeccak = (suffix, blockLen, outputLen, info = {}) => createHasher(() => new Keccak(blockLen, suffix, outputLen), info);
var keccak_256 = /* @__PURE__ */ genKeccak(1, 136, 32);

// clients/typescript/src/lsp25.ts
var LSP25_VERSION = 25n;
var PERMISSIONS = "0x4b80742de2bf82acb3630000";
var OPERATION_CALL = 0n;
var OFFSET_OF_BYTES = 128n;
function relayCallHash(call) {
  const { chainId, keyManager, nonce, payload, validityTimestamps = 0n } = call;
  const words = [LSP25_VERSION, chainId, nonce, validityTimestamps, 0n].map((value) => word(value));
  return keccak256(join(["0x1900", address(keyManager, "keyManager"), ...words, payload]));
}
function encodeCalls(calls) {
  if (!Array.isArray(calls)) return encodeExecute(checkedCall(calls, "call"));
  const list = calls.map((call, index) => checkedCall(call, `calls[${index}]`));
  const [only] = list;
  if (only === void 0) throw new TypeError("There is no call to encode.");
  return list.length === 1 ? encodeExecute(only) : encodeExecuteBatch(list);
}
function checkedCall(call, name) {
  const { to, value = 0n, data = "0x" } = call ?? {};
  address(to, `${name}.to`);
  if (typeof value !== "bigint") {
    throw new TypeError(`${name}.value: ${shown(value)} is not a bigint of wei, such as 1n.`);
  }
  word(value, `${name}.value`);
  checked(data, `${name}.data`);
  return { to, value, data };
}
function encodeExecute({ to, value = 0n, data = "0x" }) {
  const head = [word(OPERATION_CALL), addressWord(to), word(value), word(OFFSET_OF_BYTES)];
  return join([selector("execute(uint256,address,uint256,bytes)"), ...head, tail(data)]);
}
function encodeExecuteBatch(calls) {
  const count = BigInt(calls.length);
  const array = (words) => join([word(count), ...words]);
  const datas = calls.map(({ data = "0x" }) => tail(data));
  const offsets = datas.map((_, index) => word(32n * count + sizeOf(join(datas.slice(0, index)))));
  const members = [
    array(calls.map(() => word(OPERATION_CALL))),
    array(calls.map(({ to }) => addressWord(to))),
    array(calls.map(({ value = 0n }) => word(value))),
    array([...offsets, ...datas])
  ];
  const head = members.map((_, index) => word(OFFSET_OF_BYTES + sizeOf(join(members.slice(0, index)))));
  return join([selector("executeBatch(uint256[],address[],uint256[],bytes[])"), ...head, ...members]);
}
function encodeRemoval(removal) {
  const keys = removal.map(
    ({ address: value }, index) => join([PERMISSIONS, address(value, `removal[${index}].address`)])
  );
  const values = removal.map(
    ({ permissions }) => tail(BigInt(permissions) ? word(BigInt(permissions)) : "0x")
  );
  const count = word(BigInt(removal.length));
  const offsets = values.map(
    (_, index) => word(32n * BigInt(removal.length) + sizeOf(join(values.slice(0, index))))
  );
  const head = [word(64n), word(96n + sizeOf(join(keys)))];
  const arrays = [count, ...keys, count, ...offsets, ...values];
  return join([selector("setDataBatch(bytes32[],bytes[])"), ...head, ...arrays]);
}
function quotaMessage(profile, timestamp) {
  return bytes(keccak256(join([address(profile, "profile"), word(BigInt(timestamp))])));
}
function selector(signature) {
  return hex(keccak_256(new TextEncoder().encode(signature)).slice(0, 4));
}
function word(value, name = "number") {
  if (value < 0n || value >> 256n) throw new RangeError(`${name}: ${value} does not fit into 256 bits.`);
  return `0x${value.toString(16).padStart(64, "0")}`;
}
function addressWord(value) {
  return word(BigInt(address(value, "address")));
}
function join(parts) {
  return `0x${parts.map((part) => checked(part).slice(2)).join("")}`;
}
function hex(value) {
  return `0x${Array.from(value, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
function bytes(value) {
  return Uint8Array.from(checked(value).slice(2).match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}
function keccak256(value) {
  return hex(keccak_256(bytes(value)));
}
function address(value, name) {
  if (typeof value !== "string" || !/^0x[0-9a-f]{40}$/i.test(value)) {
    throw new TypeError(`${name}: ${shown(value)} is not an address: 0x and 40 hex digits.`);
  }
  const digits = value.slice(2);
  const isMixed = digits !== digits.toLowerCase() && digits !== digits.toUpperCase();
  if (isMixed && digits !== checksummed(digits.toLowerCase())) {
    throw new TypeError(`${name}: the checksum (EIP-55) of ${value} is wrong. Copy the address again.`);
  }
  return value;
}
function checksummed(digits) {
  const hash = hex(keccak_256(new TextEncoder().encode(digits))).slice(2);
  return Array.from(
    digits,
    (digit, index) => Number.parseInt(hash[index] ?? "0", 16) < 8 ? digit : digit.toUpperCase()
  ).join("");
}
function checked(value, name = "bytes") {
  if (typeof value !== "string" || !/^0x([0-9a-f]{2})*$/i.test(value)) {
    throw new TypeError(`${name}: ${shown(value)} is not hex with 0x.`);
  }
  return value;
}
function shown(value) {
  return value === void 0 ? "nothing" : String(value);
}
function tail(data) {
  const digits = checked(data).slice(2);
  return join([
    word(BigInt(digits.length / 2)),
    `0x${digits.padEnd(Math.ceil(digits.length / 64) * 64, "0")}`
  ]);
}
function sizeOf(value) {
  return BigInt((value.length - 2) / 2);
}

// clients/typescript/src/signers.ts
function viemSigner(account) {
  const { address: address2, sign } = account;
  if (!sign) throw new TypeError("This account of viem cannot sign a hash; use one made from a key.");
  return {
    address: address2,
    signMessage: (message) => account.signMessage({ message: typeof message === "string" ? message : { raw: message } }),
    signHash: (hash) => sign({ hash })
  };
}
function ethersSigner(wallet) {
  return {
    address: wallet.address,
    signMessage: (message) => wallet.signMessage(message),
    signHash: async (hash) => wallet.signingKey.sign(hash).serialized
  };
}
async function personalSign(provider, profile, message) {
  const raw = typeof message === "string" ? new TextEncoder().encode(message) : message;
  return text(await provider.request({ method: "personal_sign", params: [hex(raw), profile] }));
}
function text(answer) {
  if (typeof answer !== "string") throw new TypeError(`Expected a string, not ${JSON.stringify(answer)}.`);
  return answer;
}

// clients/typescript/src/chain.ts
var ChainReader = class {
  provider;
  constructor(node, fetcher) {
    this.provider = typeof node === "string" ? overHttp(node, fetcher) : node;
  }
  async chainId() {
    return BigInt(text(await this.provider.request({ method: "eth_chainId" })));
  }
  /** The key manager of a profile: its owner. */
  async keyManager(profile) {
    const owner = await this.view(profile, [selector("owner()")]);
    return `0x${owner.slice(-40)}`;
  }
  /** The next nonce of a controller in a channel. */
  async nonce(keyManager, controller, channel) {
    const question = selector("getNonce(address,uint128)");
    return BigInt(await this.view(keyManager, [question, addressWord(controller), word(channel)]));
  }
  async view(contract, calldata) {
    const params = [{ to: contract, data: join(calldata) }, "latest"];
    const answer = text(await this.provider.request({ method: "eth_call", params }));
    if (answer.length !== 66) throw new TypeError(`${contract} is no contract that answers this.`);
    return answer;
  }
};
function overHttp(url, fetcher) {
  return {
    async request({ method, params = [] }) {
      const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
      const response = await fetcher(url, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body
      });
      const { result, error } = await response.json();
      if (error) throw new Error(`${method}: ${error.message}`);
      return result;
    }
  };
}

// clients/typescript/src/http.ts
var RelayProblem = class extends Error {
  name = "RelayProblem";
  code;
  status;
  detail;
  /** The request id, for support. */
  requestId;
  members;
  /** Seconds until the next attempt; undefined if a retry is pointless. */
  retryAfter;
  constructor(problem, retryAfter) {
    super(`${problem.code}: ${problem.detail}`);
    const { type: _type, title: _title, code, status, detail, requestId, ...members } = problem;
    this.code = code;
    this.status = status;
    this.detail = detail;
    this.requestId = requestId;
    this.members = members;
    this.retryAfter = retryAfter;
  }
};
var ServiceUnreachable = class extends Error {
  name = "ServiceUnreachable";
};
var TIMEOUT_MS = 4e4;
var WAIT_STATUSES = /* @__PURE__ */ new Set([429, 503]);
var FIRST_PAUSE_SECONDS = 0.5;
var FIRST_CONTACT_SECONDS = 4;
var Http = class {
  url;
  patienceSeconds;
  fetcher;
  /** Whether the service has responded at this URL, maybe on an earlier visit. */
  isKnown = false;
  constructor(url, fetcher, patienceSeconds) {
    this.url = url.replace(/\/+$/, "");
    this.fetcher = fetcher;
    this.patienceSeconds = patienceSeconds;
  }
  /** Makes a request once. */
  async once(method, path, { body, query = {}, headers = {} } = {}) {
    const address2 = new URL(this.url + path);
    for (const [name, value] of Object.entries(query)) {
      if (value !== void 0) address2.searchParams.set(name, String(value));
    }
    const request = { method: method.toUpperCase(), headers: { ...headers } };
    if (body !== void 0) {
      request.headers = { ...headers, "content-type": "application/json" };
      request.body = JSON.stringify(body);
    }
    let response;
    let answer;
    try {
      response = await this.fetcher(address2, { ...request, signal: AbortSignal.timeout(TIMEOUT_MS) });
      answer = await response.json();
    } catch (cause) {
      throw this.unreachable(`No response of ${this.url} to ${request.method} ${path}.`, { cause });
    }
    this.isKnown ||= response.ok || isProblem(answer);
    if (response.ok) return answer;
    if (!isProblem(answer)) throw this.unreachable(`${this.url} responded ${response.status} to ${path}.`);
    throw new RelayProblem(answer, secondsOf(response));
  }
  unreachable(text2, options) {
    return new ServiceUnreachable(this.isKnown ? text2 : `${text2} Is it the URL of the service?`, options);
  }
  /**
   * Retries an attempt while the service is busy or unreachable, for at most `seconds`; for four seconds if it has never responded.
   *
   * The attempt must be idempotent. All requests of this package are: the same signed relay call is one transaction, a
   * subscription is created once, and a check-in, a purchase and a new profile have an idempotency key.
   */
  async patiently(attempt, seconds = this.patienceSeconds) {
    const began = Date.now();
    for (let pause = FIRST_PAUSE_SECONDS; ; pause *= 2) {
      try {
        return await attempt();
      } catch (error) {
        const wait = error instanceof ServiceUnreachable ? pause : error instanceof RelayProblem ? error.retryAfter : void 0;
        const longest = this.isKnown ? seconds : Math.min(seconds, FIRST_CONTACT_SECONDS);
        if (wait === void 0 || Date.now() + 1e3 * wait > began + 1e3 * longest) throw error;
        await sleep(wait);
      }
    }
  }
};
function sleep(seconds) {
  return new Promise((resume) => setTimeout(resume, 1e3 * seconds));
}
function secondsOf(response) {
  const seconds = Number(response.headers.get("retry-after"));
  if (seconds > 0) return seconds;
  return WAIT_STATUSES.has(response.status) ? 1 : void 0;
}
function isProblem(answer) {
  return typeof answer === "object" && answer !== null && "code" in answer && "detail" in answer;
}

// clients/typescript/src/routes.ts
var SignerRoute = class {
  profiles = [];
  controller;
  signer;
  chain;
  constructor(signer, chain) {
    this.signer = signer;
    this.controller = signer.address;
    this.chain = chain;
  }
  signMessage(_profile, message) {
    return this.signer.signMessage(message);
  }
  signHash(hash) {
    return this.signer.signHash(hash);
  }
  async send(draft) {
    const { session, payload, validityTimestamps, prepared, sponsorVoucher } = draft;
    const { keyManagerAddress, transaction } = prepared;
    const chainId = BigInt(prepared.chainId);
    await this.check(session.profile, keyManagerAddress, chainId);
    const nonce = BigInt(transaction.nonce);
    const call = { chainId, keyManager: keyManagerAddress, nonce, payload, validityTimestamps };
    const signature = await this.signer.signHash(relayCallHash(call));
    const numbers = { nonce: String(nonce), validityTimestamps: String(validityTimestamps) };
    const body = {
      keyManagerAddress,
      transaction: { abi: payload, signature, ...numbers },
      ...draft.chainId !== void 0 && { chainId: draft.chainId }
    };
    const headers = {};
    if (prepared.quote) headers["relay-quote"] = prepared.quote.id;
    if (prepared.sponsor) {
      headers["relay-sponsor"] = prepared.sponsor.name;
      if (sponsorVoucher) headers["relay-sponsor-voucher"] = sponsorVoucher;
    }
    const answer = await session.request("post", "/api/relay/execute", {
      body,
      headers
    });
    return answer.transactionHash;
  }
  async check(profile, keyManager, chainId) {
    if (!this.chain) return;
    const onChain = await this.chain.keyManager(profile);
    if (onChain.toLowerCase() !== keyManager.toLowerCase() || await this.chain.chainId() !== chainId) {
      throw new Error("The service prepared the call for another key manager or chain than the node names.");
    }
  }
};
var ProviderRoute = class _ProviderRoute {
  profiles;
  controller = void 0;
  provider;
  constructor(provider, profiles) {
    this.provider = provider;
    this.profiles = profiles;
  }
  static async of(provider, ask) {
    const profiles = await provider.request({ method: ask ? "eth_requestAccounts" : "eth_accounts" });
    return new _ProviderRoute(provider, profiles.map(text));
  }
  signMessage(profile, message) {
    return personalSign(this.provider, profile, message);
  }
  signHash() {
    return Promise.reject(new Error("A wallet behind a provider signs only the calls that it sends itself."));
  }
  async send({ session: { profile }, work, payload }) {
    const { to, value = 0n, data = "0x" } = "to" in work ? work : { to: profile, data: payload };
    const transaction = { from: profile, to, value: `0x${value.toString(16)}`, data };
    return text(await this.provider.request({ method: "eth_sendTransaction", params: [transaction] }));
  }
};

// clients/typescript/src/session.ts
var RENEW_SECONDS_BEFORE_END = 30;
var REFRESH_PATIENCE_SECONDS = 8;
var RENEWABLE = /* @__PURE__ */ new Set([
  "access-token-expired",
  "not-authenticated",
  "session-ended",
  "controller-revoked"
]);
var Session = class {
  profile;
  http;
  storage;
  domain;
  sign;
  renewal;
  constructor(profile, service, sign) {
    this.profile = profile;
    this.http = service.http;
    this.storage = service.storage;
    this.domain = service.domain;
    this.sign = sign;
    if (this.exists) this.http.isKnown = true;
  }
  /** Whether there are tokens, maybe of an earlier visit, which may have expired. */
  get exists() {
    return this.tokens !== void 0;
  }
  /** Signs in unless there are tokens. */
  async open() {
    if (!this.tokens) await this.renew();
  }
  /** Ends the session at the service and deletes the tokens. */
  async close() {
    if (!this.tokens) return;
    try {
      await this.request("post", "/api/auth/logout", { body: {} });
    } finally {
      this.storage.removeItem(this.key);
    }
  }
  /** Makes a request as the profile; renews an expired token and retries. */
  async request(method, path, parts = {}, patienceSeconds) {
    const attempt = async (tokens2) => {
      const headers = { ...parts.headers, authorization: `Bearer ${tokens2.access}` };
      return this.http.patiently(() => this.http.once(method, path, { ...parts, headers }), patienceSeconds);
    };
    const tokens = await this.freshTokens();
    try {
      return await attempt(tokens);
    } catch (error) {
      if (!(error instanceof RelayProblem && RENEWABLE.has(error.code))) throw error;
      return attempt(await this.renew(tokens));
    }
  }
  async freshTokens() {
    const tokens = this.tokens;
    const isFresh = tokens && tokens.expiresAt - Date.now() / 1e3 > RENEW_SECONDS_BEFORE_END;
    return isFresh ? tokens : this.renew();
  }
  /** Renews the tokens once for all waiting callers; `refused` are those that the service rejected. */
  renew(refused) {
    const tokens = this.tokens;
    if (refused && tokens && tokens.access !== refused.access) return Promise.resolve(tokens);
    this.renewal ??= this.newTokens(tokens).finally(() => this.renewal = void 0);
    return this.renewal;
  }
  async newTokens(tokens) {
    if (!tokens) return this.signIn();
    const { refresh } = tokens;
    try {
      const attempt = () => this.http.once("post", "/api/auth/refresh", { body: { refresh } });
      return this.keep(await this.http.patiently(attempt, REFRESH_PATIENCE_SECONDS));
    } catch (error) {
      if (!(error instanceof RelayProblem && error.status === 401)) throw error;
      this.storage.removeItem(this.key);
      return this.signIn();
    }
  }
  signIn() {
    return this.http.patiently(async () => {
      const body = { address: this.profile };
      const { nonce, message } = await this.http.once("post", "/api/auth/nonce", { body });
      const isOurs = message.startsWith(`${this.domain} wants you to sign in with your Ethereum account:
`);
      if (!isOurs) throw new Error(`The sign-in message of ${this.http.url} is not for ${this.domain}.`);
      const proof = { nonce, signature: await this.sign(message) };
      return this.keep(
        await this.http.once("post", "/api/auth/verify", { body: proof })
      );
    });
  }
  keep({ access, refresh, expiresIn }) {
    const tokens = { access, refresh, expiresAt: Date.now() / 1e3 + expiresIn };
    this.storage.setItem(this.key, JSON.stringify(tokens));
    return tokens;
  }
  get tokens() {
    const kept = this.storage.getItem(this.key);
    return kept === null ? void 0 : JSON.parse(kept);
  }
  get key() {
    return `credit-relay ${this.http.url} ${this.profile.toLowerCase()}`;
  }
};
var MemoryStorage = class {
  values = /* @__PURE__ */ new Map();
  getItem(key) {
    return this.values.get(key) ?? null;
  }
  setItem(key, value) {
    this.values.set(key, value);
  }
  removeItem(key) {
    this.values.delete(key);
  }
};

// clients/typescript/src/relay.ts
var OUTDATED = /* @__PURE__ */ new Set([
  ...["relay-nonce-gap", "relay-nonce-taken", "relay-nonce-used"],
  ...["quote-expired", "quote-used", "quote-outdated", "quote-not-found", "quote-for-other-call"]
]);
var OPEN_STATUSES = /* @__PURE__ */ new Set(["Pending", "Submitted"]);
var WAIT_SECONDS = 20;
var PAUSE_SECONDS = 0.5;
var HOUR_SECONDS = 3600;
async function connect(options) {
  const { url, domain = new URL(url).host, storage = new MemoryStorage(), patienceSeconds = 60 } = options;
  const fetcher = (options.fetch ?? fetch).bind(globalThis);
  const http = new Http(url, fetcher, patienceSeconds);
  const route = "provider" in options ? await ProviderRoute.of(options.provider, options.ask ?? true) : new SignerRoute(
    options.signer,
    options.node === void 0 ? void 0 : new ChainReader(options.node, fetcher)
  );
  return new Relay({ http, domain, storage }, route);
}
var Relay = class {
  /** The profiles that the provider has connected; empty with a signer, which may sign for several. */
  profiles;
  service;
  route;
  sessions = /* @__PURE__ */ new Map();
  /** By channel: the call that is being sent. */
  channels = /* @__PURE__ */ new Map();
  constructor(service, route) {
    this.service = service;
    this.route = route;
    this.profiles = route.profiles;
  }
  /** Signs a profile in now, instead of with its first request. */
  async signIn(profile) {
    await this.session(profile).open();
  }
  /** Whether a profile has signed in, maybe on an earlier visit. */
  isSignedIn(profile) {
    return this.session(profile).exists;
  }
  async signOut(profile) {
    await this.session(profile).close();
  }
  /** Returns the cost of a call, and why the service would reject it, before the wallet signs it. */
  async prepare(profile, work, options = {}) {
    const { channel = 0n, validSeconds = HOUR_SECONDS } = options;
    const quote = this.route.controller !== void 0 && (options.quote ?? true);
    if (options.sponsor !== void 0 && this.route.controller === void 0) {
      throw new Error("The wallet behind a provider submits calls itself, so they can name no sponsor.");
    }
    if (options.chainId !== void 0 && this.route.controller === void 0) {
      throw new Error("The wallet behind a provider submits calls itself, to the chain that it is on.");
    }
    const session = this.session(profile);
    const payload = "payload" in work ? work.payload : encodeCalls(work);
    const validityTimestamps = BigInt(Math.floor(Date.now() / 1e3) + validSeconds);
    const numbers = { channel: String(channel), validityTimestamps: String(validityTimestamps) };
    const { controller } = this.route;
    const { sponsor, sponsorFallback = null, sponsorVoucher, chainId } = options;
    const payer = sponsor === void 0 ? {} : { sponsor, sponsorFallback, ...sponsorVoucher && { sponsorVoucher } };
    const body = {
      transaction: { abi: payload },
      ...numbers,
      quote,
      ...payer,
      ...controller && { controller },
      ...chainId !== void 0 && { chainId }
    };
    const prepared = await session.request("post", "/api/relay/prepare", { body });
    if (chainId !== void 0 && prepared.chainId !== chainId) {
      throw new Error("The service prepared the call for another chain.");
    }
    return new PreparedCall(
      { session, work, payload, validityTimestamps, prepared, sponsorVoucher, chainId },
      this.route
    );
  }
  /**
   * Prepares, signs and submits a call. When this returns, the service has accepted it, but it is not mined yet.
   *
   * Calls of one channel run in order; channels are independent.
   */
  send(profile, work, options = {}) {
    const attempt = async () => (await this.prepare(profile, work, options)).send();
    const { chainId = "", channel = 0n } = options;
    return this.inTurn(`${profile.toLowerCase()} ${chainId} ${channel}`, async () => {
      try {
        return await attempt();
      } catch (error) {
        if (!(error instanceof RelayProblem && OUTDATED.has(error.code))) throw error;
        return attempt();
      }
    });
  }
  /** A transaction that was sent before, by its hash. */
  transaction(profile, hash) {
    return new SentTransaction(hash, this.session(profile));
  }
  /**
   * Deploys the profile on another chain at the same addresses, for the user's credits.
   *
   * A copy begins with the controllers of the first deployment. `firstDeployment` has its salt and data, which the
   * service knows only of profiles that it created. Without a `transactionHash` the copy existed already; otherwise
   * follow it with `transaction`.
   *
   * If the home chain has removed one of them, the problem `copy-needs-removal` has a member `removal`. Show it to the
   * user, then pass it here: it is signed, and executed in the transaction of the copy.
   */
  async copyProfile(profile, chainId, firstDeployment, removal) {
    const body = { chainId, ...firstDeployment && { firstDeployment } };
    const path = "/api/relay/copyProfile";
    try {
      return await this.request(profile, "post", path, { body });
    } catch (error) {
      if (!removal || !(error instanceof RelayProblem && error.code === "copy-needs-removal")) throw error;
      const keyManager = text(error.members["keyManagerAddress"]);
      const call = { chainId: BigInt(chainId), keyManager, nonce: 0n, payload: encodeRemoval(removal) };
      const removalSignature = await this.route.signHash(relayCallHash(call));
      return this.request(profile, "post", path, { body: { ...body, removalSignature } });
    }
  }
  /** The available credits; the wallet signs a timestamp. */
  async quota(profile) {
    const session = this.session(profile);
    await session.open();
    return this.service.http.patiently(async () => {
      const timestamp = Math.floor(Date.now() / 1e3);
      const signature = await this.route.signMessage(profile, quotaMessage(profile, timestamp));
      const body = { address: profile, timestamp, signature };
      return await session.request("post", "/api/relay/quota", { body }, 0);
    });
  }
  dashboard(profile) {
    return this.request(profile, "get", "/api/user/dashboardInfo");
  }
  /** All ledger entries except relay charges, newest first. */
  earnings(profile) {
    return this.pages(profile, "/api/user/earnings");
  }
  /** The relay calls of the profile, newest first. */
  transactions(profile) {
    return this.pages(profile, "/api/user/transactions");
  }
  /** Checks in; a retry with the same `key` returns the same draw. */
  checkIn(profile, key = crypto.randomUUID()) {
    return this.request(profile, "post", "/api/user/executeCheckIn", { headers: { "idempotency-key": key } });
  }
  /** The packs of credits, and the currencies in which any amount is sold. */
  packs(profile) {
    return this.request(profile, "get", "/api/payments/packs");
  }
  /**
   * Buys a pack, or an amount in minor units, with the card captured last.
   *
   * Pass the same `key` to continue a purchase after a `RelayProblem`, such as `card-declined` or
   * `authentication-required`: the card is charged once.
   */
  purchaseCredits(profile, what, key = crypto.randomUUID()) {
    const headers = { "idempotency-key": key };
    return this.request(profile, "post", "/api/payments/purchaseCredits", { body: what, headers });
  }
  /** Automatic top-up. */
  topUp(profile) {
    return this.request(profile, "get", "/api/payments/topUp");
  }
  /** Turns automatic top-up on with the user's consent, or off. */
  setTopUp(profile, terms) {
    return this.request(profile, "put", "/api/payments/topUp", { body: terms });
  }
  /** Makes any request of the API as a profile; body, query and response have their documented types. */
  async request(profile, method, path, parts = {}) {
    return await this.session(profile).request(method, path, parts);
  }
  async *pages(profile, first) {
    for (let path = first; path !== null; ) {
      const page = await this.session(profile).request("get", path);
      yield* page.results;
      const next = page.next === null ? null : new URL(page.next);
      path = next && next.pathname + next.search;
    }
  }
  inTurn(channel, work) {
    const result = (this.channels.get(channel) ?? Promise.resolve()).then(work);
    this.channels.set(
      channel,
      result.catch(() => void 0)
    );
    return result;
  }
  session(profile) {
    const key = profile.toLowerCase();
    let session = this.sessions.get(key);
    if (!session) {
      session = new Session(profile, this.service, (message) => this.route.signMessage(profile, message));
      this.sessions.set(key, session);
    }
    return session;
  }
};
var PreparedCall = class {
  /** The service's answer. */
  prepared;
  draft;
  route;
  constructor(draft, route) {
    this.prepared = draft.prepared;
    this.draft = draft;
    this.route = route;
  }
  /** Its cost in credits at the current gas price; null if it cannot be executed. */
  get expectedCost() {
    return this.prepared.expectedCost;
  }
  /** The credits held until it is settled. */
  get highestCost() {
    return this.prepared.highestCost;
  }
  /** A quote: the maximum cost in credits if it is sent in time. */
  get quote() {
    return this.prepared.quote;
  }
  /** Why the service would reject it now. */
  get refusals() {
    return this.prepared.refusals.map((refusal) => new RelayProblem({ ...refusal }));
  }
  /** Signs and submits it; one that would be rejected is not signed. */
  async send() {
    const [refusal] = this.refusals;
    if (refusal) throw refusal;
    return new SentTransaction(await this.route.send(this.draft), this.draft.session);
  }
};
var SentTransaction = class {
  hash;
  session;
  constructor(hash, session) {
    this.hash = hash;
    this.session = session;
  }
  status() {
    return this.statusWithin(0);
  }
  /** Waits for a final status: `Success`, `Failed`, `Expired` or `Cancelled`. */
  async wait(seconds = 180) {
    const deadline = Date.now() + 1e3 * seconds;
    for (let began = Date.now(); began < deadline; began = Date.now()) {
      const status = await this.statusWithin(Math.min(WAIT_SECONDS, Math.ceil((deadline - began) / 1e3)));
      if (!OPEN_STATUSES.has(status.status)) return status;
      await sleep(Math.max(0, PAUSE_SECONDS - (Date.now() - began) / 1e3));
    }
    throw new Error(`${this.hash} is not final after ${seconds} s.`);
  }
  async statusWithin(wait) {
    return await this.session.request("get", `/api/relay/transactions/${this.hash}`, {
      query: { wait }
    });
  }
};

// clients/typescript/src/extension.ts
var EXTENSION_RDNS = "cloud.universalprofile";
var ANNOUNCEMENT_MS = 200;
async function findExtension(waitMs = ANNOUNCEMENT_MS) {
  const wallets = await announcedWallets(waitMs);
  const extension = wallets.find(({ info }) => info.rdns === EXTENSION_RDNS);
  return extension?.provider ?? globalThis.lukso;
}
async function announcedWallets(waitMs = ANNOUNCEMENT_MS) {
  const wallets = [];
  const hear = (event) => wallets.push(event.detail);
  window.addEventListener("eip6963:announceProvider", hear);
  window.dispatchEvent(new Event("eip6963:requestProvider"));
  await new Promise((resume) => setTimeout(resume, waitMs));
  window.removeEventListener("eip6963:announceProvider", hear);
  return wallets;
}
async function addRelayer(provider, relayer) {
  const { name, url, chainIds } = relayer;
  return register(provider, { name, relayerUrl: `${withoutSlash(url)}/api/lsp15`, chainIds });
}
async function addRelayers(provider, relayer) {
  const outcomes = [];
  for (const [place, chain] of relayer.chains.entries()) {
    const name = place ? `${relayer.name} (${chain.name})` : relayer.name;
    outcomes.push({ chain, ...await outcomeOf(provider, name, chain) });
  }
  return outcomes;
}
async function outcomeOf(provider, name, chain) {
  if (chain.state !== "accepting") return { outcome: "not-asked" };
  const { relayerUrl, chainId } = chain;
  try {
    return {
      outcome: "added",
      profiles: await register(provider, { name, relayerUrl, chainIds: [chainId] })
    };
  } catch (error) {
    return { outcome: "refused", error };
  }
}
async function register(provider, { name, relayerUrl, chainIds }) {
  const params = [{ name, apiUrl: `${withoutSlash(relayerUrl)}/`, chainIds: [...chainIds] }];
  const profiles = await provider.request({ method: "up_addTransactionRelayer", params });
  return profiles.map(text);
}
var withoutSlash = (url) => url.replace(/\/+$/, "");
export {
  ChainReader,
  EXTENSION_RDNS,
  PreparedCall,
  Relay,
  RelayProblem,
  SentTransaction,
  ServiceUnreachable,
  addRelayer,
  addRelayers,
  announcedWallets,
  connect,
  encodeCalls,
  ethersSigner,
  findExtension,
  quotaMessage,
  relayCallHash,
  viemSigner
};
