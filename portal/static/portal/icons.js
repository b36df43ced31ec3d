// Small drawings beside the lines of lists; they mean nothing that the words do not.

const PATHS = {
  DONE: "M5 12.5l4.5 4.5L19 7.5",
  MORE: "M12 6v12M6 12h12",
  BADGE: "M12 3a6 6 0 1 0 0 12 6 6 0 0 0 0-12M8.5 14 7 21l5-2.5L17 21l-1.5-7",
  BONUS: "M13 3 5 14h6l-1 7 8-11h-6z",
  CREDITS:
    "M12 4c4.4 0 8 1.3 8 3s-3.6 3-8 3-8-1.3-8-3 3.6-3 8-3M4 7v10c0 1.7 3.6 3 8 3s8-1.3 8-3V7M4 12c0 1.7 3.6 3 8 3s8-1.3 8-3",
  STREAK: "M12 3c1 4 5 5.5 5 10a5 5 0 0 1-10 0c0-2 1-3.5 2-4.5 0 2 .8 3 2 3.5-.5-3.5-.5-6 1-9",
  WALLET: "M4 7h15v12H4zM4 7l11-4v4M15 13h4",
  OPEN: "M12 6a6 6 0 1 0 0 12 6 6 0 0 0 0-12",
  RELAY_TRANSACTION: "M4 12h15m0 0-6-6m6 6-6 6",
  SUBSCRIBED_PAYOUT: "M3 6h18v12H3zM3 10h18M7 15h4",
  CREDIT_PURCHASE: "M3 6h18v12H3zM3 10h18M7 15h4",
  CREDIT_EXPIRY: "M7 3h10M7 21h10M8 3c0 6 8 6 8 9s-8 3-8 9M16 3c0 6-8 6-8 9s8 3 8 9",
  PUSH_ADS: "M5 10v4h3l7 4V6l-7 4zM18 10a3 3 0 0 1 0 4",
  VIDEO_ADS: "M3 6h18v12H3zM10 9l5 3-5 3z",
  OFFERWALL: "M4 11h16v9H4zM3 7h18v4H3zM12 7v13M12 7c-4 0-5-4-2-4 2 0 2 4 2 4s0-4 2-4c3 0 2 4-2 4",
  FIRST_CREDITS: "M4 11h16v9H4zM3 7h18v4H3zM12 7v13M12 7c-4 0-5-4-2-4 2 0 2 4 2 4s0-4 2-4c3 0 2 4-2 4",
  SURVEYS: "M6 3h12v18H6zM9 8l1 1 2-2M14 8h2M9 14l1 1 2-2M14 14h2",
  CHECK_IN: "M12 3l2.5 6 6.5.5-5 4.2 1.6 6.3L12 16.6 6.4 20l1.6-6.3-5-4.2L9.5 9z",
  CREDITS_BACK: "M9 14 4 9l5-5M4 9h10a6 6 0 0 1 0 12h-3",
  RELAY_REVERSAL: "M9 14 4 9l5-5M4 9h10a6 6 0 0 1 0 12h-3",
  EARNING_REVERSAL: "M9 14 4 9l5-5M4 9h10a6 6 0 0 1 0 12h-3",
  PAYOUT_CLAWBACK: "M9 14 4 9l5-5M4 9h10a6 6 0 0 1 0 12h-3",
};
const OTHER = "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18M12 8v4l3 2";
const SVG = "http://www.w3.org/2000/svg";

export function icon(name) {
  const drawing = document.createElementNS(SVG, "svg");
  const path = document.createElementNS(SVG, "path");
  for (const [key, value] of Object.entries({ viewBox: "0 0 24 24", class: "icon", "aria-hidden": "true" }))
    drawing.setAttribute(key, value);
  path.setAttribute("d", PATHS[name] ?? OTHER);
  drawing.append(path);
  return drawing;
}

/** The title of a panel behind a drawing. */
export const titled = (name, title) => [icon(name), title];
