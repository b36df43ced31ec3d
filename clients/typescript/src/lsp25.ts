/** What controllers sign: the payload of a call, its LSP-25 hash, and the message of a quota request. */
import { keccak_256 } from "@noble/hashes/sha3.js";

export type Hex = `0x${string}`;

/** An action of a profile: a transfer, a contract call, or both. */
export interface Call {
  to: string;
  /** In wei. */
  value?: bigint;
  /** Calldata for `to`. */
  data?: string;
}

/** The signed fields of a relay call. */
export interface RelayCall {
  chainId: bigint;
  keyManager: string;
  /** The integer returned by the key manager's `getNonce`: channel << 128 | sequence. */
  nonce: bigint;
  payload: string;
  /** start << 128 | end, in unix seconds; 0 for no limit. */
  validityTimestamps?: bigint;
}

const LSP25_VERSION = 25n;
const OPERATION_CALL = 0n;
const OFFSET_OF_BYTES = 128n;

/** The 32 bytes that a controller signs, without a further prefix. */
export function relayCallHash(call: RelayCall): Hex {
  const { chainId, keyManager, nonce, payload, validityTimestamps = 0n } = call;
  // The last word is the value that the relayer sends with the call: always 0 here.
  const words = [LSP25_VERSION, chainId, nonce, validityTimestamps, 0n].map(word);
  return keccak256(join(["0x1900", address(keyManager), ...words, payload]));
}

/** The payload for one action of a profile, or for several in a batch. */
export function encodeCalls(calls: Call | readonly Call[]): Hex {
  const list = "to" in calls ? [calls] : calls;
  const [only] = list;
  if (only === undefined) throw new TypeError("There is no call to encode.");
  return list.length === 1 ? encodeExecute(only) : encodeExecuteBatch(list);
}

function encodeExecute({ to, value = 0n, data = "0x" }: Call): Hex {
  const head = [word(OPERATION_CALL), addressWord(to), word(value), word(OFFSET_OF_BYTES)];
  return join([selector("execute(uint256,address,uint256,bytes)"), ...head, tail(data)]);
}

function encodeExecuteBatch(calls: readonly Call[]): Hex {
  const count = BigInt(calls.length);
  const array = (words: readonly Hex[]): Hex => join([word(count), ...words]);
  const datas = calls.map(({ data = "0x" }) => tail(data));
  const offsets = datas.map((_, index) => word(32n * count + sizeOf(join(datas.slice(0, index)))));
  const members = [
    array(calls.map(() => word(OPERATION_CALL))),
    array(calls.map(({ to }) => addressWord(to))),
    array(calls.map(({ value = 0n }) => word(value))),
    array([...offsets, ...datas]),
  ];
  const head = members.map((_, index) => word(OFFSET_OF_BYTES + sizeOf(join(members.slice(0, index)))));
  return join([selector("executeBatch(uint256[],address[],uint256[],bytes[])"), ...head, ...members]);
}

/** The 32 bytes to sign with `personal_sign` for a quota request. */
export function quotaMessage(profile: string, timestamp: number): Uint8Array {
  return bytes(keccak256(join([address(profile), word(BigInt(timestamp))])));
}

/** The first four bytes of a function's calldata. */
export function selector(signature: string): Hex {
  return hex(keccak_256(new TextEncoder().encode(signature)).slice(0, 4));
}

/** A number as a 32-byte word. */
export function word(value: bigint): Hex {
  if (value < 0n || value >> 256n) throw new RangeError(`${value} does not fit into 256 bits.`);
  return `0x${value.toString(16).padStart(64, "0")}`;
}

/** An address as a 32-byte word. */
export function addressWord(value: string): Hex {
  return word(BigInt(address(value)));
}

export function join(parts: readonly string[]): Hex {
  return `0x${parts.map((part) => checked(part).slice(2)).join("")}`;
}

export function hex(value: Uint8Array): Hex {
  return `0x${Array.from(value, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

export function bytes(value: string): Uint8Array {
  return Uint8Array.from(checked(value).slice(2).match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}

export function keccak256(value: string): Hex {
  return hex(keccak_256(bytes(value)));
}

function address(value: string): Hex {
  if (!/^0x[0-9a-f]{40}$/i.test(value)) throw new TypeError(`${value} is not an address.`);
  return value as Hex;
}

function checked(value: string): Hex {
  if (!/^0x([0-9a-f]{2})*$/i.test(value)) throw new TypeError(`${value} is not hex with 0x.`);
  return value as Hex;
}

/** ABI-encoded bytes: the length, and the bytes padded to whole words. */
function tail(data: string): Hex {
  const digits = checked(data).slice(2);
  return join([
    word(BigInt(digits.length / 2)),
    `0x${digits.padEnd(Math.ceil(digits.length / 64) * 64, "0")}`,
  ]);
}

function sizeOf(value: Hex): bigint {
  return BigInt((value.length - 2) / 2);
}
