// The errors of the page and its workers in English. They are a part of their own because the
// workers and the npm package have no other text.
import { formats } from "../formats";

const t = /* @__PURE__ */ formats("en");

export const errors = {
  engineDown: () => "the engine does not start here; reload the page to try again",
  workerFailed: () => "the worker failed",
  stopped: () => "stopped",
  cancelled: () => "cancelled",
  otherData: () => "the data are not those of this result any more: run the query again",
  serverChosen: () => "a server is chosen: choose “This browser” to work with the data here",
  sourceChanged: () => "another source or data set was selected meanwhile",
  sourceChangedToBrowser: () =>
    "the source changed meanwhile. Add the files again to put them into this browser.",
  sourceChangedToServer: ({ place }: { place: string }) =>
    `the source changed meanwhile. Add the files again to put them on ${place}.`,
  noTemplateOfRoot: ({ root }: { root: string }) =>
    `no template has the root \`${root}\` of this FLAT or STRUCTURED document`,
  templatesOfRoot: ({ templates, root }: { templates: string; root: string }) =>
    `the templates ${templates} have the root \`${root}\`: write the id of one into the name of the file`,
  guideLost: ({ id }: { id: string; former: string }) =>
    `${id} was removed, and neither text could be stored`,
  noAnswer: ({ base }: { base: string }) =>
    `no answer from ${base}: is it running, and does it allow requests from this page (CORS)?`,
  ownData: ({ base }: { base: string }) =>
    `${base} is the data of this browser: choose “This browser” to ask it`,
  webPage: ({ base }: { base: string }) =>
    `${base} answered with a web page instead of data: does it want a login first?`,
  samplesMissing: ({ status }: { status: number }) =>
    `the definitions of the sample patients could not be loaded: status ${status}`,
  otherSetOpen: () => "another data set is open now: open the data set of these writes first",
  moreWritten: () => "more was written meanwhile, which would be lost too: nothing was taken back",
  noFolder: () => "it is in no folder that could name its patient",
  noFileName: () => "its name begins with no word that could name its patient",
  noSubject: () => "it names no subject",
  unknownFile: () =>
    "expected a template (.opt), a composition (canonical JSON or XML, FLAT or STRUCTURED), a guide (.gdl, .gdl2.json) or an export (.ndjson)",
  notJson: ({ line, column, found }: { line: number; column: number; found: string }) =>
    `line ${line}, column ${column}: this is not JSON: found \`${found}\``,
  jsonEnds: ({ line, column }: { line: number; column: number }) =>
    `line ${line}, column ${column}: this is not JSON: found the end of the text`,
  noPatient: () => "no patient was chosen for it",
  notDecoded: ({ encoding }: { encoding: string }) =>
    `this file cannot be read as ${encoding}: save it as UTF-8, and add it again`,
  archiveDamaged: ({ reason }: { reason: string }) => `this archive cannot be read: ${reason}`,
  archiveTooLarge: ({ megabytes }: { megabytes: number }) =>
    `the archive holds more than ${t.number(megabytes)} MB: unpack it, and add its files in parts`,
  refused: () => "refused",
  refusedLine: ({ line, reason }: { line: number; reason: string }) => `line ${line}: ${reason}`,
  refusedLines: ({ lines, count }: { lines: string; count: number }) =>
    `${lines}\nand ${t.number(count)} more lines`,
  setInUse: () => "the data set is in use: open another one first",
  setOpened: () => "another data set was opened meanwhile: nothing was changed",
  otherRelease: () =>
    "the data of this browser was written by another release of aqlite: reload the page to use that one",
  setGone: () => "the data set is not there any more",
  setUnnamed: () => "a data set needs a name",
  setNameTaken: ({ name }: { name: string }) =>
    `there is a data set \`${name}\` already: choose another name`,
  notStored: ({ reason }: { reason: string }) =>
    `this could not be kept, so it was not done: ${reason}`,
  fileGone: ({ name }: { name: string }) => `the file ${name} is gone`,
  fileDamaged: ({ file, reason }: { file: string; reason: string }) =>
    `the file ${file} of this data set is damaged (${reason}), and no other file has its content: open another data set, and import an export of this one`,
  changedMeanwhile: () => "the data were changed while a checkpoint was made",
  undoExpired: () =>
    "these writes cannot be taken back any more: they are older than ten minutes, or data were deleted after them",
  storageFull: () => "nothing more can be kept: the storage is full",
  onlyReads: () =>
    "in a Service Worker, this browser can only read: write in a page of this address",
  unauthorized: () => "the server wants to know who asks: give it a token",
  forbidden: () => "the server does not allow this with the given token",
  status: ({ status }: { status: number }) => `answered with status ${status}`,
};
