// The description of a template for people: names of its nodes, and a query for each.
import type { TemplateNode } from "./protocol";
import { texts } from "./texts";

/**
 * Returns the name of a node. A node without a name is named after its attribute, and an alternative
 * after its class.
 */
export function name(node: TemplateNode): string {
  if (node.label) return node.label;
  const attribute = /\/([a-z_]+)$/.exec(node.path ?? "")?.[1];
  const word =
    attribute && attribute !== "value" ? attribute : node.class.replace(/^DV_/, "").toLowerCase();
  return word.replaceAll("_", " ");
}

/** Describes the content of a node in one line: class, units, choices, limits. */
export function holds(node: TemplateNode): string {
  const codes = node.codes ?? [];
  const choices =
    codes.length <= 4
      ? codes.map(({ label, code }) => label || code).join(", ")
      : texts.templates.codes({ count: codes.length });
  return [node.class, (node.units ?? []).join(", "), choices, ...(node.limits ?? [])]
    .filter(Boolean)
    .join(" · ");
}

/** Merges an ELEMENT with its only value: readers see the value under the name of the element. */
export function merged(node: TemplateNode): TemplateNode {
  const [value, another] = node.children ?? [];
  if (node.class !== "ELEMENT" || !value || another || value.label) return node;
  const { children: _, ...rest } = value;
  return {
    ...rest,
    ...(node.label ? { label: node.label } : {}),
    ...(node.description ? { description: node.description } : {}),
    ...(node.id ? { id: node.id } : {}),
    occurrences: node.occurrences,
    mandatory: node.mandatory,
  };
}

const ASKED: Record<string, string> = {
  DV_QUANTITY: "/magnitude",
  DV_COUNT: "/magnitude",
  DV_ORDINAL: "/value",
  DV_SCALE: "/value",
  DV_PROPORTION: "/numerator",
  DV_IDENTIFIER: "/id",
};

/** Returns the path that a query on a node usually selects: the comparable part of a value. */
export function selectedPath(node: TemplateNode): string {
  const more =
    node.class.startsWith("DV_") && !node.class.startsWith("DV_INTERVAL")
      ? (ASKED[node.class] ?? "/value")
      : "";
  return `${node.path ?? ""}${more}`;
}

/** Returns a query for one node in every document of a template. */
export function query(template: string, root: TemplateNode, node: TemplateNode): string {
  const words = name(node)
    .replaceAll(/[^A-Za-z0-9]+/g, "_")
    .replaceAll(/^_+|_+$/g, "")
    .toLowerCase();
  // Node codes and keywords cannot be aliases. A suffix makes any word valid.
  const alias = /^[a-z]/.test(words) ? `${words}_` : "value_";
  return [
    "SELECT",
    "  e/ehr_id/value AS ehr,",
    "  c/context/start_time/value AS time,",
    `  c${selectedPath(node)} AS ${alias}`,
    "FROM EHR e",
    `CONTAINS COMPOSITION c[${root.id ?? ""}]`,
    `WHERE c/archetype_details/template_id/value = '${template.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`,
    "ORDER BY time DESC",
    "LIMIT 100",
  ].join("\n");
}
