// What the engine tells about guides: shapes of JSON, and small helpers to read the parts that are only drawn.
import { NumberText, type Json } from "./json";
import type { GuideDescription } from "../package/types";
import type { Diagnostic } from "./protocol";

export type { GuideBinding, GuideElement, GuideInput } from "../package/types";

/** A problem of a guide or fixture, with its place in the text. */
export interface GuideProblem extends Diagnostic {
  line: number;
  column: number;
}

/** A guide in one language. */
export interface DescribedGuide extends Omit<GuideDescription, "problems"> {
  problems: GuideProblem[];
}

/** What came of the cases of a fixture. */
export interface TestedGuide {
  guide_id: string;
  problems: GuideProblem[];
  cases: {
    id: string;
    line: number;
    passed: boolean;
    differences: string[];
    fired: string[];
    input: [string, string][];
    expected: [string, string][];
  }[];
}

/** An object of JSON. */
export type Members = { [name: string]: Json };

/** The members of an object; none of anything else. */
export function members(value: Json | undefined): Members {
  return typeof value === "object" &&
    value !== null &&
    !Array.isArray(value) &&
    !(value instanceof NumberText)
    ? value
    : {};
}

/** The elements of a list; none of anything else. */
export function list(value: Json | undefined): Json[] {
  return Array.isArray(value) ? value : [];
}

/** A text or number as text; empty for anything else. */
export function text(value: Json | undefined): string {
  if (typeof value === "string") return value;
  return value instanceof NumberText ? value.text : "";
}
