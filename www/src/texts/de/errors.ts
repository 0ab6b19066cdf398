// The errors of the page and its workers in German.
import type { Texts } from "../../texts";
import { formats } from "../formats";

const t = formats("de");

export const errors: Texts["errors"] = {
  engineDown: () =>
    "Die Engine startet hier nicht; laden Sie die Seite neu, um es noch einmal zu versuchen",
  workerFailed: () => "der Worker ist ausgefallen",
  stopped: () => "angehalten",
  cancelled: () => "abgebrochen",
  otherData: () =>
    "die Daten sind nicht mehr die dieses Ergebnisses: führen Sie die Abfrage erneut aus",
  serverChosen: () =>
    "ein Server ist ausgewählt: wählen Sie „Dieser Browser“, um mit den Daten hier zu arbeiten",
  sourceChanged: () => "inzwischen wurde eine andere Quelle oder ein anderer Datensatz gewählt",
  sourceChangedToBrowser: () =>
    "die Quelle hat sich inzwischen geändert. Fügen Sie die Dateien erneut hinzu, um sie in diesem Browser abzulegen.",
  sourceChangedToServer: ({ place }) =>
    `die Quelle hat sich inzwischen geändert. Fügen Sie die Dateien erneut hinzu, um sie auf ${place} abzulegen.`,
  noTemplateOfRoot: ({ root }) =>
    `kein Template hat die Wurzel \`${root}\` dieses Dokuments in FLAT oder STRUCTURED`,
  templatesOfRoot: ({ templates, root }) =>
    `die Templates ${templates} haben die Wurzel \`${root}\`: schreiben Sie die Id eines davon in den Dateinamen`,
  guideLost: ({ id }) => `${id} wurde entfernt, und keiner der beiden Texte ließ sich speichern`,
  noAnswer: ({ base }) =>
    `keine Antwort von ${base}: läuft der Server, und erlaubt er Anfragen von dieser Seite (CORS)?`,
  ownData: ({ base }) =>
    `${base} sind die Daten dieses Browsers: wählen Sie „Dieser Browser“, um sie abzufragen`,
  webPage: ({ base }) =>
    `${base} hat mit einer Webseite statt mit Daten geantwortet: ist zuerst eine Anmeldung nötig?`,
  samplesMissing: ({ status }) =>
    `die Definitionen der Beispielpatienten konnten nicht geladen werden: Status ${status}`,
  otherSetOpen: () =>
    "jetzt ist ein anderer Datensatz geöffnet: öffnen Sie zuerst den, in dem diese Änderungen liegen",
  moreWritten: () =>
    "inzwischen wurde mehr geschrieben, das ebenfalls verloren ginge: nichts wurde zurückgenommen",
  noFolder: () => "die Datei liegt in keinem Ordner, der den Patienten benennen könnte",
  noFileName: () => "der Dateiname beginnt mit keinem Wort, das den Patienten benennen könnte",
  noSubject: () => "das Dokument nennt keine betroffene Person",
  unknownFile: () =>
    "erwartet wird ein Template (.opt), eine Composition (kanonisches JSON oder XML, FLAT oder STRUCTURED), eine Leitlinie (.gdl, .gdl2.json) oder ein Export (.ndjson)",
  notJson: ({ line, column, found }) =>
    `Zeile ${line}, Spalte ${column}: das ist kein JSON: gefunden wurde \`${found}\``,
  jsonEnds: ({ line, column }) =>
    `Zeile ${line}, Spalte ${column}: das ist kein JSON: der Text endet hier`,
  noPatient: () => "für sie wurde kein Patient gewählt",
  notDecoded: ({ encoding }) =>
    `diese Datei lässt sich nicht als ${encoding} lesen: speichern Sie sie als UTF-8, und fügen Sie sie erneut hinzu`,
  archiveDamaged: ({ reason }) => `dieses Archiv lässt sich nicht lesen: ${reason}`,
  archiveTooLarge: ({ megabytes }) =>
    `das Archiv enthält mehr als ${t.number(megabytes)} MB: entpacken Sie es, und fügen Sie die Dateien in Teilen hinzu`,
  refused: () => "abgelehnt",
  refusedLine: ({ line, reason }) => `Zeile ${line}: ${reason}`,
  refusedLines: ({ lines, count }) => `${lines}\nund ${t.number(count)} weitere Zeilen`,
  setInUse: () => "der Datensatz ist in Gebrauch: öffnen Sie zuerst einen anderen",
  setOpened: () => "inzwischen wurde ein anderer Datensatz geöffnet: nichts wurde geändert",
  otherRelease: () =>
    "die Daten dieses Browsers stammen von einer anderen Version von aqlite: laden Sie die Seite neu, um diese zu verwenden",
  setGone: () => "den Datensatz gibt es nicht mehr",
  setUnnamed: () => "ein Datensatz braucht einen Namen",
  setNameTaken: ({ name }) =>
    `einen Datensatz \`${name}\` gibt es schon: wählen Sie einen anderen Namen`,
  notStored: ({ reason }) =>
    `das konnte nicht gespeichert werden und wurde deshalb nicht ausgeführt: ${reason}`,
  fileGone: ({ name }) => `die Datei ${name} gibt es nicht mehr`,
  fileDamaged: ({ file, reason }) =>
    `die Datei ${file} dieses Datensatzes ist beschädigt (${reason}), und keine andere Datei hat ihren Inhalt: öffnen Sie einen anderen Datensatz und importieren Sie einen Export von diesem`,
  changedMeanwhile: () => "die Daten wurden geändert, während ein Sicherungspunkt entstand",
  undoExpired: () =>
    "diese Änderungen lassen sich nicht mehr zurücknehmen: sie sind älter als zehn Minuten, oder danach wurden Daten gelöscht",
  storageFull: () => "es kann nichts mehr gespeichert werden: der Speicher ist voll",
  onlyReads: () =>
    "in einem Service Worker kann dieser Browser nur lesen: auf einer Seite dieser Adresse kann geschrieben werden",
  unauthorized: () => "der Server will wissen, wer fragt: geben Sie ihm ein Token",
  forbidden: () => "der Server erlaubt das mit diesem Token nicht",
  status: ({ status }) => `Antwort mit Status ${status}`,
};
