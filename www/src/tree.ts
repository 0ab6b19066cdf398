// An object as a tree that opens branch by branch.
import { h } from "./dom";
import { NumberText, type Json } from "./json";
import { texts } from "./texts";

function leaf(value: Json): HTMLElement {
  if (value === null) return h("span", { class: "t-null" }, "null");
  if (value instanceof NumberText) return h("span", { class: "t-number" }, value.text);
  if (typeof value === "boolean") return h("span", { class: "t-number" }, String(value));
  return h("span", { class: "t-text" }, typeof value === "string" ? value : "");
}

function hint(value: Json): string {
  if (Array.isArray(value)) return texts.frame.items({ count: value.length });
  if (value === null || typeof value !== "object" || value instanceof NumberText) return "";
  const name = value["name"];
  const title =
    name && typeof name === "object" && !Array.isArray(name) && !(name instanceof NumberText)
      ? name["value"]
      : undefined;
  return typeof title === "string" ? title : "";
}

function type(value: Json): string {
  if (
    value === null ||
    typeof value !== "object" ||
    Array.isArray(value) ||
    value instanceof NumberText
  )
    return "";
  const name = value["_type"];
  return typeof name === "string" ? name : "";
}

function branch(name: string, value: Json, open: boolean): HTMLElement {
  if (value === null || typeof value !== "object" || value instanceof NumberText) {
    return h("div", { class: "t-leaf" }, h("span", { class: "t-name" }, name), " ", leaf(value));
  }
  const entries: [string, Json][] = Array.isArray(value)
    ? value.map((item, at) => [String(at), item])
    : Object.entries(value).filter(([member]) => member !== "_type");
  const children = h("div", { class: "t-children" });
  const details = h(
    "details",
    {},
    h(
      "summary",
      {},
      h("span", { class: "t-name" }, name),
      " ",
      h("span", { class: "t-type" }, type(value)),
      " ",
      h("span", { class: "t-hint" }, hint(value)),
    ),
    children,
  );
  // A composition has thousands of nodes, so children are created when their branch opens.
  const fill = () => {
    if (!children.hasChildNodes())
      children.append(
        ...entries.map(([member, item]) =>
          branch(member, item, entries.length === 1 || small(item)),
        ),
      );
  };
  details.addEventListener("toggle", fill);
  if (open) {
    fill();
    details.open = true;
  }
  return details;
}

function small(value: Json): boolean {
  if (value === null || typeof value !== "object" || value instanceof NumberText) return false;
  const items = Object.values(value);
  return (
    items.length <= 3 &&
    items.every((item) => item === null || typeof item !== "object" || item instanceof NumberText)
  );
}

/** Draws the tree of a value. `open` shows its first level. */
export function tree(name: string, value: Json, open = true): HTMLElement {
  return h("div", { class: "tree" }, branch(name, value, open));
}
