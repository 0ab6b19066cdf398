// The texts of the patients view, and of documents in readable form.
import { formats } from "../formats";

const t = /* @__PURE__ */ formats("en");

export const patients = {
  find: "Find",
  findExample: "Label or id of an EHR",
  one: "Patient",
  kind: "Kind of document",
  latestFirst: "Compositions, the latest first",
  more: "Show more",
  document: "Document",
  changes: "Changes",
  tree: "Tree",
  content: "Content of the document",
  showAs: "Show the document as",
  timeline: "Timeline",
  noDocument: "No document",
  noDocumentAbout: "Choose a patient, then a composition of the timeline.",
  ehr: ({ id }: { id: string }) => `EHR ${id}`,
  cut: ({ count }: { count: number }) =>
    `The first ${t.number(count)} patients. Others open by the id of the EHR.`,
  none: "There are no patients.",
  noneFits: "No patient fits.",
  listed: ({ label, count }: { label: string; count: number }) =>
    `${label}: ${t.counted(count, { one: "composition", other: "compositions" })}`,
  listedMore: ({ label, count }: { label: string; count: number }) =>
    `${label}: ${t.number(count)} or more compositions`,
  timelineFailed: "The timeline cannot be read",
  allKinds: "All documents",
  withoutTime: "Without time",
  withoutName: "without name",
  noCompositions: "No compositions",
  noCompositionsAbout: "Nothing is recorded about this patient that a query finds.",
  documentFailed: "The document cannot be read",
  download: "Download",
  oneVersion: "One version",
  oneVersionAbout: "This document was never changed, so there is nothing to compare.",
  from: "From",
  to: "To",
  versionsFailed: "The versions cannot be read",
  version: ({ number }: { number: string }) => `Version ${number}`,
  versions: ({ count }: { count: number }) =>
    t.counted(count, { one: "version", other: "versions" }),
  versionsUntil: ({ count, time }: { count: number; time: string }) =>
    `${t.counted(count, { one: "version", other: "versions" })}, the last of ${time}`,
  equal: "No differences",
  equalAbout: "The two versions are equal.",
  unseenAbout: "Only parts differ that a reader does not see, such as ids.",
  nothing: "nothing",
  value: "Value",
  before: "Before",
  after: "After",
  differences: ({ count }: { count: number }) =>
    t.counted(count, { one: "difference", other: "differences" }),
};
