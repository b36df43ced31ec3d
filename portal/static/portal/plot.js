// A bar chart of days as SVG: each date stands under the middle of its own bar.

import { dayOf, number } from "./text.js";

const NAMESPACE = "http://www.w3.org/2000/svg";
const WIDTH = Math.min(640, Math.max(300, innerWidth - 70)),
  HEIGHT = 180,
  LEFT = 56,
  BOTTOM = 24,
  TOP = 10;
const DAY = 86_400_000,
  DAYS = 30;

/** The last 30 UTC days as {day, value}, with the values of rows of {day, credits}. */
export function monthOf(rows, now = Date.now()) {
  const values = Object.fromEntries(rows.map(({ day, credits }) => [day, credits]));
  return Array.from({ length: DAYS }, (_, place) => {
    const day = new Date(now - (DAYS - 1 - place) * DAY).toISOString().slice(0, 10);
    return { day, value: values[day] ?? 0 };
  });
}

/** Draws days of {day, value} as bars; `description` is for screen readers. */
export function bars(days, description) {
  const highest = Math.max(...days.map(({ value }) => value));
  const step = (WIDTH - LEFT) / days.length;
  const scale = (HEIGHT - TOP - BOTTOM) / highest;
  const base = HEIGHT - BOTTOM;
  const plot = element("svg", {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    class: "plot",
    role: "img",
    "aria-label": description,
  });
  for (const share of [0, 0.5, 1]) {
    const value = Math.round(highest * share);
    const y = base - value * scale;
    plot.append(
      element("line", { x1: LEFT, x2: WIDTH, y1: y, y2: y }),
      text(number(value), { x: LEFT - 6, y: y + 4, "text-anchor": "end" }),
    );
  }
  days.forEach(({ day, value }, place) => {
    const bar = element("rect", {
      x: LEFT + place * step + 1,
      y: base - value * scale,
      width: step - 2,
      height: value * scale,
    });
    const label = dayOf(day, { day: "numeric", month: "short" });
    bar.append(text(`${label}: ${number(value)}`, {}, "title"));
    plot.append(bar);
    if (place % (WIDTH < 500 ? 10 : 7) === 2)
      plot.append(text(label, { x: LEFT + (place + 0.5) * step, y: HEIGHT - 6, "text-anchor": "middle" }));
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
