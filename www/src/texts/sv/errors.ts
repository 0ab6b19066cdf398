// The errors of the page and its workers in Swedish.
import type { Texts } from "../../texts";
import { formats } from "../formats";

const t = formats("sv");

export const errors: Texts["errors"] = {
  engineDown: () => "motorn startar inte här; läs in sidan igen för att försöka på nytt",
  workerFailed: () => "bakgrundsprocessen har slutat fungera",
  stopped: () => "stoppad",
  cancelled: () => "avbruten",
  otherData: () => "data är inte längre de som resultatet bygger på: kör frågan igen",
  serverChosen: () => "en server är vald: välj ”Webbläsaren” för att arbeta med data här",
  sourceChanged: () => "en annan källa eller datamängd har valts under tiden",
  sourceChangedToBrowser: () =>
    "källan har ändrats under tiden. Lägg till filerna igen för att spara dem i den här webbläsaren.",
  sourceChangedToServer: ({ place }) =>
    `källan har ändrats under tiden. Lägg till filerna igen för att spara dem på ${place}.`,
  noTemplateOfRoot: ({ root }) =>
    `ingen mall har roten \`${root}\` som detta dokument i FLAT eller STRUCTURED har`,
  templatesOfRoot: ({ templates, root }) =>
    `mallarna ${templates} har roten \`${root}\`: skriv id för en av dem i filnamnet`,
  guideLost: ({ id }) => `${id} togs bort, och ingen av texterna kunde sparas`,
  noAnswer: ({ base }) =>
    `inget svar från ${base}: är servern igång, och tillåter den anrop från den här sidan (CORS)?`,
  ownData: ({ base }) =>
    `${base} är den här webbläsarens data: välj ”Webbläsaren” för att fråga dem`,
  webPage: ({ base }) =>
    `${base} svarade med en webbsida i stället för data: krävs inloggning först?`,
  samplesMissing: ({ status }) =>
    `definitionerna av exempelpatienterna kunde inte läsas in: status ${status}`,
  otherSetOpen: () => "en annan datamängd är öppen nu: öppna först den som ändringarna finns i",
  moreWritten: () =>
    "mer har skrivits under tiden, som också skulle gå förlorat: inget togs tillbaka",
  noFolder: () => "filen ligger inte i någon mapp som kan namnge patienten",
  noFileName: () => "filnamnet börjar inte med något ord som kan namnge patienten",
  noSubject: () => "dokumentet anger ingen person",
  unknownFile: () =>
    "en mall (.opt), en komposition (kanonisk JSON eller XML, FLAT eller STRUCTURED), en riktlinje (.gdl, .gdl2.json) eller en export (.ndjson) förväntades",
  notJson: ({ line, column, found }) =>
    `rad ${line}, kolumn ${column}: detta är inte JSON: hittade \`${found}\``,
  jsonEnds: ({ line, column }) =>
    `rad ${line}, kolumn ${column}: detta är inte JSON: texten tar slut här`,
  noPatient: () => "ingen patient valdes för den",
  notDecoded: ({ encoding }) =>
    `filen går inte att läsa som ${encoding}: spara den som UTF-8 och lägg till den igen`,
  archiveDamaged: ({ reason }) => `arkivet går inte att läsa: ${reason}`,
  archiveTooLarge: ({ megabytes }) =>
    `arkivet innehåller mer än ${t.number(megabytes)} MB: packa upp det och lägg till filerna i delar`,
  refused: () => "nekad",
  refusedLine: ({ line, reason }) => `rad ${line}: ${reason}`,
  refusedLines: ({ lines, count }) => `${lines}\noch ${t.number(count)} rader till`,
  setInUse: () => "datamängden används: öppna först en annan",
  setOpened: () => "en annan datamängd öppnades under tiden: inget har ändrats",
  otherRelease: () =>
    "den här webbläsarens data är skrivna av en annan version av aqlite: läs in sidan igen för att använda den",
  setGone: () => "datamängden finns inte längre",
  setUnnamed: () => "en datamängd behöver ett namn",
  setNameTaken: ({ name }) => `det finns redan en datamängd \`${name}\`: välj ett annat namn`,
  notStored: ({ reason }) => `detta kunde inte sparas och utfördes därför inte: ${reason}`,
  fileGone: ({ name }) => `filen ${name} finns inte längre`,
  fileDamaged: ({ file, reason }) =>
    `filen ${file} i den här datamängden är skadad (${reason}), och ingen annan fil har dess innehåll: öppna en annan datamängd och importera en export av den här`,
  changedMeanwhile: () => "data ändrades medan en kontrollpunkt skapades",
  undoExpired: () =>
    "de här ändringarna kan inte längre tas tillbaka: de är äldre än tio minuter, eller så raderades data efter dem",
  storageFull: () => "inget mer kan sparas: lagringen är full",
  onlyReads: () =>
    "i en Service Worker kan den här webbläsaren bara läsa: skriv på en sida med den här adressen",
  unauthorized: () => "servern vill veta vem som frågar: ge den en token",
  forbidden: () => "servern tillåter inte detta med denna token",
  status: ({ status }) => `svarade med status ${status}`,
};
