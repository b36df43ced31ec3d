// The account holder's page. Sections beside the first are loaded when they are opened.

import { home } from "./home.js";
import { start } from "./page.js";
import { t } from "./text.js";

const LATER = {
  activity: () => import("./activity.js"),
  plan: () => import("./plan.js"),
  earn: () => import("./earn.js"),
  data: () => import("./data.js"),
};
const shown = (name) => async (context) => (await LATER[name]())[name](context);

// The section of the address is fetched beside the session, not after it.
LATER[location.hash.slice(1).split("/")[0]]?.().catch(() => null);
start({
  home: [t("Home"), home],
  activity: [t("Activity"), shown("activity")],
  plan: [t("Plan"), shown("plan")],
  earn: [t("Earn"), shown("earn")],
  data: [t("Data"), shown("data")],
});
