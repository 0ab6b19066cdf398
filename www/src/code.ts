// A query as a program: what to paste elsewhere to ask a server the same.

/** A query with its parameters, and the address in front of `/query/aql`. */
export interface Call {
  base: string;
  q: string;
  parameters: Record<string, unknown>;
  /** True when the result on the screen is not of the server at that address, but of the data of this browser. */
  local: boolean;
}

/** A value as a server takes it: a bare text of a field is a number where it reads like one. */
function plain(sent: unknown): unknown {
  if (typeof sent !== "object" || sent === null || Array.isArray(sent)) return sent;
  const { text } = sent as { text: string };
  return /^-?(0|[1-9]\d*)(\.\d+)?$/.test(text) ? Number(text) : text;
}

/** The body of the request. */
export function body({ q, parameters }: Pick<Call, "q" | "parameters">): Record<string, unknown> {
  const bound = Object.entries(parameters).map(([name, sent]) => [name, plain(sent)]);
  return bound.length > 0 ? { q, query_parameters: Object.fromEntries(bound) } : { q };
}

type Asking = Pick<Call, "base" | "q" | "parameters">;

function url({ base }: Asking): string {
  return `${base.replace(/\/+$/, "")}/query/aql`;
}

/** A literal of Python: JSON with other words for three values. */
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

/** A literal of R. */
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

/** A language: its name, what begins a comment, and a query as a program. */
interface Language {
  title: string;
  comment: string;
  write(call: Asking): string;
}

/** A query as a program. Where the data of this browser gave the result, the program says first that a server answers from other data. */
export function program({ comment, write }: Language, call: Call): string {
  const lines = call.local
    ? [
        "The data of this browser gave the result on the page.",
        `This asks the server at ${call.base}, which answers from its own data.`,
      ]
    : [];
  return [...lines.map((line) => `${comment} ${line}`), write(call)].join("\n");
}

/** The languages by their ids. */
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
