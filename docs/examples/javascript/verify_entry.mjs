// Verifies that a signed root includes an entry of the ledger. For browsers and Node, without a library.
//   node verify_entry.mjs proof.json keys.json     one of `results` of /api/ledger/proofs, and `keys` of /.well-known/ledger-roots
const utf8 = (text) => new TextEncoder().encode(text);
const bytes = (hex) => Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));
const hex = (data) => Array.from(data, (byte) => byte.toString(16).padStart(2, "0")).join("");
const sha256 = async (...parts) =>
  new Uint8Array(await crypto.subtle.digest("SHA-256", Uint8Array.from(parts.flatMap((part) => [...part]))));

export async function verifyEntry(proof, keys) {
  if (!proof.root) throw new Error("no root includes the entry yet");
  const jwk = keys.find((key) => key.kid === proof.root.keyId);
  if (!jwk) throw new Error("the root is signed by an unknown key");
  const curve = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("jwk", { ...jwk, key_ops: ["verify"] }, curve, true, ["verify"]);
  const isSigned = await crypto.subtle.verify(curve, key, bytes(proof.root.signature), utf8(proof.root.text));
  if (!isSigned) throw new Error("the signature of the root is wrong");
  let hash = await sha256([0], utf8(proof.leaf));
  for (const { left, right } of proof.path)
    hash = left ? await sha256([1], bytes(left), hash) : await sha256([1], hash, bytes(right));
  const root = JSON.parse(proof.root.text);
  if (hex(hash) !== root.tree) throw new Error("the entry is not included in the root");
  const entry = JSON.parse(proof.leaf);
  for (const [name, { salt, text }] of Object.entries(proof.disclosed ?? {})) {
    if (hex(await sha256(bytes(salt), utf8(text))) !== entry[name])
      throw new Error(`a different ${name} was signed`);
    entry[name] = text;
  }
  return { ...entry, root: root.root, signedAt: root.closedAt };
}

const [, program, proofFile, keyFile] = globalThis.process?.argv ?? [];
if (keyFile && import.meta.url.endsWith(program.split("/").pop())) {
  const { readFileSync } = await import("node:fs");
  const [proof, keys] = [proofFile, keyFile].map((file) => JSON.parse(readFileSync(file, "utf8")));
  console.log(JSON.stringify(await verifyEntry(proof, keys)));
}
