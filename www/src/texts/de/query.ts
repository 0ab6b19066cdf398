// The texts of the query view in German.
import type { Texts } from "../../texts";
import { formats } from "../formats";

const t = formats("de");

export const query: Texts["query"] = {
  examples: "Beispiele",
  exampleTexts: {
    "High blood pressure": {
      title: "Hoher Blutdruck",
      about: "Filtern und ordnen: eine Bedingung in WHERE, der höchste zuerst.",
    },
    "The latest documents": {
      title: "Die neuesten Dokumente",
      about: "Nach einem Datum ordnen und mit LIMIT die ersten behalten.",
    },
    "Numbers over everybody": {
      title: "Zahlen über alle",
      about: "Aggregate: Anzahl, Mittelwert und Extremwerte über alle Patienten.",
    },
    "What is in the repository": {
      title: "Was im Repository liegt",
      about: "DISTINCT entfernt gleiche Zeilen: welche Arten von Dokumenten es gibt.",
    },
    "Two signs at one visit": {
      title: "Zwei Vitalzeichen bei einem Besuch",
      about: "CONTAINS: beide Beobachtungen müssen in derselben Composition stehen.",
    },
    "Whole objects": {
      title: "Ganze Objekte",
      about: "Ein Pfad darf überall enden: ein Klick auf eine Zelle öffnet ihren Inhalt.",
    },
    "Laboratory results": {
      title: "Laborbefunde",
      about: "Codes mit MATCHES: Kalium und Natrium, wo immer ihr Cluster steht.",
    },
    "Problems by name": {
      title: "Probleme nach Namen",
      about: "Text mit LIKE: * steht für beliebige Zeichen, ? für eines.",
    },
    "A query with a parameter": {
      title: "Eine Abfrage mit Parameter",
      about: "$warmer wird unter der Abfrage ausgefüllt: derselbe Text, andere Werte.",
    },
    "What is missing, and why": {
      title: "Was fehlt, und warum",
      about: "Ein Element ohne Wert nennt den Grund in seinem Null-Flavour.",
    },
    "Who committed what": {
      title: "Wer was eingetragen hat",
      about: "Versionen tragen den Audit: wann geschrieben wurde, von wem, als was.",
    },
  },
  queries: "Abfragen",
  new: "Neue Abfrage",
  rename: "Benennen",
  editor: "Editor",
  text: "AQL-Abfrage",
  value: "Wert",
  keepValues: "Links und gespeicherte Abfragen behalten diese Werte",
  run: "Ausführen",
  stop: "Anhalten",
  format: "Formatieren",
  copyLink: "Link kopieren",
  build: "Baukasten",
  numbered: ({ number }) => `Abfrage ${number}`,
  closed: ({ name }) => `„${name}“ ist geschlossen.`,
  saveTitle: "Diese Abfrage speichern",
  renameTitle: "Diese Abfrage umbenennen",
  name: "Name",
  taken:
    "Eine Abfrage mit diesem Namen ist schon gespeichert. Diese ersetzt sie; Sie können das rückgängig machen.",
  saved: "Gespeichert",
  savedNone: "Speichern Sie eine Abfrage unter einem Namen, um sie hier zu finden.",
  recent: "Zuletzt",
  recentNone: "Was Sie ausführen, wird hier aufgelistet, nur in diesem Browser.",
  forget: ({ name }) => `${name} vergessen`,
  forgetThis: "Diese Abfrage vergessen",
  forgotten: ({ name }) => `„${name}“ ist vergessen.`,
  replaced: ({ name }) => `„${name}“ ist ersetzt.`,
  forgottenOne: "Eine Abfrage ist vergessen.",
  notRun: "Noch nicht ausgeführt",
  notRunAbout: "Führen Sie die Abfrage aus, um ihre Zeilen zu sehen.",
  noResult: "Kein Ergebnis",
  noResultAbout:
    "Die Daten sind nicht lesbar, das frühere Ergebnis könnte also von anderen Daten stammen.",
  otherData: "Andere Daten",
  otherDataAbout:
    "Das Ergebnis stammte von anderen Daten als den jetzt geöffneten. Führen Sie die Abfrage aus, um diese zu befragen.",
  nothingToRun: "Nichts auszuführen",
  nothingToRunAbout: "Schreiben Sie eine Abfrage, oder wählen Sie ein Beispiel.",
  cut: "weitere Zeilen folgen; fragen Sie sie mit LIMIT und OFFSET ab",
  stopped: "Angehalten",
  stoppedAbout: "Die Abfrage wurde beendet, bevor sie eine Antwort hatte.",
  failed: "Die Abfrage wurde nicht ausgeführt",
  hasProblem: "Die Abfrage hat ein Problem",
};

export const builder: Texts["builder"] = {
  close: "Baukasten schließen",
  clear: "Leeren",
  find: "Knoten suchen",
  findExample: "Systolisch, Diagnose …",
  nodes: "Knoten",
  cleared: "Die Abfrage ist leer. Ein Häkchen beginnt eine neue.",
  back: "Die frühere Abfrage ist zurück.",
  noTemplates: "Hier gibt es keine Templates.",
  notFound: "Kein Knoten gefunden.",
  repeated: "Die Änderung ist wiederholt.",
  undone: "Die Änderung ist rückgängig gemacht.",
  needed: ({ label }) =>
    `Die Abfrage braucht „${label}“ an einer anderen Stelle, deshalb wurde es nicht entfernt.`,
  empty: "Die Abfrage ist leer.",
  added: "Eine Spalte ist hinzugefügt.",
  removed: "Eine Spalte ist entfernt.",
  replaceTitle: "Abfrage ersetzen?",
  replaceAbout: ({ label }) =>
    `„${label}“ lässt sich dieser Abfrage nicht hinzufügen, ohne ihre Bedeutung zu ändern. Eine neue Abfrage mit dieser Spalte kann sie ersetzen. Sie können das rückgängig machen.`,
  replaceYes: "Ersetzen",
  replaceNo: "Abfrage behalten",
  replaced: "Die Abfrage ist ersetzt.",
  startTime: "Startzeit",
  composer: "Verfasser",
  time: "Zeit",
  codes: ({ count }) => t.counted(count, { one: "Code", other: "Codes" }),
};

export const explanation: Texts["explanation"] = {
  title: "Die Abfrage erklärt",
  notReached: "Nicht erreicht: die Abfrage hat davor ein Problem.",
  passedOver: "übergangen: der Knoten passt nicht",
  eachWorkedOut: "für jedes einzeln ermittelt",
  variable: "Variable",
  node: "Knoten",
  layouts: "Layouts",
  fragments: "Fragmente",
  rowIsMadeOf: "Eine Zeile besteht aus",
  rowTemplates: "Zeilenmuster",
  notRun: "Sie wurde nicht ausgeführt: siehe die Probleme.",
  documents: "Dokumente",
  scanned: "Durchsucht",
  batches: "Batches",
  segments: "Segmente",
  blobs: "Blobs",
  storedRows: "Gespeicherte Zeilen",
  read: "Gelesen",
  rows: "Zeilen",
  run: "Ausführung",
  runAbout: ({ milliseconds }) =>
    `was sie berührt hat; mit der Erklärung ${t.number(milliseconds, 1)} ms`,
  plan: "Plan",
  planAbout: "was von den Daten verlangt wird, und wie daraus Zeilen werden",
  queryAbout: "Namen aufgelöst, Parameter und Value Sets eingesetzt",
  syntax: "Syntax",
  syntaxAbout: "der Baum, wie er geschrieben wurde",
  tokens: "Tokens",
  tokensAbout: ({ count }) => `${t.number(count)} Wörter und Zeichen`,
};
