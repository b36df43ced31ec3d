// The ad networks that give rewards here.

import { actionButton, h, panel, table } from "./dom.js";
import { SOURCES, nameOf } from "./words.js";

export async function earn({ session, report }) {
  const { networks } = await session.get("/api/user/adNetworks");
  const copy = (reference) => navigator.clipboard.writeText(reference).then(() => report("Copied."));
  const columns = [
    { label: "Network", cell: (row) => row.network },
    { label: "Gives credits for", cell: (row) => nameOf(SOURCES, row.kind) },
    { label: "Your name there", cell: (row) => h("span", {}, h("code", {}, row.userReference), " ", actionButton("Copy", () => copy(row.userReference), report, { kind: "plain" })) },
  ];
  return panel(
    "Earn credits",
    h("p", {}, "Apps that show ads, offers or surveys of these networks credit you here. They know you by a name of their own, never by your profile."),
    networks.length ? table("Ad networks", columns, networks) : h("p", { class: "quiet" }, "No network is set up here."),
  );
}
