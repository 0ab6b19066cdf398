// The texts of the result in German.
import type { Texts } from "../../texts";
import { formats } from "../formats";

const t = formats("de");

export const results: Texts["results"] = {
  title: "Ergebnis",
  running: "Läuft",
  showAs: "Ergebnis anzeigen als",
  table: "Tabelle",
  chart: "Diagramm",
  explain: "Erklärung",
  save: "Ergebnis speichern",
  saveCsv: "Als CSV speichern",
  saveNdjson: "Als NDJSON speichern, ein Objekt je Zeile",
  saveJson: "Als JSON speichern",
  saveParquet: "Als Parquet speichern, mit typisierten Spalten",
  saveArrow: "Als Arrow-Stream speichern, mit typisierten Spalten",
  saveDocuments: "Die Compositions hinter den Zeilen speichern",
  documents: "Dokumente…",
  copyProgram: "Die Abfrage als Programm kopieren",
  copyAs: "Kopieren als…",
  pages: "Seiten des Ergebnisses",
  earlier: ({ q }) =>
    `Von einer früheren Abfrage: Text oder Wert haben sich seither geändert. Tabelle, Diagramm und gespeicherte Dateien gehören zu: ${q}`,
  earlierExplained: ({ q }) =>
    `Von einer früheren Abfrage: Text oder Wert haben sich seither geändert. Erklärt wird: ${q}`,
  thisPage: "Sortierung und Filter betreffen nur diese Seite.",
  unfiltered: "Die Filter der Tabelle gelten hier nicht: das Diagramm zeigt alle Zeilen.",
  paged: "Das Ergebnis wird seitenweise angezeigt und gespeichert.",
  pageBefore: "Vorige Seite",
  pageNext: "Nächste Seite",
  window: ({ from, to }) => `Zeilen ${t.number(from)} bis ${t.number(to)}`,
  rows: ({ count }) => t.counted(count, { one: "Zeile", other: "Zeilen" }),
  columns: ({ count }) => t.counted(count, { one: "Spalte", other: "Spalten" }),
  milliseconds: ({ milliseconds }) => `${t.number(milliseconds, 1)} ms`,
  seconds: ({ seconds }) => `${t.number(seconds, 1)} s`,
  times: ({ engine, total }) =>
    `${t.number(engine, 2)} ms in der Engine, ${t.number(total, 1)} ms, bis die Zeilen hier waren`,
  noDocuments:
    "diese Zeilen gehören zu keinen eigenen Dokumenten: sie sind gezählt, verschieden (DISTINCT) oder Werte der Patientenakte (EHR) selbst",
  noTable: ({ reason }) => `es wurde keine Tabelle geschrieben: ${reason}`,
  notExplained: "Diese Abfrage kann hier nicht erklärt werden",
  noRows: "Keine Zeilen",
  noRowsAbout: "Nichts in den Daten passt. Lockern Sie eine Bedingung in WHERE oder ein CONTAINS.",
  noRowsWarned: "Nichts in den Daten passt, vielleicht wegen einer Warnung zur Abfrage:",
  bom: "CSV mit BOM",
  bomAbout:
    "Gespeichertes CSV mit einer Byte-Reihenfolge-Markierung beginnen, damit Excel alle Buchstaben liest",
  json: "Ergebnis als JSON",
  moreRows: ({ count }) =>
    `… ${t.number(count)} weitere Zeilen: als JSON speichern, um alle zu sehen`,
  nothingToDraw: "Nichts zu zeichnen",
  nothingToDrawAbout:
    "Ein Diagramm braucht eine Spalte mit Zahlen oder Messgrößen; mit einer Datumsspalte daneben werden sie über die Zeit gezeichnet.",
  cell: ({ name, row }) => `${name}, Zeile ${t.number(row)}`,
  object: "Objekt",
  closeObject: "Objekt schließen",
  showCell: "Zelle anzeigen",
  itself: "Selbst",
  inDocument: "In ihrem Dokument",
  copy: "Kopieren",
  objectContent: "Inhalt des Objekts",
  noDocument:
    "Diese Zelle gehört zu keinem einzelnen Dokument: sie ist gezählt, berechnet oder ein Wert der Patientenakte (EHR) selbst.",
  filter: "Filtern",
  filters: "Filter",
  filterColumn: ({ name }) => `${name} filtern`,
  filterExample: "Text, >5, =x",
  gridTitle: "Zeilen des Ergebnisses",
  clickToSort: "Klicken zum Sortieren",
  matching: ({ count, of }) =>
    `${t.number(count)} von ${t.number(of)} Zeilen passen; gespeicherte Dateien haben alle`,
  partLeavesNone: "Der markierte Teil lässt keine Zeile übrig.",
  partsNotCounted: "Nicht alle Teile wurden gezählt.",
  part: "Teil der Abfrage",
  rowsLeft: "Zeilen übrig",
  rowsWithout: "Zeilen ohne ihn",
  interval: ({ lower, upper }) => `${lower} bis ${upper}`,
  list: "Liste",
  programOfBrowser: "Das Ergebnis auf der Seite stammt von den Daten dieses Browsers.",
  programOfServer: ({ base }) =>
    `Dies fragt den Server ${base}, der aus seinen eigenen Daten antwortet.`,
};

export const chart: Texts["chart"] = {
  title: "Diagramm. Pfeiltasten lesen seine Punkte.",
  drawn: "gezeichnet",
  by: "nach",
  bringOut: "hervorheben",
  over: ({ name }) => `über ${name}`,
  against: ({ name }) => `gegen ${name}`,
  distribution: "als Verteilung",
  patient: "Patient",
  nothing: "nichts",
  measures: "Messgrößen",
  all: ({ count }) => `alle ${t.number(count)}`,
  ofPatient: ({ name }) => `Patient ${name}`,
  values: ({ count }) => t.counted(count, { one: "Wert", other: "Werte" }),
  otherUnits: ({ count }) => `${t.number(count)} in anderer Einheit`,
  without: ({ count }) => `${t.number(count)} ohne`,
  measured: ({ label, counts, min, max, median, mean }) =>
    `${label}: ${counts}; ${min} bis ${max}, Median ${median}, Mittelwert ${mean}`,
  range: ({ from, to }) => `${from} bis ${to}`,
  joined: "Eine Linie verbindet die Messungen eines Patienten.",
  notJoined:
    "Messungen sind nicht verbunden, weil eine Zeile von mehreren Patienten sein kann: ohne DISTINCT und Aggregate hat jeder Patient eine Linie.",
  utc: "Zeiten sind in UTC.",
  rows: "Zeilen",
};
