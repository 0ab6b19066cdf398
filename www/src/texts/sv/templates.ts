// The texts of the templates view in Swedish.
import type { Texts } from "../../texts";
import { formats } from "../formats";

const t = formats("sv");

export const templates: Texts["templates"] = {
  one: "Mall",
  find: "Sök",
  findExample: "Systoliskt, diagnos, at0004 …",
  showAs: "Visa mallen som",
  tree: "Träd",
  form: "Formulär",
  nodes: "Mallens noder",
  about:
    "”Fråga” frågar efter en nod i alla dokument av den här mallen. En sökväg kan också dras till frågan.",
  formTitle: "Mallens formulär",
  patient: "Patient",
  composer: "Författare",
  composerDefault: "Playground",
  territory: "Land",
  save: "Spara dokumentet",
  flat: "Visa som FLAT",
  none: "Inga mallar här",
  noneAbout:
    "Lägg till en operational template (.opt) i vyn Data, eller skapa exempelpatienter där.",
  notShown: "Den här mallen kan inte visas",
  notShownAbout: "Den finns inte bland dem som hämtades från servern.",
  making: "Formuläret skapas …",
  noForm: ({ reason }) => `Det finns inget formulär för den här mallen: ${reason}`,
  notFound: "Ingen nod heter så.",
  query: "Fråga",
  queryNode: ({ name }) => `Fråga efter ${name}`,
  saving: "Sparar",
  saved: ({ uid }) => `Sparat som ${uid}`,
  notSaved: "Inte sparat",
  notSavedFields: ({ count }) =>
    t.plural(count, {
      one: "Inte sparat: ett fält har ett problem",
      other: `Inte sparat: ${t.number(count)} fält har problem`,
    }),
  decimal: ({ text }) =>
    `”${text}” är inget tal: skriv siffror, med en punkt eller ett komma som decimaltecken`,
  whole: ({ text }) => `”${text}” är inget heltal: skriv bara siffror`,
  unreadable: ({ count }) =>
    t.plural(count, {
      one: "Ett fält kan inte läsas",
      other: `${t.number(count)} fält kan inte läsas`,
    }),
  notChosen: "inte valt",
  yes: "ja",
  no: "nej",
  another: ({ name }) => `En till: ${name}`,
  required: "måste finnas",
  codes: ({ count }) => `${t.number(count)} koder`,
};
