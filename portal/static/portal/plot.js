// A bar chart of days as SVG, with an axis, dates and values.

const NAMESPACE = "http://www.w3.org/2000/svg";
const WIDTH = 640, HEIGHT = 180, LEFT = 56, BOTTOM = 24, TOP = 10;
const DAY = 86_400_000;

/** Sums the values of rows by the UTC day of their time; `pick(row)` returns [time or null, value]. */
export function perDay(rows, count, pick, now = Date.now()) {
  const today = Math.floor(now / DAY);
  const days = Array.from({ length: count }, (_, place) => ({ day: today - count + 1 + place, value: 0 }));
  for (const row of rows) {
    const [time, value] = pick(row);
    const place = time === null ? -1 : Math.floor(Date.parse(time) / DAY) - days[0].day;
    if (place >= 0 && place < count) days[place].value += value;
  }
  return days;
}

/** Draws days of {day, value} as bars; `description` is for screen readers. */
export function bars(days, description) {
  const highest = Math.max(...days.map(({ value }) => value));
  const step = (WIDTH - LEFT) / days.length;
  const scale = (HEIGHT - TOP - BOTTOM) / highest;
  const base = HEIGHT - BOTTOM;
  const plot = element("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "plot", role: "img", "aria-label": description });
  for (const share of [0, 0.5, 1]) {
    const value = Math.round(highest * share);
    const y = base - value * scale;
    plot.append(element("line", { x1: LEFT, x2: WIDTH, y1: y, y2: y }), text(value.toLocaleString(), { x: LEFT - 6, y: y + 4, "text-anchor": "end" }));
  }
  days.forEach(({ day, value }, place) => {
    const bar = element("rect", { x: LEFT + place * step + 1, y: base - value * scale, width: step - 2, height: value * scale });
    const label = new Date(day * DAY).toLocaleDateString(undefined, { day: "numeric", month: "short", timeZone: "UTC" });
    bar.append(text(`${label}: ${value.toLocaleString()}`, {}, "title"));
    plot.append(bar);
    if (place % 7 === 0) plot.append(text(label, { x: LEFT + place * step, y: HEIGHT - 6 }));
  });
  return plot;
}

function element(name, attributes) {
  const node = document.createElementNS(NAMESPACE, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
}

function text(content, attributes, name = "text") {
  const node = element(name, attributes);
  node.textContent = content;
  return node;
}
