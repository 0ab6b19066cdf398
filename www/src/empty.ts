// The reason for a result without rows: the rows that each part of the query leaves.
import { h } from "./dom";
import type { Explained, Place } from "./protocol";
import { count, texts } from "./texts";

/** A part of a query with the rows that it leaves. */
type Part = NonNullable<Explained["empty"]>["parts"][number];

function drawPart(part: Part, isLast: boolean, show: (place: Place) => void): HTMLElement {
  const { label, from, to, rows, without } = part;
  const code = h("code", {}, label);
  const named =
    from === null || to === null
      ? code
      : h("button", { type: "button", class: "link", onclick: () => show({ from, to }) }, code);
  return h(
    "tr",
    { class: isLast ? "bad" : "" },
    h("th", { scope: "row" }, named),
    h("td", {}, count.format(rows)),
    h("td", {}, typeof without === "number" ? count.format(without) : ""),
  );
}

/** Draws the parts of a query up to the one that left no row; `null` if they were not counted. */
export function drawRemoved(
  { empty }: Explained,
  show: (place: Place) => void,
): HTMLElement | null {
  const parts = empty?.parts ?? [];
  const last = parts.at(-1);
  if (!empty || !last) return null;
  const about = empty.complete ? texts.results.partLeavesNone : texts.results.partsNotCounted;
  const head = [texts.results.part, texts.results.rowsLeft, texts.results.rowsWithout].map((text) =>
    h("th", { scope: "col" }, text),
  );
  const rows = parts.map((part) => drawPart(part, empty.complete && part === last, show));
  return h(
    "table",
    { class: "removed" },
    h("caption", {}, about),
    h("thead", {}, h("tr", {}, ...head)),
    h("tbody", {}, ...rows),
  );
}
