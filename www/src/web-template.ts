// Web templates as the interface returns them (`application/openehr.wt+json`).

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
  /** `>` excludes the limit. */
  minOp?: ">" | ">=";
  max?: number | string;
  /** `<` excludes the limit. */
  maxOp?: "<" | "<=";
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

/** A web template. */
export interface WebTemplate {
  templateId: string;
  defaultLanguage: string;
  languages: string[];
  tree: WebNode;
}

/** Returns the name of a node in a language, else in the template's own, else its id. */
export function label(node: WebNode, language: string): string {
  return (
    node.localizedNames?.[language] ??
    node.localizedName ??
    node.name ??
    node.id.replaceAll("_", " ")
  );
}

/** Returns the description of a node in a language, or else in any language. */
export function meaning(node: WebNode, language: string): string {
  return (
    node.localizedDescriptions?.[language] ??
    Object.values(node.localizedDescriptions ?? {})[0] ??
    ""
  );
}
