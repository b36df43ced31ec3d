// Fills in what calls did on the pages of staff, in the owner's words.

import { deedsOf } from "./deeds.js";

for (const place of document.querySelectorAll("[data-deeds]")) {
  const { currency, ...row } = JSON.parse(place.dataset.deeds);
  place.textContent = deedsOf(row, currency);
}
