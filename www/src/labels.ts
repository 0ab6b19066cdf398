// The labels of patients: the subject that an EHR belongs to, beside its id.
import type { Patient } from "./protocol";

let labels = new Map<string, string>();

/** Replaces the labels by those of the repository that answers now. */
export function setLabels(patients: Patient[]): void {
  labels = new Map(patients.map(({ ehr, label }) => [ehr, label]));
}

/** Returns the label of an EHR, or `null` if it has none of its own. */
export function labelOf(ehr: string): string | null {
  const label = labels.get(ehr) ?? null;
  return label === ehr ? null : label;
}

/** Returns the name of an EHR in a list: its label, or else its id. */
export function nameOf(ehr: string): string {
  return labelOf(ehr) ?? ehr;
}
