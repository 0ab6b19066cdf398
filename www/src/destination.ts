// The resource of the REST interface to which a file is sent, by its content.
import { Fault } from "./fault";

/** The destination of a file. */
export interface Destination {
  /** The parent resource: `ehr` for documents of a patient, else `definition`. */
  scope: "ehr" | "definition";
  path: string;
  type: string;
  /** The id of the root of a simplified document, which determines its template. */
  root?: string;
}

/** Returns the line and the column of an offset, counted from 1. */
function place(text: string, offset: number): { line: number; column: number } {
  const before = text.slice(0, offset).split("\n");
  return { line: before.length, column: (before.at(-1)?.length ?? 0) + 1 };
}

const SPACE = /[ \t\r\n]*/y;
const TOKEN =
  /[{}[\],:]|"(?:[^"\\\p{Cc}]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/uy;

/** Returns the match of a sticky expression at an offset; empty if there is none. */
function matched(expression: RegExp, text: string, at: number): string {
  expression.lastIndex = at;
  return expression.exec(text)?.[0] ?? "";
}

/**
 * Returns the offset at which a text stops being JSON. The messages of browsers do not always have
 * a position.
 */
function brokenAt(text: string): number {
  const open: string[] = [];
  let expected = "value";
  for (let at = 0; ;) {
    at += matched(SPACE, text, at).length;
    const token = matched(TOKEN, text, at);
    const [first = ""] = token;
    const inner = open.at(-1);
    const isEnd = first !== "" && first === inner;
    if (isEnd && (expected === "comma" || expected.endsWith("end"))) {
      open.pop();
      expected = "comma";
    } else if (expected === "comma") {
      if (first !== "," || inner === undefined) return at;
      expected = inner === "}" ? "key" : "value";
    } else if (expected === "colon") {
      if (first !== ":") return at;
      expected = "value";
    } else if (expected.startsWith("key")) {
      if (first !== '"') return at;
      expected = "colon";
    } else {
      if (first === "" || "}],:".includes(first)) return at;
      const closing = ({ "{": "}", "[": "]" } as Record<string, string>)[first];
      if (closing) open.push(closing);
      expected = closing === "}" ? "key or end" : closing ? "value or end" : "comma";
    }
    at += token.length;
  }
}

/** Parses JSON. An error names line and column. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    const at = brokenAt(text);
    const found = text.slice(at, at + 12).split("\n")[0];
    throw found
      ? new Fault("notJson", { ...place(text, at), found })
      : new Fault("jsonEnds", place(text, at));
  }
}

/** Returns the root of a document in FLAT or STRUCTURED, or `null` for other JSON. */
function simplified(json: object): { path: string; root: string } | null {
  const keys = Object.keys(json).filter((key) => key !== "ctx" && !key.startsWith("ctx/"));
  const [first] = keys;
  if (first === undefined) return null;
  const root = first.split("/")[0] ?? first;
  const isFlat = keys.every((key) => key.split(/[/|]/)[0]?.replace(/:\d+$/, "") === root);
  if (isFlat && first.includes("/")) return { path: "flat", root };
  const value = (json as Record<string, unknown>)[first];
  const isStructured = keys.length === 1 && typeof value === "object" && value !== null;
  return isStructured ? { path: "structured", root: first } : null;
}

/**
 * Returns the destination of a file.
 *
 * Throws an error with line and column for broken JSON, and for content of no known kind.
 */
export function destination(name: string, text: string): Destination {
  const start = text.trimStart();
  if (start.startsWith("<")) {
    if (/<template[\s>]/.test(start.slice(0, 4000)))
      return { scope: "definition", path: "template?type=opt14", type: "application/xml" };
    return { scope: "ehr", path: "composition", type: "application/xml" };
  }
  const isJson = start.startsWith("{");
  if (/\.gdl2?(\.json)?$/i.test(name))
    return { scope: "definition", path: "gdl", type: isJson ? "application/json" : "text/plain" };
  if (!isJson) throw new Fault("unknownFile");
  const json = parsed(text) as Record<string, unknown>;
  if (json["_type"] === "COMPOSITION")
    return { scope: "ehr", path: "composition", type: "application/json" };
  if ("definition" in json && /"rules"\s*:/.test(start))
    return { scope: "definition", path: "gdl", type: "application/json" };
  const found = simplified(json);
  if (!found) throw new Fault("unknownFile");
  return {
    scope: "ehr",
    path: "composition",
    type: `application/openehr.wt.${found.path}+json`,
    root: found.root,
  };
}
