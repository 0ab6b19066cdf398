// The texts of the result in Swedish.
import type { Texts } from "../../texts";
import { formats } from "../formats";

const t = formats("sv");

export const results: Texts["results"] = {
  title: "Resultat",
  running: "Kör",
  showAs: "Visa resultatet som",
  table: "Tabell",
  chart: "Diagram",
  explain: "Förklara",
  save: "Spara resultatet",
  saveCsv: "Spara som CSV",
  saveNdjson: "Spara som NDJSON, ett objekt per rad",
  saveJson: "Spara som JSON",
  saveParquet: "Spara som Parquet, med typade kolumner",
  saveArrow: "Spara som Arrow-ström, med typade kolumner",
  saveDocuments: "Spara kompositionerna bakom raderna",
  documents: "Dokument…",
  copyProgram: "Kopiera frågan som ett program",
  copyAs: "Kopiera som…",
  pages: "Resultatets sidor",
  earlier: ({ q }) =>
    `Från en tidigare fråga: texten eller ett värde har ändrats sedan dess. Tabell, diagram och sparade filer hör till: ${q}`,
  earlierExplained: ({ q }) =>
    `Från en tidigare fråga: texten eller ett värde har ändrats sedan dess. Detta förklarar: ${q}`,
  thisPage: "Sortering och filter gäller bara den här sidan.",
  unfiltered: "Tabellens filter gäller inte här: diagrammet visar alla rader.",
  paged: "Resultatet visas och sparas sida för sida.",
  pageBefore: "Föregående sida",
  pageNext: "Nästa sida",
  window: ({ from, to }) => `rad ${t.number(from)} till ${t.number(to)}`,
  rows: ({ count }) => t.counted(count, { one: "rad", other: "rader" }),
  columns: ({ count }) => t.counted(count, { one: "kolumn", other: "kolumner" }),
  milliseconds: ({ milliseconds }) => `${t.number(milliseconds, 1)} ms`,
  seconds: ({ seconds }) => `${t.number(seconds, 1)} s`,
  times: ({ engine, total }) =>
    `${t.number(engine, 2)} ms i motorn, ${t.number(total, 1)} ms tills raderna var här`,
  noDocuments:
    "raderna hör inte till egna dokument: de är räknade, olika (DISTINCT) eller värden i själva journalen (EHR)",
  noTable: ({ reason }) => `ingen tabell skrevs: ${reason}`,
  notExplained: "Den här frågan kan inte förklaras här",
  noRows: "Inga rader",
  noRowsAbout:
    "Frågan är riktig, men inget i data stämmer. Lätta på ett villkor i WHERE, eller ett CONTAINS.",
  bom: "CSV med BOM",
  bomAbout: "Börja sparad CSV med en byteordningsmarkör, så att Excel läser alla bokstäver",
  json: "Resultatet som JSON",
  moreRows: ({ count }) => `… ${t.number(count)} rader till: spara som JSON för att se alla`,
  nothingToDraw: "Inget att rita",
  nothingToDrawAbout:
    "Ett diagram behöver en kolumn med tal eller mätvärden; med en datumkolumn bredvid ritas de över tid.",
  cell: ({ name, row }) => `${name}, rad ${t.number(row)}`,
  object: "Objekt",
  closeObject: "Stäng objektet",
  showCell: "Visa cellen",
  itself: "Sig själv",
  inDocument: "I sitt dokument",
  copy: "Kopiera",
  objectContent: "Objektets innehåll",
  noDocument:
    "Den här cellen hör inte till ett enda dokument: den är räknad, beräknad eller ett värde i själva journalen (EHR).",
  filter: "Filtrera",
  filters: "Filter",
  filterColumn: ({ name }) => `Filtrera ${name}`,
  filterExample: "text, >5, =x",
  gridTitle: "Resultatets rader",
  clickToSort: "Klicka för att sortera",
  matching: ({ count, of }) =>
    `${t.number(count)} av ${t.number(of)} rader stämmer; sparade filer har alla`,
  partLeavesNone: "Den markerade delen lämnar ingen rad kvar.",
  partsNotCounted: "Alla delar räknades inte.",
  part: "Del av frågan",
  rowsLeft: "Rader kvar",
  rowsWithout: "Rader utan den",
  interval: ({ lower, upper }) => `${lower} till ${upper}`,
  list: "lista",
  programOfBrowser: "Resultatet på sidan kommer från den här webbläsarens data.",
  programOfServer: ({ base }) => `Detta frågar servern ${base}, som svarar utifrån sina egna data.`,
};

export const chart: Texts["chart"] = {
  title: "Diagram. Piltangenterna läser dess punkter.",
  drawn: "ritat",
  by: "per",
  bringOut: "framhäv",
  over: ({ name }) => `över ${name}`,
  against: ({ name }) => `mot ${name}`,
  distribution: "som fördelning",
  patient: "patient",
  nothing: "inget",
  measures: "Mätvärden",
  all: ({ count }) => `alla ${t.number(count)}`,
  ofPatient: ({ name }) => `patient ${name}`,
  values: ({ count }) => t.counted(count, { one: "värde", other: "värden" }),
  without: ({ count }) => `${t.number(count)} utan`,
  measured: ({ label, counts, min, max, median, mean }) =>
    `${label}: ${counts}; ${min} till ${max}, median ${median}, medelvärde ${mean}`,
  range: ({ from, to }) => `${from} till ${to}`,
  joined: "En linje förbinder en patients mätningar.",
  notJoined:
    "Mätningar är inte förbundna, eftersom en rad kan höra till flera patienter: utan DISTINCT och aggregat har varje patient en linje.",
  utc: "Tider är i UTC.",
  rows: "rader",
};
