// The texts of the patients view in Swedish.
import type { Texts } from "../../texts";
import { formats } from "../formats";

const t = formats("sv");

const compositions = { one: "komposition", other: "kompositioner" };
const versions = { one: "version", other: "versioner" };

export const patients: Texts["patients"] = {
  find: "Sök",
  findExample: "Etikett eller EHR-id",
  one: "Patient",
  kind: "Slag av dokument",
  latestFirst: "Kompositioner, den senaste först",
  more: "Visa fler",
  document: "Dokument",
  changes: "Ändringar",
  tree: "Träd",
  content: "Dokumentets innehåll",
  showAs: "Visa dokumentet som",
  timeline: "Tidslinje",
  noDocument: "Inget dokument",
  noDocumentAbout: "Välj en patient och sedan en komposition i tidslinjen.",
  ehr: ({ id }) => `EHR ${id}`,
  cut: ({ count }) => `De första ${t.number(count)} patienterna. Andra öppnas med EHR-id.`,
  none: "Det finns inga patienter.",
  noneFits: "Ingen patient stämmer.",
  listed: ({ label, count }) => `${label}: ${t.counted(count, compositions)}`,
  listedMore: ({ label, count }) => `${label}: ${t.number(count)} eller fler kompositioner`,
  timelineFailed: "Tidslinjen kan inte läsas",
  allKinds: "Alla dokument",
  withoutTime: "Utan tid",
  withoutName: "utan namn",
  noCompositions: "Inga kompositioner",
  noCompositionsAbout: "Inget som en fråga hittar är dokumenterat om den här patienten.",
  documentFailed: "Dokumentet kan inte läsas",
  download: "Ladda ned",
  oneVersion: "En version",
  oneVersionAbout: "Dokumentet har aldrig ändrats, så det finns inget att jämföra.",
  from: "Från",
  to: "Till",
  versionsFailed: "Versionerna kan inte läsas",
  version: ({ number }) => `Version ${number}`,
  versions: ({ count }) => t.counted(count, versions),
  versionsUntil: ({ count, time }) => `${t.counted(count, versions)}, den senaste från ${time}`,
  equal: "Inga skillnader",
  equalAbout: "De två versionerna är lika.",
  unseenAbout: "Bara delar som inte syns för läsaren skiljer sig, till exempel id.",
  nothing: "inget",
  value: "Värde",
  before: "Före",
  after: "Efter",
  differences: ({ count }) => t.counted(count, { one: "skillnad", other: "skillnader" }),
};
