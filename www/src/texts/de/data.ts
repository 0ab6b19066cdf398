// The texts of the data view in German.
import type { Texts } from "../../texts";
import { formats } from "../formats";

const t = formats("de");

const files = (count: number) => t.counted(count, { one: "Datei", other: "Dateien" });

export const data: Texts["data"] = {
  repository: "Im Repository",
  repositoryAt: ({ place }) => `Im Repository ${place}`,
  patients: "Patienten",
  compositions: "Compositions",
  seed: "Startwert",
  ownWrites: "Eigene Änderungen",
  memory: "Arbeitsspeicher",
  megabytes: ({ megabytes }) => `${t.number(megabytes, 1)} MB`,
  readyIn: "Bereit nach",
  milliseconds: ({ milliseconds }) => `${t.number(milliseconds)} ms`,
  templates: "Templates",
  noTemplates: "Noch keine: legen Sie unten ein Operational Template (.opt) ab.",
  notKnown: "nicht bekannt",
  templatesNotKnown: "Nicht bekannt: die Quelle antwortet nicht.",
  samples: "Beispielpatienten",
  samplesAbout:
    "Aus einem Startwert erfunden: dieselben drei Zahlen ergeben immer dieselben Patienten, mit fehlenden Werten, wiederholten Ereignissen und eigenwilligen Schreibweisen wie in echten Akten. Einige sind für Abfragen gesperrt und werden nicht mitgezählt.",
  make: "Patienten erzeugen",
  making: "Erzeugt Patienten",
  sampled: ({ compositions, ehrs, seed }) =>
    `${t.number(compositions)} Compositions von ${t.counted(ehrs, { one: "Patient", other: "Patienten" })}, Startwert ${seed}`,
  fateBeside: ({ name, count }) =>
    `„${name}“ enthält ${t.counted(count, { one: "eigene Änderung", other: "eigene Änderungen" })}, deshalb erhalten neue Patienten einen Datensatz daneben.`,
  fateReplace: ({ samples }) =>
    `Neue Patienten ersetzen die vorhandenen (${samples}), die sich erneut erzeugen lassen.`,
  fateAdd: ({ name }) => `Neue Patienten kommen in „${name}“, das leer ist.`,
  startOver: "Neu beginnen…",
  startOverTitle: "Neu beginnen?",
  startOverAbout: ({ name, own }) =>
    `Die Patienten von „${name}“ werden durch die 36 Beispielpatienten des ersten Besuchs ersetzt. ${own} Sie können das zehn Minuten lang rückgängig machen.`,
  thisSet: "diesem Datensatz",
  ownNone: "Sie haben darin nichts Eigenes gespeichert.",
  ownLost: ({ count }) =>
    t.plural(count, {
      one: `${t.number(count)} eigene Änderung darin (Dateien, Formulare, Anfragen) geht mit ihnen verloren.`,
      other: `${t.number(count)} eigene Änderungen darin (Dateien, Formulare, Anfragen) gehen mit ihnen verloren.`,
    }),
  startOverYes: "Neu beginnen",
  startOverNo: "Alles behalten",
  startedOver: "Mit Beispielpatienten neu begonnen.",
  bringingBack: "Holt zurück",
  broughtBack: "Die früheren Daten sind zurück.",
  restorable: ({ time }) => `Die früheren Daten lassen sich bis ${time} zurückholen.`,
  madeBeside: ({ name }) =>
    `Die neuen Patienten liegen in einem eigenen Datensatz. „${name}“ bleibt, wie es war.`,
  madeReplaced: ({ samples }) => `Ersetzt: ${samples}.`,
  cancelled: "Abgebrochen: alles ist wie zuvor.",
  notDone: ({ reason }) => `Nicht ausgeführt: ${reason}`,
  takingBack: "Nimmt zurück",
  files: "Eigene Dateien",
  filesAbout:
    "Templates (OPT 1.4), Compositions (kanonisches JSON oder XML, FLAT, STRUCTURED), Leitlinien (GDL2) und Exporte (.ndjson), auch in Ordnern und .zip-Archiven.",
  target: "Compositions gehören zu",
  targetAsk: "Fragen, wenn Compositions hinzukommen",
  targetNone: "Bitte wählen…",
  targetTitle: "Zu welchem Patienten gehören die Compositions?",
  targetFolders: ({ count, names }) =>
    `Die Dateien liegen in ${t.counted(count, { one: "Ordner oder Archiv", other: "Ordnern oder Archiven" })}: ${names}`,
  targetAdd: "Hinzufügen",
  targetNew: "Ein neuer Patient",
  targetFolder: "Ein Patient je Ordner",
  targetFile: "Ein Patient je Dateiname, bis _ oder .",
  targetSubject: "Der Patient, den das Dokument nennt",
  chooseFiles: "Dateien wählen…",
  chooseFolder: "Ordner wählen…",
  drop: "Dateien oder Ordner hier ablegen",
  dropTo: ({ host }) => `Dateien oder Ordner hier ablegen, um sie an ${host} zu senden`,
  staysHere: "Sie bleiben in diesem Browser und sind nach einem Neuladen wieder da.",
  notKept:
    "Sie sind im Speicher dieses Tabs und gehen verloren, wenn er geschlossen oder neu geladen wird.",
  sentTo: ({ place }) =>
    `Sie werden an den Server \`${place}\` gesendet, der sie speichert. Andere können sie dort lesen.`,
  adding: "Fügt Dateien hinzu",
  notAdded: ({ reason }) => `Nicht hinzugefügt: ${reason}`,
  added: ({ count, of }) => `${t.number(count)} von ${t.number(of)} Dateien hinzugefügt`,
  addedCancelled: ({ count, of }) =>
    `${t.number(count)} von ${t.number(of)} Dateien hinzugefügt, dann abgebrochen`,
  addedTo: ({ list, more }) =>
    more > 0
      ? `Compositions sind bei: ${list} und ${t.counted(more, { one: "weiteren Patienten", other: "weiteren Patienten" })}.`
      : `Compositions sind bei: ${list}.`,
  tookBack: ({ count }) =>
    `Das Hinzufügen von ${t.counted(count, { one: "Datei", other: "Dateien" })} wurde rückgängig gemacht.`,
  addedFile: ({ name }) => `${name}: hinzugefügt`,
  addedWarned: ({ count, of, warnings }) =>
    `${t.number(count)} von ${t.number(of)} Compositions hinzugefügt, mit ${t.counted(warnings, { one: "Warnung", other: "Warnungen" })}`,
  rest: "REST ohne Server",
  restAbout: ({ path, header }) =>
    `Die Daten dieses Browsers haben eine eigene Basisadresse, \`${path}\`: jede Seite dieses Ursprungs kann sie nutzen, auch ohne Netz. Dort antwortet der Service Worker und sagt das im Header \`${header}\`. Unter jeder anderen Adresse antwortet nur ein Server.`,
};

export const refused: Texts["refused"] = {
  title: ({ count }) => `${files(count)} abgelehnt`,
  about: "davon ist nichts gespeichert.",
  partly: ({ count }) =>
    t.plural(count, {
      one: `${t.number(count)} Zeile ist gespeichert, andere Zeilen sind abgelehnt.`,
      other: `${t.number(count)} Zeilen sind gespeichert, andere Zeilen sind abgelehnt.`,
    }),
  others: ({ first, count }) =>
    `${first}, und ${t.counted(count, { one: "ähnliche Meldung", other: "ähnliche Meldungen" })}`,
  times: ({ count, of }) => `${t.number(count)}-mal in ${files(of)}`,
  report: "Bericht speichern",
  load: ({ count }) =>
    `${t.counted(count, { one: "Composition", other: "Compositions" })} mit Warnungen laden`,
  renew: ({ count }) =>
    `${t.counted(count, { one: "Composition", other: "Compositions" })} mit neuer uid speichern`,
  moreRules: ({ count }) =>
    `und ${t.counted(count, { one: "weitere Regel", other: "weitere Regeln" })}: siehe den Bericht`,
  file: "Datei",
  rule: "Regel",
  path: "Pfad",
  problem: "Problem",
};

export const sets: Texts["sets"] = {
  title: "Datensätze",
  about:
    "Jeder ist ein eigenes Repository, das in diesem Browser liegt. Ein Export ist eine Datei mit allen Versionen und Audits; unten abgelegt oder in einen Server importiert, ergibt er wieder dasselbe.",
  example: "Station 7",
  name: "Name eines neuen Datensatzes",
  nameOf: ({ name }) => `Name von ${name}`,
  new: "Neu",
  export: "Alles exportieren",
  exporting: "Exportiert",
  opening: "Öffnet",
  renaming: "Benennt um",
  removing: "Entfernt",
  restoring: "Stellt wieder her",
  isOpen: "geöffnet",
  open: "Öffnen",
  openSet: ({ name }) => `${name} öffnen`,
  remove: "Entfernen",
  removeSet: ({ name }) => `${name} entfernen`,
  removeTitle: ({ name }) => `„${name}“ entfernen?`,
  removeAbout: ({ size, date }) =>
    `Die Patienten und alles, was dazu geschrieben wurde, ${size} seit dem ${date}, werden aus diesem Browser entfernt. Sie können das zehn Minuten lang rückgängig machen; exportieren Sie den Datensatz, um ihn zu behalten.`,
  keep: "Behalten",
  removed: ({ name }) => `„${name}“ ist entfernt.`,
  kilobytes: ({ kilobytes }) => `${t.number(kilobytes)} kB`,
  megabytes: ({ megabytes }) => `${t.number(megabytes)} MB`,
};
