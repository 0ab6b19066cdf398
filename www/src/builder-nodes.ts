// The nodes of a template as the builder shows them: entries, events, clusters and values, without
// the structures between them.
import { selectedPath, merged, name } from "./described";
import type { TemplateNode } from "./protocol";
import type { Step, Value } from "./query-build";
import { texts } from "./texts";

/** A line of the tree. */
export interface BuilderNode {
  /** The identity in the tree, which stays the same while branches open and close. */
  key: string;
  label: string;
  /** The class, the units and the number of choices. */
  detail: string;
  description: string;
  /** The value that can be a column; `null` for a branch. */
  value: Value | null;
  children: BuilderNode[];
}

/** The template whose nodes are being built, and the archetypes in it. */
interface Making {
  root: TemplateNode;
  archetypes: ReadonlySet<string>;
}

/** Structures without a clinical meaning of their own. The tree shows their content instead. */
const HIDDEN = new Set(["HISTORY", "ITEM_TREE", "ITEM_LIST", "ITEM_SINGLE", "ITEM_TABLE"]);
const EVENTS = new Set(["EVENT", "POINT_EVENT", "INTERVAL_EVENT"]);
/** An archetype id, with its class. */
const ARCHETYPE = /^(?:[\w.-]+::)?[A-Za-z]\w*-\w+-([A-Z_]+)\.\w/;
const SEGMENT = /\/[^/['"]+(?:\[(?:[^\]'"]|'(?:[^'\\]|\\.)*')*\])?/g;

/**
 * Returns the archetypes from the root to a path. `whole` is the path of the data value, `path` that
 * of the selected attribute.
 */
function stepsOf(root: TemplateNode, path: string, whole: string): Value["steps"] {
  const steps: [Step, ...Step[]] = [
    { name: root.class, predicate: root.id ?? "", rest: path.slice(1), whole: whole.slice(1) },
  ];
  for (const found of whole.matchAll(SEGMENT)) {
    const predicate = /\[(.*)\]$/.exec(found[0])?.[1] ?? "";
    const className = ARCHETYPE.exec(predicate)?.[1];
    const end = found.index + found[0].length + 1;
    if (className)
      steps.push({ name: className, predicate, rest: path.slice(end), whole: whole.slice(end) });
  }
  return steps;
}

function archetypesOf(root: TemplateNode): Set<string> {
  const found = new Set([root.id ?? ""]);
  const look = (node: TemplateNode) => {
    const predicate = /\[([^[]*)\]$/.exec(node.path ?? "")?.[1];
    if (predicate && ARCHETYPE.test(predicate)) found.add(predicate);
    node.children?.forEach(look);
  };
  look(root);
  return found;
}

/** Describes the content of a value in a few words: its class, and units without their limits. */
function brief(node: TemplateNode): string {
  const units = (node.units ?? []).map((unit) => unit.replace(/ \(.*\)$/, "")).join(", ");
  const codes = (node.codes ?? []).length;
  return [node.class, units, codes > 0 ? texts.builder.codes({ count: codes }) : ""]
    .filter(Boolean)
    .join(" · ");
}

function leaf(making: Making, node: TemplateNode, label: string, key: string): BuilderNode {
  const { root, archetypes } = making;
  const path = node.class === "ELEMENT" ? `${node.path ?? ""}/value` : selectedPath(node);
  const whole = node.class === "ELEMENT" ? path : (node.path ?? "");
  return {
    ...{ key, label, detail: brief(node), description: node.description ?? "" },
    value: { label, steps: stepsOf(root, path, whole), archetypes },
    children: [],
  };
}

/** Returns the values that every node of a class has by the Reference Model. Templates omit them. */
function implied({ class: of, path = "" }: TemplateNode): TemplateNode[] {
  const value = (label: string, at: string, type: string): TemplateNode => ({
    ...{ label, path: `${path}${at}`, class: type, occurrences: "1..1", mandatory: true },
  });
  if (of === "COMPOSITION")
    return [
      value(texts.builder.startTime, "/context/start_time", "DV_DATE_TIME"),
      value(texts.builder.composer, "/composer/name", "STRING"),
    ];
  return EVENTS.has(of) ? [value(texts.builder.time, "/time", "DV_DATE_TIME")] : [];
}

/** Returns the line of an ELEMENT. Alternative classes of its value are lines below it. */
function element(making: Making, node: TemplateNode, key: string): BuilderNode {
  const values = node.children ?? [];
  const label = name(node);
  const [first] = values;
  if (!first || values.every((one) => selectedPath(one) === selectedPath(first)))
    return leaf(making, first ? merged({ ...node, children: [first] }) : node, label, key);
  const children = values.map((one, at) => ({
    ...leaf(making, one, label, `${key}.${at}`),
    label: name(one),
  }));
  return { ...branch(node, key), children };
}

function branch(node: TemplateNode, key: string): BuilderNode {
  const { class: detail, description = "" } = node;
  return { key, label: name(node), detail, description, value: null, children: [] };
}

function nodes(making: Making, node: TemplateNode, key: string): BuilderNode[] {
  if (node.class === "ELEMENT") return [element(making, node, key)];
  if (node.class.startsWith("DV_") || node.class === "STRING")
    return [leaf(making, node, name(node), key)];
  const all = [...implied(node), ...(node.children ?? [])];
  const children = all.flatMap((child, at) => nodes(making, child, `${key}.${at}`));
  if (children.length === 0 || HIDDEN.has(node.class)) return children;
  return [{ ...branch(node, key), children }];
}

/** Returns the line of a template, with the lines of its nodes below. */
export function builderNodes(template: string, root: TemplateNode): BuilderNode {
  const making = { root, archetypes: archetypesOf(root) };
  const children = nodes(making, root, template).flatMap((node) => node.children);
  return { ...branch(root, template), detail: template, children };
}
