// Web templates as the interface gives them (`application/openehr.wt+json`).

/** One value of a choice. */
export interface WebOption {
  value: string;
  label?: string;
  localizedLabels?: Record<string, string>;
  ordinal?: number;
  validation?: { range?: WebRange };
}

interface WebRange {
  min?: number | string;
  max?: number | string;
}

/** One control of a node. */
export interface WebInput {
  suffix?: string;
  type: string;
  list?: WebOption[];
  listOpen?: boolean;
  validation?: { range?: WebRange; pattern?: string };
}

/** A node: a group or a value. */
export interface WebNode {
  id: string;
  name?: string;
  localizedName?: string;
  localizedNames?: Record<string, string>;
  localizedDescriptions?: Record<string, string>;
  rmType: string;
  nodeId?: string;
  min: number;
  max: number;
  aqlPath: string;
  inContext?: boolean;
  inputs?: WebInput[];
  children?: WebNode[];
}

/** A template, as developers of applications see it. */
export interface WebTemplate {
  templateId: string;
  defaultLanguage: string;
  languages: string[];
  tree: WebNode;
}

/** The name of a node in a language, else in the template's own, else its id. */
export function label(node: WebNode, language: string): string {
  return node.localizedNames?.[language] ?? node.localizedName ?? node.name ?? node.id.replaceAll("_", " ");
}

/** What a node means, in a language, else in any. */
export function meaning(node: WebNode, language: string): string {
  return node.localizedDescriptions?.[language] ?? Object.values(node.localizedDescriptions ?? {})[0] ?? "";
}

/** How often a node may occur: `1`, `0..1`, `1..*`. */
export function occurrences({ min, max }: WebNode): string {
  const most = max < 0 ? "*" : String(max);
  return String(min) === most ? most : `${min}..${most}`;
}

/** The data type without what stands in front of every one, in words of one line: type, units, range, choices. */
export function kind(node: WebNode): string {
  const type = node.rmType.replace(/^DV_/, "").toLowerCase().replaceAll("_", " ");
  const lists = (node.inputs ?? []).map(({ list }) => list ?? []).filter((list) => list.length > 0);
  const choices = lists.map((list) => (list.length <= 3 ? list.map((option) => option.label ?? option.value).join(", ") : `${list.length} choices`));
  return [type, ...choices].join(" · ");
}

/** The attribute of a value that a query usually wants. */
export function asked(node: WebNode): string {
  const attributes: Record<string, string> = { DV_QUANTITY: "/magnitude", DV_COUNT: "/magnitude", DV_ORDINAL: "/value", DV_SCALE: "/value", DV_PROPORTION: "/numerator", DV_IDENTIFIER: "/id" };
  if (!node.rmType.startsWith("DV_")) return "";
  return attributes[node.rmType] ?? "/value";
}

/** A query for one node of a template: the node of every document of it. */
export function query({ templateId, tree }: WebTemplate, node: WebNode): string {
  const name = node.id.replaceAll(/[^A-Za-z0-9_]/g, "_").replace(/^([^A-Za-z])/, "n$1");
  const alias = /^(id|at)\d+$/i.test(name) ? `the_${name}` : name;
  return [
    "SELECT",
    "  e/ehr_id/value AS ehr,",
    "  c/context/start_time/value AS time,",
    `  c${node.aqlPath}${asked(node)} AS ${alias}_`.replace(/_$/, ""),
    "FROM EHR e",
    `CONTAINS COMPOSITION c[${tree.nodeId ?? ""}]`,
    `WHERE c/archetype_details/template_id/value = '${templateId.replaceAll("'", "\\'")}'`,
    "ORDER BY time DESC",
    "LIMIT 100",
  ].join("\n");
}
