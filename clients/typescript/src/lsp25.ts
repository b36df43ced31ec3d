/** What controllers sign: the payload of a call, its LSP-25 hash, and the message of a quota request. */
import { keccak_256 } from "@noble/hashes/sha3.js";
import type { Controller } from "./schema.ts";

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
/** AddressPermissions:Permissions:<address> of LSP-6. */
const PERMISSIONS = "0x4b80742de2bf82acb3630000";
const OPERATION_CALL = 0n;
const OFFSET_OF_BYTES = 128n;

/** The 32 bytes that a controller signs, without a further prefix. */
export function relayCallHash(call: RelayCall): Hex {
  const { chainId, keyManager, nonce, payload, validityTimestamps = 0n } = call;
  // The last word is the value that the relayer sends with the call: always 0 here.
  const words = [LSP25_VERSION, chainId, nonce, validityTimestamps, 0n].map((value) => word(value));
  return keccak256(join(["0x1900", address(keyManager, "keyManager"), ...words, payload]));
}

/**
 * The payload for one action of a profile, or for several in a batch.
 *
 * Throws a TypeError or RangeError that names the member, such as `calls[1].to`, which is no address, has a wrong
 * checksum (EIP-55), or does not fit.
 */
export function encodeCalls(calls: Call | readonly Call[]): Hex {
  if (!Array.isArray(calls)) return encodeExecute(checkedCall(calls as Call, "call"));
  const list = calls.map((call: Call, index) => checkedCall(call, `calls[${index}]`));
  const [only] = list;
  if (only === undefined) throw new TypeError("There is no call to encode.");
  return list.length === 1 ? encodeExecute(only) : encodeExecuteBatch(list);
}

function checkedCall(call: Call, name: string): Call {
  const { to, value = 0n, data = "0x" } = call ?? {};
  address(to, `${name}.to`);
  if (typeof value !== "bigint") {
    throw new TypeError(`${name}.value: ${shown(value)} is not a bigint of wei, such as 1n.`);
  }
  word(value, `${name}.value`);
  checked(data, `${name}.data`);
  return { to, value, data };
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

/** The payload that leaves each controller exactly these permissions; without any it is removed. */
export function encodeRemoval(removal: readonly Controller[]): Hex {
  const keys = removal.map(({ address: value }, index) =>
    join([PERMISSIONS, address(value, `removal[${index}].address`)]),
  );
  const values = removal.map(({ permissions }) =>
    tail(BigInt(permissions) ? word(BigInt(permissions)) : "0x"),
  );
  const count = word(BigInt(removal.length));
  const offsets = values.map((_, index) =>
    word(32n * BigInt(removal.length) + sizeOf(join(values.slice(0, index)))),
  );
  const head = [word(64n), word(96n + sizeOf(join(keys)))];
  const arrays = [count, ...keys, count, ...offsets, ...values];
  return join([selector("setDataBatch(bytes32[],bytes[])"), ...head, ...arrays]);
}

/** The 32 bytes to sign with `personal_sign` for a quota request. */
export function quotaMessage(profile: string, timestamp: number): Uint8Array {
  return bytes(keccak256(join([address(profile, "profile"), word(BigInt(timestamp))])));
}

/** The first four bytes of a function's calldata. */
export function selector(signature: string): Hex {
  return hex(keccak_256(new TextEncoder().encode(signature)).slice(0, 4));
}

/** A number as a 32-byte word. */
export function word(value: bigint, name = "number"): Hex {
  if (value < 0n || value >> 256n) throw new RangeError(`${name}: ${value} does not fit into 256 bits.`);
  return `0x${value.toString(16).padStart(64, "0")}`;
}

/** An address as a 32-byte word. */
export function addressWord(value: string): Hex {
  return word(BigInt(address(value, "address")));
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

/** Returns an address in lower case, in upper case, or with the right checksum: what the service accepts. */
export function address(value: unknown, name: string): Hex {
  if (typeof value !== "string" || !/^0x[0-9a-f]{40}$/i.test(value)) {
    throw new TypeError(`${name}: ${shown(value)} is not an address: 0x and 40 hex digits.`);
  }
  const digits = value.slice(2);
  const isMixed = digits !== digits.toLowerCase() && digits !== digits.toUpperCase();
  if (isMixed && digits !== checksummed(digits.toLowerCase())) {
    throw new TypeError(`${name}: the checksum (EIP-55) of ${value} is wrong. Copy the address again.`);
  }
  return value as Hex;
}

/** The digits of an address in the casing of EIP-55. */
function checksummed(digits: string): string {
  const hash = hex(keccak_256(new TextEncoder().encode(digits))).slice(2);
  return Array.from(digits, (digit, index) =>
    Number.parseInt(hash[index] ?? "0", 16) < 8 ? digit : digit.toUpperCase(),
  ).join("");
}

/** Returns hex digits of whole bytes with 0x. */
export function checked(value: unknown, name = "bytes"): Hex {
  if (typeof value !== "string" || !/^0x([0-9a-f]{2})*$/i.test(value)) {
    throw new TypeError(`${name}: ${shown(value)} is not hex with 0x.`);
  }
  return value as Hex;
}

function shown(value: unknown): string {
  return value === undefined ? "nothing" : String(value);
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
