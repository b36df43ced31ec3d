// Words of the page in its language, and numbers, money and dates in the same one.

// Django's catalogue of the page's language; the page has none if the language is that of the source. On the pages of
// staff, the name has other things of Django.
const catalog = globalThis.django;
const LANGUAGE = document.documentElement.lang;
// The reader's own region, if it speaks the language of the page: words and digits are never of two languages.
const LOCALE =
  navigator.languages.find((each) => each.split("-")[0] === LANGUAGE && isLocale(each)) ?? LANGUAGE;

/** Whether Intl takes a tag; browsers without a locale of their own name some that it refuses, such as en-US@posix. */
function isLocale(tag) {
  try {
    return Intl.NumberFormat.supportedLocalesOf(tag).length > 0;
  } catch {
    return false;
  }
}

const filled = (text, values) =>
  text.replaceAll(/\{(\w+)\}/g, (whole, name) => String(values[name] ?? whole));

/** Translates a text; `{name}` in it stands for a value. */
export const t = (text, values = {}) => filled(catalog?.gettext?.(text) ?? text, values);

/** Translates a text that depends on a count, which is {count} in it. */
export const tn = (one, other, count, values = {}) =>
  filled(catalog?.ngettext?.(one, other, count) ?? (count === 1 ? one : other), {
    count: number(count),
    ...values,
  });

export const number = (value) => new Intl.NumberFormat(LOCALE).format(value);
export const signed = (value) => new Intl.NumberFormat(LOCALE, { signDisplay: "exceptZero" }).format(value);
export const credits = (value) => tn("{count} credit", "{count} credits", value);
/** Names in a sentence, such as "LUKSO and Base". */
export const listed = (names) => new Intl.ListFormat(LOCALE).format(names);
export const percent = (fraction, digits = 2) =>
  new Intl.NumberFormat(LOCALE, { style: "percent", maximumFractionDigits: digits }).format(fraction);
export const money = (minor, currency) =>
  new Intl.NumberFormat(LOCALE, { style: "currency", currency: currency.toUpperCase() }).format(minor / 100);
/** Minor units as people write an amount into a form. */
export const written = (minor) =>
  new Intl.NumberFormat(LOCALE, { minimumFractionDigits: 2, useGrouping: false }).format(minor / 100);
export const timeOfDay = (iso) => new Date(iso).toLocaleTimeString(LOCALE, { timeStyle: "short" });
export const dateTime = (iso) =>
  new Date(iso).toLocaleString(LOCALE, { dateStyle: "medium", timeStyle: "short" });
export const date = (time) => new Date(time).toLocaleDateString(LOCALE, { dateStyle: "long" });
export const unixDate = (seconds) => date(seconds * 1000);
export const dayOf = (iso, options) =>
  new Date(`${iso}T00:00:00Z`).toLocaleDateString(LOCALE, { timeZone: "UTC", ...options });
export const short = (hex) => `${hex.slice(0, 6)}…${hex.slice(-4)}`;

/** How far away a moment is, such as "in 3 hours" or "tomorrow". */
export function until(iso) {
  const minutes = Math.round((new Date(iso) - Date.now()) / 60_000);
  const [value, unit] =
    Math.abs(minutes) < 90
      ? [minutes, "minute"]
      : Math.abs(minutes) < 2160
        ? [Math.round(minutes / 60), "hour"]
        : [Math.round(minutes / 1440), "day"];
  return new Intl.RelativeTimeFormat(LOCALE, { numeric: "auto" }).format(value, unit);
}

/** How long something lasts, such as "2 hours". */
export function lasting(minutes) {
  const [value, unit] =
    minutes < 120
      ? [minutes, "minute"]
      : minutes < 2880
        ? [Math.round(minutes / 60), "hour"]
        : [Math.round(minutes / 1440), "day"];
  return new Intl.NumberFormat(LOCALE, { style: "unit", unit, unitDisplay: "long" }).format(value);
}

const EURO = "AT BE BG CY DE EE ES FI FR GR HR IE IT LT LU LV MT NL PT SI SK";

/** The currency that the reader probably pays in: that of the region of the browser, if it is one of `offered`. */
export function likelyCurrency(offered) {
  const region = new Intl.Locale(navigator.language.split("@")[0]).maximize().region ?? "";
  const own = EURO.includes(region) ? "eur" : { CH: "chf", GB: "gbp", LI: "chf" }[region];
  return offered.includes(own) ? own : offered.includes("usd") ? "usd" : offered[0];
}

const inSixDigits = (value) => new Intl.NumberFormat(LOCALE, { maximumFractionDigits: 6 }).format(value);

/** An amount in coins, from wei, with at most six digits after the mark. */
export function coins(wei, currency) {
  const value = Number(BigInt(wei)) / 1e18;
  const least = value > 0 && value < 1e-6 ? t("less than {amount}", { amount: inSixDigits(0.000001) }) : null;
  return `${least ?? inSixDigits(value)} ${currency}`;
}

const GROUP =
  new Intl.NumberFormat(LOCALE).formatToParts(11111.1).find(({ type }) => type === "group")?.value ?? ",";

/** Minor units of an amount as people write it: "25.50", "25,50", "1,000" where a comma groups; null for anything else. */
export function minorUnits(text) {
  const compact = text.replaceAll(/[\s\u00a0\u202f'’]/g, "");
  const grouped = new RegExp(`^\\d{1,3}(\\${GROUP.trim() || " "}\\d{3})+(?!\\d)`).test(compact);
  const plain = grouped ? compact.replaceAll(GROUP, "") : compact;
  const parts = /^(\d{1,7})(?:[.,](\d{1,2}))?$/.exec(plain);
  return parts && Number(parts[1]) * 100 + Number((parts[2] ?? "").padEnd(2, "0"));
}
