// Verifies that a signed root includes an entry of the ledger (docs/ledger.md); shares no code with the service.

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
