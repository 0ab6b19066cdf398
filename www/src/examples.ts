// The example queries from samples/examples.aql: title, purpose, parameter values and text.
import text from "../samples/examples.aql";

/** An example query. */
export interface Example {
  title: string;
  /** The feature that the example shows. */
  about: string;
  q: string;
  /** The initial values of its parameters. */
  parameters: Record<string, string>;
}

function read(part: string): Example {
  const lines = part.trim().split("\n");
  const parameters: Record<string, string> = {};
  const about: string[] = [];
  const q: string[] = [];
  for (const line of lines.slice(1)) {
    const bound = /^-- \$(\w+) = (.*)$/.exec(line);
    if (bound) parameters[bound[1] ?? ""] = bound[2] ?? "";
    else if (line.startsWith("-- ") && q.length === 0) about.push(line.slice(3));
    else q.push(line);
  }
  return { title: lines[0] ?? "", about: about.join(" "), q: q.join("\n"), parameters };
}

/** The examples. The first one is run on the first visit. */
export const examples: Example[] = text
  .split(/^-- # /m)
  .slice(1)
  .map(read);
