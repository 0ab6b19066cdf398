// A query as a program that sends it to a server.
import { texts } from "./texts";

/** A query with its parameters, and the address before `/query/aql`. */
export interface Call {
  base: string;
  q: string;
  parameters: Record<string, unknown>;
  /**
   * Whether the displayed result is from the data of this browser, not from the server at the
   * address.
   */
  local: boolean;
}

/**
 * Converts a value to the form that a server accepts: the bare text of a field becomes a number if
 * it has the form of one.
 */
function plain(sent: unknown): unknown {
  if (typeof sent !== "object" || sent === null || Array.isArray(sent)) return sent;
  const { text } = sent as { text: string };
  return /^-?(0|[1-9]\d*)(\.\d+)?$/.test(text) ? Number(text) : text;
}

/** Returns the body of the request. */
export function body({ q, parameters }: Pick<Call, "q" | "parameters">): Record<string, unknown> {
  const bound = Object.entries(parameters).map(([name, sent]) => [name, plain(sent)]);
  return bound.length > 0 ? { q, query_parameters: Object.fromEntries(bound) } : { q };
}

type Asking = Pick<Call, "base" | "q" | "parameters">;

function url({ base }: Asking): string {
  return `${base.replace(/\/+$/, "")}/query/aql`;
}

/** Prints a value as a literal of Python, which is JSON with other words for three values. */
function python(value: unknown): string {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
  if (typeof value === "object")
    return `{${Object.entries(value)
      .map(([name, item]) => `${JSON.stringify(name)}: ${python(item)}`)
      .join(", ")}}`;
  return typeof value === "string" && value.includes("\n")
    ? `"""${value.replaceAll("\\", "\\\\").replaceAll('"""', '\\"\\"\\"')}"""`
    : JSON.stringify(value);
}

/** Prints a value as a literal of R. */
function r(value: unknown): string {
  if (value === null) return "NULL";
  if (typeof value === "boolean") return value ? "TRUE" : "FALSE";
  if (Array.isArray(value)) return `list(${value.map(r).join(", ")})`;
  if (typeof value === "object")
    return `list(${Object.entries(value)
      .map(([name, item]) => `${name} = ${r(item)}`)
      .join(", ")})`;
  return JSON.stringify(value);
}

const shellQuoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** A programming language: its name, its comment mark, and its printer of queries. */
interface Language {
  title: string;
  comment: string;
  write(call: Asking): string;
}

/**
 * Returns a query as a program. If the result is from the data of this browser, the program starts
 * with a comment that a server has other data.
 */
export function program({ comment, write }: Language, call: Call): string {
  const lines = call.local
    ? [texts.results.programOfBrowser, texts.results.programOfServer({ base: call.base })]
    : [];
  return [...lines.map((line) => `${comment} ${line}`), write(call)].join("\n");
}

/** The languages by id. */
export const languages: Record<string, Language> = {
  curl: {
    title: "curl",
    comment: "#",
    write: (call) =>
      `curl -s ${url(call)} -H 'content-type: application/json' -d ${shellQuoted(JSON.stringify(body(call)))}`,
  },
  pandas: {
    title: "Python (pandas)",
    comment: "#",
    write: (call) =>
      [
        "import pandas as pd",
        "import requests",
        "",
        `answer = requests.post(${JSON.stringify(url(call))}, json=${python(body(call))}, timeout=60)`,
        "answer.raise_for_status()",
        "result = answer.json()",
        'frame = pd.DataFrame(result["rows"], columns=[column["name"] for column in result["columns"]])',
        "",
      ].join("\n"),
  },
  r: {
    title: "R",
    comment: "#",
    write: (call) =>
      [
        "library(httr2)",
        "",
        `answer <- request(${JSON.stringify(url(call))}) |>`,
        `  req_body_json(${r(body(call))}) |>`,
        "  req_perform() |>",
        "  resp_body_json(simplifyVector = TRUE)",
        "frame <- as.data.frame(answer$rows)",
        "names(frame) <- answer$columns$name",
        "",
      ].join("\n"),
  },
  javascript: {
    title: "JavaScript",
    comment: "//",
    write: (call) =>
      [
        `const answer = await fetch(${JSON.stringify(url(call))}, {`,
        '  method: "POST",',
        '  headers: { "content-type": "application/json" },',
        `  body: JSON.stringify(${JSON.stringify(body(call))}),`,
        "});",
        "if (!answer.ok) throw new Error((await answer.json()).message);",
        "const { columns, rows } = await answer.json();",
        "",
      ].join("\n"),
  },
};
