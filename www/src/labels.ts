// The labels of patients: the subject that an EHR belongs to, beside its id. The labels of the listed
// patients are known from the start. Those of further EHRs are read when something shows their ids.
import { LISTED, type Patient } from "./protocol";

/** The maximum number of EHRs of one request for labels. */
const ASKED = 500;
/** The time in milliseconds during which ids are collected before they are requested. */
const COLLECTED = 50;

/** The labels of EHRs; of an EHR without one, or whose label was requested, its id. */
let labels = new Map<string, string>();
/** The EHRs whose labels are to be requested. */
const wanted = new Set<string>();
/** Whether EHRs beyond the listed ones may have labels. */
let isPartial = false;
/** The number of the repository that answers now. Labels of earlier ones are ignored. */
let repository = 0;
let timer: ReturnType<typeof setTimeout> | undefined;
let read: (ehrs: string[]) => Promise<Patient[]> = () => Promise.resolve([]);
let arrived = (): void => undefined;

/** Sets the function that reads the labels of EHRs, and the one that draws them when they arrive. */
export function readLabels(by: typeof read, drawn: () => void): void {
  read = by;
  arrived = drawn;
}

/** Replaces the labels by those of the listed patients of the repository that answers now. */
export function setLabels(patients: Patient[]): void {
  repository += 1;
  wanted.clear();
  isPartial = patients.length >= LISTED;
  labels = new Map(patients.map(({ ehr, label }) => [ehr, label]));
}

/** Returns the label of an EHR, or `null` if it has none of its own or is not known yet. */
export function labelOf(ehr: string): string | null {
  const label = labels.get(ehr);
  if (label === undefined && isPartial && ehr !== "") {
    wanted.add(ehr);
    timer ??= setTimeout(() => void request(), COLLECTED);
  }
  return label === undefined || label === ehr ? null : label;
}

/** Returns the name of an EHR in a list: its label, or else its id. */
export function nameOf(ehr: string): string {
  return labelOf(ehr) ?? ehr;
}

/** Reads the labels of EHRs that are not known yet. */
export async function completeLabels(ehrs: (string | null)[]): Promise<void> {
  for (const ehr of ehrs) labelOf(ehr ?? "");
  while (wanted.size > 0) await request();
}

/** Requests the labels of the EHRs that were shown. Without an answer, they have none. */
async function request(): Promise<void> {
  const asked = [...wanted].slice(0, ASKED);
  const from = repository;
  for (const ehr of asked) {
    wanted.delete(ehr);
    labels.set(ehr, ehr);
  }
  const patients = asked.length > 0 ? await read(asked).catch(() => []) : [];
  timer = wanted.size > 0 ? setTimeout(() => void request(), COLLECTED) : undefined;
  if (from !== repository || patients.length === 0) return;
  for (const { ehr, label } of patients) labels.set(ehr, label);
  arrived();
}
