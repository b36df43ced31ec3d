// Recomputes check-in draws from public seeds, with only WebCrypto and integers.

const SCALE = 10_000n;
const bytesOf = (hex) => Uint8Array.from(hex.match(/../g) ?? [], (byte) => parseInt(byte, 16));
const hexOf = (buffer) =>
  [...new Uint8Array(buffer)].map((byte) => byte.toString(16).padStart(2, "0")).join("");

/**
 * Verify the draws of all days whose seed is public. Each result is the draw with `isRight` and `commitment`:
 * "kept" where `seen[day]` is the seed's commitment, "changed" where it is another, "unknown" where there is none.
 */
export async function verifyDraws(fairness, seen = {}) {
  const tables = Object.fromEntries(fairness.tables.map((table) => [table.id, table]));
  const revealed = Object.fromEntries(fairness.revealed.map((row) => [row.day, row]));
  const results = [];
  for (const draw of fairness.draws.filter(({ day }) => day in revealed)) {
    const { seed, commitment } = revealed[draw.day];
    const isCommitted = hexOf(await crypto.subtle.digest("SHA-256", bytesOf(seed))) === commitment;
    const isRight = isCommitted && (await isAsDrawn(draw, tables, bytesOf(seed), fairness.profileAddress));
    const noted = seen[draw.day];
    results.push({
      ...draw,
      isRight,
      commitment: noted === undefined ? "unknown" : noted === commitment ? "kept" : "changed",
    });
  }
  return results;
}

async function isAsDrawn(draw, tables, seed, profileAddress) {
  const names = draw.tables.map((id) => `${id}v${tables[id].version}`).join("+");
  const name = `check-in:${profileAddress}:${draw.day}:${draw.attempt}:${names}`;
  const items = draw.tables
    .flatMap((id) => tables[id].items)
    .filter((item) => !draw.experienceOnly || item.type === "EXPERIENCE")
    .filter((item) => (item.streakDays ?? 0) <= (draw.streak ?? 0));
  const key = await crypto.subtle.importKey("raw", seed, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const rolled = [];
  for (const [place, item] of items.entries())
    rolled.push(await amountOf(key, `${name}:value:${place}`, item));
  if (items.length !== draw.possibleResults.length) return false;
  const shown = draw.possibleResults.every(
    (result, place) => result.type === items[place].type && scaled(String(result.value)) === rolled[place],
  );
  const bag = items.flatMap((item, place) => Array(item.weight).fill(place));
  const chosen = draw.possibleResults[bag[Number(await throwOf(key, `${name}:choice`, BigInt(bag.length)))]];
  return shown && JSON.stringify(chosen) === JSON.stringify(draw.result);
}

async function amountOf(key, message, item) {
  const isWhole = item.type === "EXPERIENCE" || item.type === "CREDITS";
  const step = isWhole ? SCALE : 1n;
  const [lowest, highest] = [scaled(item.valueMin), scaled(item.valueMax)];
  return lowest + step * (await throwOf(key, message, (highest - lowest) / step + 1n));
}

/** A uniform random number below `outcomes`. Values in the last, incomplete range below 2^64 are rejected and drawn again. */
async function throwOf(key, message, outcomes) {
  for (let counter = 0; ; counter += 1) {
    const digest = await crypto.subtle.sign("HMAC", key, new TextEncoder().encode(`${message}:${counter}`));
    const number = new DataView(digest).getBigUint64(0);
    if (number < 2n ** 64n - (2n ** 64n % outcomes)) return number % outcomes;
  }
}

/** A decimal of at most four places as a whole number of ten-thousandths. */
function scaled(text) {
  const [whole, fraction = ""] = (/e/i.test(text) ? Number(text).toFixed(4) : text).split(".");
  return BigInt(whole) * SCALE + BigInt(fraction.slice(0, 4).padEnd(4, "0") || "0");
}
