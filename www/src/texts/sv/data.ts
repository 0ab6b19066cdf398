// The texts of the data view in Swedish.
import type { Texts } from "../../texts";
import { formats } from "../formats";

const t = formats("sv");

const files = (count: number) => t.counted(count, { one: "fil", other: "filer" });

export const data: Texts["data"] = {
  repository: "I datalagret",
  repositoryAt: ({ place }) => `I datalagret på ${place}`,
  patients: "Patienter",
  compositions: "Kompositioner",
  seed: "Startvärde",
  ownWrites: "Egna ändringar",
  memory: "Minne",
  megabytes: ({ megabytes }) => `${t.number(megabytes, 1)} MB`,
  readyIn: "Klar på",
  milliseconds: ({ milliseconds }) => `${t.number(milliseconds)} ms`,
  templates: "Mallar",
  noTemplates: "Inga ännu: släpp en operational template (.opt) nedan.",
  notKnown: "inte känt",
  templatesNotKnown: "Inte känt: källan svarar inte.",
  samples: "Exempelpatienter",
  samplesAbout:
    "Påhittade utifrån ett startvärde: samma tre tal ger alltid samma patienter, med saknade värden, upprepade händelser och udda stavningar som i riktiga journaler. Några är spärrade för frågor och räknas inte med.",
  make: "Skapa patienter",
  making: "Skapar patienter",
  sampled: ({ compositions, ehrs, seed }) =>
    `${t.number(compositions)} kompositioner för ${t.counted(ehrs, { one: "patient", other: "patienter" })}, startvärde ${seed}`,
  fateBeside: ({ name, count }) =>
    `”${name}” har ${t.counted(count, { one: "egen ändring", other: "egna ändringar" })}, så nya patienter får en datamängd bredvid.`,
  fateReplace: ({ samples }) =>
    `Nya patienter ersätter de nuvarande (${samples}), som kan skapas igen.`,
  fateAdd: ({ name }) => `Nya patienter läggs till i ”${name}”, som är tom.`,
  startOver: "Börja om…",
  startOverTitle: "Börja om?",
  startOverAbout: ({ name, own }) =>
    `Patienterna i ”${name}” ersätts av de 36 exempelpatienterna från första besöket. ${own} Du kan ångra det i tio minuter.`,
  thisSet: "den här datamängden",
  ownNone: "Inget eget har skrivits i den.",
  ownLost: ({ count }) =>
    t.plural(count, {
      one: `${t.number(count)} egen ändring i den (filer, formulär, anrop) försvinner med dem.`,
      other: `${t.number(count)} egna ändringar i den (filer, formulär, anrop) försvinner med dem.`,
    }),
  startOverYes: "Börja om",
  startOverNo: "Behåll allt",
  startedOver: "Började om med exempelpatienter.",
  bringingBack: "Hämtar tillbaka",
  broughtBack: "De tidigare data är tillbaka.",
  restorable: ({ time }) => `De tidigare data kan hämtas tillbaka till ${time}.`,
  madeBeside: ({ name }) =>
    `De nya patienterna ligger i en egen datamängd. ”${name}” är kvar som den var.`,
  madeReplaced: ({ samples }) => `Ersatte ${samples}.`,
  cancelled: "Avbrutet: allt är som förut.",
  notDone: ({ reason }) => `Inte utfört: ${reason}`,
  takingBack: "Tar tillbaka",
  files: "Egna filer",
  filesAbout:
    "Mallar (OPT 1.4), kompositioner (kanonisk JSON eller XML, FLAT, STRUCTURED), riktlinjer (GDL2) och exporter (.ndjson), även i mappar och .zip-arkiv.",
  target: "Kompositioner hör till",
  targetAsk: "Fråga när kompositioner läggs till",
  targetNone: "Välj…",
  targetTitle: "Vilken patient hör kompositionerna till?",
  targetFolders: ({ count, names }) =>
    `Filerna finns i ${t.counted(count, { one: "mapp eller arkiv", other: "mappar eller arkiv" })}: ${names}`,
  targetAdd: "Lägg till",
  targetNew: "En ny patient",
  targetFolder: "En patient per mapp",
  targetFile: "En patient per filnamn, fram till _ eller .",
  targetSubject: "Patienten som dokumentet anger",
  chooseFiles: "Välj filer…",
  chooseFolder: "Välj en mapp…",
  drop: "Släpp filer eller mappar här",
  dropTo: ({ host }) => `Släpp filer eller mappar här för att skicka dem till ${host}`,
  staysHere: "De stannar i den här webbläsaren och finns kvar när sidan läses in igen.",
  notKept: "De finns i den här flikens minne och försvinner när den stängs eller läses in igen.",
  sentTo: ({ place }) =>
    `De skickas till servern \`${place}\`, som sparar dem. Andra kan läsa dem där.`,
  adding: "Lägger till filer",
  notAdded: ({ reason }) => `Inte tillagd: ${reason}`,
  added: ({ count, of }) => `${t.number(count)} av ${t.number(of)} filer tillagda`,
  addedCancelled: ({ count, of }) =>
    `${t.number(count)} av ${t.number(of)} filer tillagda, sedan avbrutet`,
  addedTo: ({ list, more }) =>
    more > 0
      ? `Kompositionerna finns hos: ${list} och ${t.counted(more, { one: "patient till", other: "patienter till" })}.`
      : `Kompositionerna finns hos: ${list}.`,
  tookBack: ({ count }) =>
    `Tillägget av ${t.counted(count, { one: "fil", other: "filer" })} ångrades.`,
  addedFile: ({ name }) => `${name}: tillagd`,
  addedWarned: ({ count, of, warnings }) =>
    `${t.number(count)} av ${t.number(of)} kompositioner tillagda med ${t.counted(warnings, { one: "varning", other: "varningar" })}`,
  rest: "REST utan server",
  restAbout: ({ path, header }) =>
    `Den här webbläsarens data har en egen basadress, \`${path}\`: varje sida med samma ursprung kan använda den, även utan nät. Där svarar Service Worker, och anger det i headern \`${header}\`. På alla andra adresser svarar bara en server.`,
};

export const refused: Texts["refused"] = {
  title: ({ count }) => t.counted(count, { one: "fil nekades", other: "filer nekades" }),
  about: "inget av innehållet är sparat.",
  partly: ({ count }) =>
    t.plural(count, {
      one: `${t.number(count)} rad är sparad, andra rader nekades.`,
      other: `${t.number(count)} rader är sparade, andra rader nekades.`,
    }),
  others: ({ first, count }) =>
    `${first}, och ${t.counted(count, { one: "liknande meddelande", other: "liknande meddelanden" })}`,
  times: ({ count, of }) => `${t.counted(count, { one: "gång", other: "gånger" })} i ${files(of)}`,
  report: "Spara rapporten",
  load: ({ count }) =>
    `Läs in ${t.counted(count, { one: "komposition", other: "kompositioner" })} med varningar`,
  renew: ({ count }) =>
    `Spara ${t.counted(count, { one: "komposition", other: "kompositioner" })} med ny uid`,
  moreRules: ({ count }) =>
    `och ${t.counted(count, { one: "regel", other: "regler" })} till: se rapporten`,
  file: "fil",
  rule: "regel",
  path: "sökväg",
  problem: "problem",
};

export const sets: Texts["sets"] = {
  title: "Datamängder",
  about:
    "Var och en är ett eget datalager som ligger i den här webbläsaren. En export är en fil med alla versioner och granskningsspår; släppt nedan, eller importerad till en server, blir den likadan igen.",
  example: "Avdelning 7",
  name: "Namn på en ny datamängd",
  nameOf: ({ name }) => `Namn på ${name}`,
  new: "Ny",
  export: "Exportera allt",
  exporting: "Exporterar",
  opening: "Öppnar",
  renaming: "Byter namn",
  removing: "Tar bort",
  restoring: "Återställer",
  isOpen: "öppen",
  open: "Öppna",
  openSet: ({ name }) => `Öppna ${name}`,
  remove: "Ta bort",
  removeSet: ({ name }) => `Ta bort ${name}`,
  removeTitle: ({ name }) => `Ta bort ”${name}”?`,
  removeAbout: ({ size, date }) =>
    `Dess patienter och allt som har skrivits om dem, ${size} sedan ${date}, tas bort från den här webbläsaren. Du kan ångra det i tio minuter; exportera datamängden för att behålla den.`,
  keep: "Behåll",
  removed: ({ name }) => `”${name}” är borttagen.`,
  kilobytes: ({ kilobytes }) => `${t.number(kilobytes)} kB`,
  megabytes: ({ megabytes }) => `${t.number(megabytes)} MB`,
};
