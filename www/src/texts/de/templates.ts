// The texts of the templates view in German.
import type { Texts } from "../../texts";
import { formats } from "../formats";

const t = formats("de");

export const templates: Texts["templates"] = {
  one: "Template",
  find: "Suchen",
  findExample: "Systolisch, Diagnose, at0004 …",
  showAs: "Template anzeigen als",
  tree: "Baum",
  form: "Formular",
  nodes: "Knoten des Templates",
  about:
    "„Abfrage“ fragt einen Knoten in allen Dokumenten dieses Templates ab. Ein Pfad lässt sich auch in die Abfrage ziehen.",
  formTitle: "Formular des Templates",
  patient: "Patient",
  composer: "Verfasser",
  composerDefault: "Playground",
  territory: "Land",
  save: "Dokument speichern",
  flat: "Als FLAT anzeigen",
  none: "Keine Templates",
  noneAbout:
    "Fügen Sie in der Ansicht „Daten“ ein Operational Template (.opt) hinzu, oder erzeugen Sie dort Beispielpatienten.",
  notShown: "Dieses Template kann nicht angezeigt werden",
  notShownAbout: "Es ist nicht unter denen, die vom Server geholt wurden.",
  making: "Das Formular wird erstellt …",
  noForm: ({ reason }) => `Für dieses Template gibt es kein Formular: ${reason}`,
  notFound: "Kein Knoten heißt so.",
  query: "Abfrage",
  queryNode: ({ name }) => `Abfrage: ${name}`,
  saving: "Speichert",
  saved: ({ uid }) => `Gespeichert als ${uid}`,
  notSaved: "Nicht gespeichert",
  notSavedFields: ({ count }) =>
    t.plural(count, {
      one: "Nicht gespeichert: ein Feld hat ein Problem",
      other: `Nicht gespeichert: ${t.number(count)} Felder haben ein Problem`,
    }),
  decimal: ({ text }) =>
    `„${text}“ ist keine Zahl: nur Ziffern, mit einem Punkt oder einem Komma als Dezimalzeichen`,
  whole: ({ text }) => `„${text}“ ist keine ganze Zahl: nur Ziffern`,
  unreadable: ({ count }) =>
    t.plural(count, {
      one: "Ein Feld kann nicht gelesen werden",
      other: `${t.number(count)} Felder können nicht gelesen werden`,
    }),
  notChosen: "nicht ausgewählt",
  yes: "ja",
  no: "nein",
  another: ({ name }) => `Weiteres Element: ${name}`,
  required: "muss vorhanden sein",
  codes: ({ count }) => `${t.number(count)} Codes`,
};
