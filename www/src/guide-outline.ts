// The outline of a guide's text, in JSON (GDL2) or ODIN (GDL1): bindings, elements, rules and terms
// with their positions. It is read from the tokens alone, so a text with syntax errors has an outline.

/** A named member of the text: its path from the root, and the position of its name. */
interface Member {
  path: string[];
  from: number;
  to: number;
}

/** The kinds of items in the outline. */
export type Kind = "binding" | "element" | "rule" | "term";

/** An item of the outline. Positions are in UTF-16 units. */
export interface Item {
  kind: Kind;
  /** The gt-code. */
  code: string;
  /** The language of a term; empty for all others. */
  language: string;
  from: number;
  to: number;
}

/** Strings, names, keys of ODIN, comments of ODIN, brackets. All other characters are skipped. */
const TOKEN =
  /"(?:[^"\\]|\\[^])*"?|\["(?:[^"\\]|\\[^])*"\](?=\s*=)|--[^\n]*|[A-Za-z_]\w*(?=\s*=\s*[<(])|[{}[\]<>]/g;

/** Returns the text of a quoted token. */
function unquoted(token: string): string {
  return token.slice(1, -1).replaceAll(/\\(.)/g, "$1");
}

/** Returns the named members of a text, in their order. */
function* members(text: string): Generator<Member> {
  const open: string[] = [];
  let pending = "";
  for (const found of text.matchAll(TOKEN)) {
    const [token] = found;
    const [from, to] = [found.index, found.index + token.length];
    if ("{[<".includes(token)) {
      open.push(pending);
      pending = "";
    } else if ("}]>".includes(token)) open.pop();
    else if (!token.startsWith("--")) {
      const isKey = !token.startsWith('"') || /^\s*:/.test(text.slice(to, to + 40));
      if (!isKey) continue;
      pending = token.startsWith("[")
        ? unquoted(token.slice(1, -1))
        : token.startsWith('"')
          ? unquoted(token)
          : token;
      yield { path: [...open.filter((name) => name !== ""), pending], from, to };
    }
  }
}

/** Returns the kind of a member, and the language of a term. */
function kindOf(path: string[]): { kind: Kind; language: string } | null {
  const at = (end: number) => path.at(end) ?? "";
  const isBinding = (name: string) => name === "data_bindings" || name === "archetype_bindings";
  if (isBinding(at(-2))) return { kind: "binding", language: "" };
  if (at(-2) === "elements" && isBinding(at(-4))) return { kind: "element", language: "" };
  if (at(-2) === "rules" && path.length <= 3) return { kind: "rule", language: "" };
  if (["terms", "items"].includes(at(-2)) && at(-4) === "term_definitions")
    return { kind: "term", language: at(-3) };
  return null;
}

/** Returns the items of a guide's text in the order of the text. */
export function outline(text: string): Item[] {
  const items: Item[] = [];
  for (const { path, from, to } of members(text)) {
    const found = kindOf(path);
    if (found) items.push({ ...found, code: path.at(-1) ?? "", from, to });
  }
  return items;
}

/** Returns the id of a guide's text with its position, without the quotes; `null` without one. */
export function idOf(text: string): { id: string; from: number; to: number } | null {
  for (const { path, to } of members(text)) {
    if (path.length !== 1 || path[0] !== "id") continue;
    const value = /^\s*(?::|=\s*<)\s*"([^"\\]*)"/.exec(text.slice(to, to + 1000));
    if (!value) continue;
    const end = to + value[0].length - 1;
    return { id: value[1] ?? "", from: end - (value[1] ?? "").length, to: end };
  }
  return null;
}

/** Returns the id of the next version of a guide that is not in use: `Demo.v1`, `Demo.v2`, … */
export function nextVersion(id: string, taken: (id: string) => boolean): string {
  const found = /^(.*\.v)(\d+)/.exec(id);
  const [base, last] = found ? [found[1] ?? "", Number(found[2])] : [`${id}.v`, 1];
  for (let version = last + 1; ; version += 1)
    if (!taken(`${base}${version}`)) return `${base}${version}`;
}
