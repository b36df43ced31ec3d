// The account holder's page. Sections beside the first are loaded when they are opened.

import { home } from "./home.js";
import { start } from "./page.js";
import { t } from "./text.js";

start({
  home: [t("Home"), home],
  activity: [t("Activity"), async (context) => (await import("./activity.js")).activity(context)],
  plan: [t("Plan"), async (context) => (await import("./plan.js")).plan(context)],
  earn: [t("Earn"), async (context) => (await import("./earn.js")).earn(context)],
  data: [t("Data"), async (context) => (await import("./data.js")).data(context)],
});
