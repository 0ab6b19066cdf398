// The texts of the patients view in German.
import type { Texts } from "../../texts";
import { formats } from "../formats";

const t = formats("de");

const compositions = { one: "Composition", other: "Compositions" };
const versions = { one: "Version", other: "Versionen" };

export const patients: Texts["patients"] = {
  find: "Suchen",
  findExample: "Bezeichnung oder EHR-Id",
  one: "Patient",
  kind: "Art des Dokuments",
  latestFirst: "Compositions, die neueste zuerst",
  more: "Mehr anzeigen",
  document: "Dokument",
  changes: "Änderungen",
  tree: "Baum",
  content: "Inhalt des Dokuments",
  showAs: "Dokument anzeigen als",
  timeline: "Zeitleiste",
  noDocument: "Kein Dokument",
  noDocumentAbout: "Wählen Sie einen Patienten und dann eine Composition der Zeitleiste.",
  ehr: ({ id }) => `EHR ${id}`,
  cut: ({ count }) => `Die ersten ${t.number(count)} Patienten. Andere öffnen Sie über die EHR-Id.`,
  none: "Es gibt keine Patienten.",
  noneFits: "Kein Patient passt.",
  listed: ({ label, count }) => `${label}: ${t.counted(count, compositions)}`,
  listedMore: ({ label, count }) => `${label}: ${t.number(count)} oder mehr Compositions`,
  timelineFailed: "Die Zeitleiste kann nicht gelesen werden",
  allKinds: "Alle Dokumente",
  withoutTime: "Ohne Zeit",
  withoutName: "ohne Namen",
  noCompositions: "Keine Compositions",
  noCompositionsAbout: "Über diesen Patienten ist nichts dokumentiert, das eine Abfrage findet.",
  documentFailed: "Das Dokument kann nicht gelesen werden",
  download: "Herunterladen",
  oneVersion: "Eine Version",
  oneVersionAbout: "Dieses Dokument wurde nie geändert, es gibt also nichts zu vergleichen.",
  from: "Von",
  to: "Bis",
  versionsFailed: "Die Versionen können nicht gelesen werden",
  version: ({ number }) => `Version ${number}`,
  versions: ({ count }) => t.counted(count, versions),
  versionsUntil: ({ count, time }) => `${t.counted(count, versions)}, die letzte vom ${time}`,
  equal: "Keine Unterschiede",
  equalAbout: "Die beiden Versionen sind gleich.",
  unseenAbout: "Es unterscheiden sich nur Teile, die beim Lesen nicht sichtbar sind, etwa Ids.",
  nothing: "nichts",
  value: "Wert",
  before: "Vorher",
  after: "Nachher",
  differences: ({ count }) => t.counted(count, { one: "Unterschied", other: "Unterschiede" }),
};
