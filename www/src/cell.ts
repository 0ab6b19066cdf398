// The display of a result cell: a short text, its kind, and the class of an object.
import { NumberText, parse, type Json } from "./json";
import { texts } from "./texts";

/** A cell in the form in which the grid draws it. */
export interface CellView {
  kind: "null" | "number" | "text" | "boolean" | "object";
  text: string;
  /** The class of an object. */
  type?: string;
}

const object = (value: Json | undefined): value is { [name: string]: Json } =>
  typeof value === "object" &&
  value !== null &&
  !Array.isArray(value) &&
  !(value instanceof NumberText);

function words(value: Json | undefined): string | undefined {
  if (typeof value === "string") return value;
  if (value instanceof NumberText) return value.text;
  if (typeof value === "boolean") return String(value);
  return object(value) ? words(value["value"]) : undefined;
}

/** Returns the text of an object that readers want to see first: `<0.01 ng/ml`. */
function summary(value: Json): string {
  if (Array.isArray(value)) return texts.frame.items({ count: value.length });
  if (!object(value)) return "";
  const status = words(value["magnitude_status"]) ?? "=";
  return status === "=" ? content(value) : `${status}${content(value)}`;
}

/** Returns the text of an object without the status of its magnitude. */
function content(value: { [name: string]: Json }): string {
  const magnitude = words(value["magnitude"]);
  if (magnitude !== undefined) return [magnitude, words(value["units"])].filter(Boolean).join(" ");
  if (value["numerator"] !== undefined)
    return `${words(value["numerator"])} / ${words(value["denominator"])}`;
  if (value["symbol"] !== undefined) return words(value["symbol"]) ?? "";
  if (value["lower"] !== undefined || value["upper"] !== undefined)
    return texts.results.interval({
      lower: summary(value["lower"] ?? null) || "…",
      upper: summary(value["upper"] ?? null) || "…",
    });
  return (
    words(value["value"]) ??
    words(value["name"]) ??
    words(value["id"]) ??
    words(value["code_string"]) ??
    words(value["uid"]) ??
    ""
  );
}

/** Converts the JSON text of a cell for display. */
export function view(text: string): CellView {
  const first = text.charCodeAt(0);
  if (text === "null") return { kind: "null", text: "" };
  if (text === "true" || text === "false") return { kind: "boolean", text };
  if (first === 34) return { kind: "text", text: JSON.parse(text) as string };
  if (first === 123 || first === 91) {
    const value = parse(text);
    const type = object(value) ? words(value["_type"]) : texts.results.list;
    return { kind: "object", text: summary(value), type: type ?? "object" };
  }
  return { kind: "number", text };
}
