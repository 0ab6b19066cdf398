// The JSON that the engine returns about guides: types, and functions that read untyped parts.
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

/** The results of the cases of a fixture. */
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

/** The members of an object of JSON. */
export type Members = { [name: string]: Json };

/** Returns the members of an object. Empty for any other value. */
export function members(value: Json | undefined): Members {
  return typeof value === "object" &&
    value !== null &&
    !Array.isArray(value) &&
    !(value instanceof NumberText)
    ? value
    : {};
}

/** Returns the elements of a list. Empty for any other value. */
export function list(value: Json | undefined): Json[] {
  return Array.isArray(value) ? value : [];
}

/** Returns a text or number as text. Empty for any other value. */
export function text(value: Json | undefined): string {
  if (typeof value === "string") return value;
  return value instanceof NumberText ? value.text : "";
}
