// What the engine tells about guides: shapes of JSON, and small helpers to read the parts that are only drawn.
import { NumberText, type Json } from "./json";
import type { Diagnostic } from "./protocol";

/** A variable of a binding. */
export interface GuideElement {
  id: string;
  name: string | null;
  path: string;
}

/** A model that a guide reads or makes. */
export interface GuideBinding {
  id: string;
  name: string | null;
  type: "INPUT" | "OUTPUT" | null;
  model_id: string;
  template_id: string | null;
  elements: GuideElement[];
  predicates: string[];
  aql: string | null;
}

/** What a form needs for one variable. */
export interface GuideInput {
  variable: string;
  name: string;
  description?: string;
  binding: string;
  control: "quantity" | "count" | "ordinal" | "coded_text" | "text" | "boolean" | "date_time" | "proportion" | "duration";
  units?: string[];
  options?: { literal: string; text: string }[];
}

/** A problem of a guide or fixture, with its place in the text. */
export interface GuideProblem extends Diagnostic {
  line: number;
  column: number;
}

/** A guide in one language. */
export interface DescribedGuide {
  id: string;
  gdl_version: string;
  language: string;
  languages: string[];
  concept: string | null;
  purpose: string | null;
  use: string | null;
  misuse: string | null;
  bindings: GuideBinding[];
  inputs: GuideInput[];
  outputs: { variable: string; name: string | null; binding: string; path: string }[];
  pre_conditions: string[];
  default_actions: string[];
  rules: { id: string; name: string | null; priority: number; when: string[]; then: string[]; cards: number }[];
  terms: { id: string; text: string; description: string }[];
  problems: GuideProblem[];
}

/** What came of the cases of a fixture. */
export interface TestedGuide {
  guide_id: string;
  problems: GuideProblem[];
  cases: { id: string; line: number; passed: boolean; differences: string[]; fired: string[]; input: [string, string][]; expected: [string, string][] }[];
}

/** An object of JSON. */
export type Members = { [name: string]: Json };

/** The members of an object; none of anything else. */
export function members(value: Json | undefined): Members {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof NumberText) ? value : {};
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
