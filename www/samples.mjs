// The definitions of the sample patients as texts: templates (OPT 1.4) and guides (GDL2 in JSON).
import { readFile } from "node:fs/promises";

const texts = (names) =>
  Promise.all(names.map((name) => readFile(new URL(`samples/${name}`, import.meta.url), "utf8")));

/** Returns the JSON text `{templates, guides}`. */
export async function sampleDefinitions() {
  const templates = await texts(["vital_signs.opt", "laboratory_report.opt", "problem_list.opt"]);
  const guides = await texts([
    "blood_pressure_category.gdl2.json",
    "early_warning_score.gdl2.json",
  ]);
  return JSON.stringify({ templates, guides });
}
