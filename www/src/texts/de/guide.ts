// The texts of the guide view in German.
import type { Texts } from "../../texts";
import { formats } from "../formats";

const t = formats("de");

const cases = (count: number) => t.counted(count, { one: "Fall", other: "Fällen" });

export const guide: Texts["guide"] = {
  one: "Leitlinie",
  the: "Die Leitlinie",
  whatToSee: "Was von der Leitlinie zu sehen ist",
  panes: {
    patient: "Patient",
    form: "Formular",
    edit: "Editor",
    about: "Info",
    tests: "Tests",
  },
  run: "Leitlinie ausführen",
  new: "Neue Leitlinie",
  form: "Formular der Leitlinie",
  open: "Leitlinien oder Testfälle öffnen…",
  orDrop: "oder hier ablegen: .gdl, .gdl2.json, .yml, .zip",
  draft: "Entwurf",
  openedHere: "hier geöffnet",
  nothingToRun: "Nichts auszuführen",
  nothingToRunAbout:
    "Es gibt keine Leitlinien oder keine Patienten. Erzeugen Sie Beispielpatienten in der Ansicht „Daten“, oder öffnen Sie hier eine Leitlinie.",
  ready: "Bereit",
  readyAbout:
    "Wählen Sie einen Patienten, und führen Sie die Leitlinie aus: ihre Regeln lesen die Akte mit AQL, und was sie folgern, erscheint hier.",
  none: "Keine Leitlinie",
  noneAbout:
    "Im Repository ist keine. Öffnen oder schreiben Sie hier eine, oder erzeugen Sie Beispielpatienten in der Ansicht „Daten“.",
  store: "Im Repository speichern",
  noInputs: "Keine Eingaben",
  noInputsAbout: "Diese Leitlinie liest nichts: ihre Regeln werden ohne Daten ausgelöst.",
  fill: "Vom Patienten übernehmen",
  runForm: "Mit dem Formular ausführen",
  noForm: "Kein Formular",
  noFormAbout: "Der Text ist noch keine Leitlinie. Seine Probleme stehen unter „Editor“.",
  notKept: "Der Entwurf übersteht kein Neuladen: dieser Browser hat keinen Platz dafür.",
  caseFilled: "Die Werte eines Falls sind eingetragen.",
  patientEmpty: ({ patient }) => `${patient} hat keine Werte für diese Leitlinie.`,
  patientFilled: ({ patient }) => `Die Werte von ${patient} sind eingetragen.`,
  notChoices: ({ names }) => `Nicht unter den Auswahlmöglichkeiten: ${names}.`,
  notOpened: ({ reason }) => `Nicht geöffnet: ${reason}`,
  editHere: "Hier bearbeiten",
  thisForm: "dieses Formular",
  failed: "Die Leitlinie wurde nicht ausgeführt",
  notDone: ({ reason }) => `Nicht ausgeführt: ${reason}`,
  noId: "Nicht gespeichert: der Text hat keine Id.",
  replaceTitle: ({ id }) => `${id} ersetzen?`,
  replaceAbout: ({ destination }) =>
    `Ihr gespeicherter Text wird durch diesen ersetzt, und spätere Ausführungen verwenden diesen. ${destination} Sie können das rückgängig machen.`,
  replaceYes: "Ersetzen",
  replaceNo: "Gespeicherten Text behalten",
  storing: "Speichert",
  takingBack: "Nimmt zurück",
  stored: ({ id }) => `${id} ist gespeichert.`,
  replaced: ({ id }) => `${id} ist ersetzt.`,
  unstored: ({ id }) => `${id} ist nicht mehr gespeichert. Der Text ist ein Entwurf.`,
  formerStored: ({ id }) =>
    `Der frühere Text von ${id} ist wieder gespeichert. Der neuere ist ein Entwurf.`,
  removeTitle: ({ id }) => `${id} entfernen?`,
  removeAbout: "Sie wird nicht mehr ausgeführt. Sie können das rückgängig machen.",
  removeAboutDraft:
    "Sie wird nicht mehr ausgeführt. Ihr Entwurf davon bleibt erhalten. Sie können das rückgängig machen.",
  removeYes: "Entfernen",
  removeNo: "Behalten",
  removing: "Entfernt",
  storedAgain: ({ id }) => `${id} ist wieder gespeichert.`,
  removed: ({ id }) => `${id} ist entfernt.`,
  draftBack: ({ id }) => `Der Entwurf von ${id} ist zurück.`,
  draftDiscarded: ({ id }) => `Der Entwurf von ${id} ist verworfen.`,
  draftFollowed: ({ id }) =>
    `Ein anderer Tab hat den Entwurf von ${id} geändert. Dieser Tab zeigt den neuen Text.`,
  draftRestored: ({ id }) => `Der Text, den dieser Tab für ${id} hatte, ist zurück.`,
};

export const guideForm: Texts["guideForm"] = {
  unit: "Einheit",
  kind: "Art",
  denominator: "Nenner",
  part: "Teil",
  kinds: ["Verhältnis", "Einheitsanteil", "Prozent", "Bruch", "gemischter Bruch"],
  time: "Zeitpunkt der Auswertung",
  timeEmpty: "Leer: jetzt",
  atLeast: ({ min }) => `mindestens ${min}`,
  atMost: ({ max }) => `höchstens ${max}`,
  range: ({ min, max }) => `${min} bis ${max}`,
  outside: ({ ranges }) => `außerhalb des Bereichs: ${ranges}`,
};

export const guideAbout: Texts["guideAbout"] = {
  purpose: "Zweck",
  use: "Verwendung",
  misuse: "Fehlgebrauch",
  saveJson: "Als GDL2 (JSON) speichern",
  saveOdin: "Als ODIN speichern",
  noProblems: "Keine Probleme gefunden",
  problems: ({ count }) => `Probleme (${t.number(count)})`,
  bindings: "Bindungen",
  rules: ({ count }) => `Regeln (${t.number(count)}), nach Priorität`,
  beforeAll: "Vor allem",
  first: "Zuerst",
  terms: ({ count }) => `Begriffe (${t.number(count)})`,
  makes: "erzeugt",
  reads: "liest",
  both: "beides",
  onlyWhere: "Nur wenn",
  cards: ({ count }) => t.counted(count, { one: "Karte", other: "Karten" }),
  when: "Wenn",
  then: "Dann",
};

export const guideEdit: Texts["guideEdit"] = {
  title: "Der Text der Leitlinie",
  text: "Text der Leitlinie",
  placeholder: "Eine Leitlinie in GDL2 (JSON) oder GDL1 (ODIN)",
  fine: "Keine Probleme gefunden.",
  bindings: "Bindungen",
  rules: "Regeln",
  terms: "Begriffe",
  saveVersion: "Als neue Version speichern",
  replace: "Ersetzen…",
  remove: "Entfernen…",
  discard: "Entwurf verwerfen",
  download: "Herunterladen",
  outline: "Gliederung",
  none: "keine",
  errors: ({ count }) => t.counted(count, { one: "Fehler", other: "Fehler" }),
  warnings: ({ count }) => t.counted(count, { one: "Warnung", other: "Warnungen" }),
};

export const guideOutcome: Texts["guideOutcome"] = {
  says: ({ whom }) => `Was sie über ${whom} aussagt`,
  saysNothing: ({ whom }) => `Keine Aussage über ${whom}`,
  fired: ({ count, milliseconds }) =>
    `${t.counted(count, { one: "Regel", other: "Regeln" })} ausgelöst · ${t.number(milliseconds, 1)} ms`,
  missing: "Nicht angegeben:",
  noResult: "Keine Regel hat ein Ergebnis gesetzt.",
  notComputed: "Was nicht berechnet werden konnte",
  before: "Vor den Regeln muss all das wahr sein",
  setBefore: "Vor den Regeln gesetzt",
  rules: "Regeln, in der Reihenfolge ihrer Auswertung",
  read: "Was sie gelesen hat",
  asked: "Was sie die Akte gefragt hat",
  openQuery: "Als Abfrage öffnen",
  query: "Abfrage",
  inPlace: ({ place }) => `in ${place}:`,
  ruleFired: "ausgelöst",
  ruleNotFired: "nicht ausgelöst",
  noConditions: "Sie hat keine Bedingungen.",
  set: ({ values }) => `Sie hat gesetzt: ${values}`,
  true: "wahr",
  false: "falsch",
  unknown: "unbekannt",
  nothingFound: "nichts gefunden",
  found: ({ count }) => `${t.number(count)} gefunden`,
  passing: ({ count, of }) => `${t.number(count)} von ${t.number(of)} erfüllen die Prädikate`,
  indicators: { info: "Info", warning: "Warnung", critical: "kritisch" },
};

export const fixtures: Texts["fixtures"] = {
  running: "Die Testfälle werden ausgeführt …",
  none: "Noch keine Testfälle",
  noneAbout:
    "Öffnen Sie Testfalldateien (.yml), oder legen Sie sie hier ab, auch mehrere mit ihren Leitlinien. Jede wird mit der Leitlinie ausgeführt, die sie nennt, und Abweichungen von der erwarteten Ausgabe werden angezeigt.",
  noGuide: ({ id }) =>
    `Hier ist keine Leitlinie ${id}. Öffnen Sie sie, allein oder mit ihren Testfällen.`,
  noGuideId:
    "Die Datei nennt keine Leitlinie. Öffnen Sie die Leitlinie, allein oder mit ihren Testfällen.",
  runOn: ({ id }) => `Mit ${id} ausführen`,
  failing: ({ count, of }) =>
    `${t.number(count)} von ${cases(of)} ${t.plural(count, { one: "schlägt fehl", other: "schlagen fehl" })}`,
  filesNotRun: ({ count }) =>
    `${t.counted(count, { one: "Datei", other: "Dateien" })} nicht ausgeführt`,
  allPass: "Alle Fälle bestanden",
  passing: ({ count, of }) => `${t.number(count)} von ${cases(of)} bestanden`,
  close: "Testfälle schließen",
  someFail: ({ count, of }) =>
    `${t.number(count)} von ${t.number(of)} ${t.plural(count, { one: "schlägt fehl", other: "schlagen fehl" })}`,
  pass: ({ count }) => `${t.number(count)} bestanden`,
  show: "Zeige die Fälle von",
  allGuides: ({ count }) => `Alle ${t.number(count)} Leitlinien`,
  more: ({ count }) => `Mehr von ${cases(count)} anzeigen`,
  result: "Ergebnis",
  case: "Fall",
  differences: "Abweichungen",
  form: "Formular",
  passed: "bestanden",
  failed: "fehlgeschlagen",
  at: ({ file, line }) => `${file}, Zeile ${t.number(line)}`,
  use: "Als Formular",
  useCase: ({ id }) => `Als Formular verwenden: ${id}`,
  notRun: ({ file }) => `${file}: nicht ausgeführt`,
  nothing: "nichts",
  input: "Eingabe",
  expected: "Erwartet",
  fired: "Ausgelöste Regeln",
  notKept: "Die Testfälle überstehen kein Neuladen: dieser Browser hat keinen Platz dafür.",
};
