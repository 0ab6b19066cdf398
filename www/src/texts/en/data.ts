// The texts of the data view: repository, sample patients, files, data sets.
import { formats } from "../formats";

const t = /* @__PURE__ */ formats("en");

const patients = (count: number) => t.counted(count, { one: "patient", other: "patients" });
const files = (count: number) => t.counted(count, { one: "file", other: "files" });

export const data = {
  repository: "In the repository",
  repositoryAt: ({ place }: { place: string }) => `In the repository at ${place}`,
  patients: "Patients",
  compositions: "Compositions",
  seed: "Seed",
  ownWrites: "Own writes",
  memory: "Memory",
  megabytes: ({ megabytes }: { megabytes: number }) => `${t.number(megabytes, 1)} MB`,
  readyIn: "Ready in",
  milliseconds: ({ milliseconds }: { milliseconds: number }) => `${t.number(milliseconds)} ms`,
  templates: "Templates",
  noTemplates: "None yet: drop an operational template (.opt) below.",
  notKnown: "not known",
  templatesNotKnown: "Not known: the source does not answer.",
  samples: "Sample patients",
  samplesAbout:
    "Made up from a seed: the same three numbers always give the same patients, with missing values, repeated events and odd spellings as real records have. A few are closed to queries, and are not counted.",
  make: "Make patients",
  making: "Making patients",
  sampled: ({ compositions, ehrs, seed }: { compositions: number; ehrs: number; seed: number }) =>
    `${t.number(compositions)} compositions of ${patients(ehrs)}, seed ${seed}`,
  fateBeside: ({ name, count }: { name: string; count: number }) =>
    `“${name}” has ${t.counted(count, { one: "write", other: "writes" })} of your own, so new patients get a data set beside it.`,
  fateReplace: ({ samples }: { samples: string }) =>
    `New patients replace the present ones (${samples}), which can be made again.`,
  fateAdd: ({ name }: { name: string }) => `New patients are added to “${name}”, which is empty.`,
  startOver: "Start over…",
  startOverTitle: "Start over?",
  startOverAbout: ({ name, own }: { name: string; own: string }) =>
    `The patients of “${name}” are replaced by the 36 sample patients of the first visit. ${own} You can undo it for ten minutes.`,
  thisSet: "this data set",
  ownNone: "Nothing of your own was written to it.",
  ownLost: ({ count }: { count: number }) =>
    t.plural(count, {
      one: `${t.number(count)} write of your own (files, forms, requests) in it goes with them.`,
      other: `${t.number(count)} writes of your own (files, forms, requests) in it go with them.`,
    }),
  startOverYes: "Start over",
  startOverNo: "Keep everything",
  startedOver: "Started over with sample patients.",
  bringingBack: "Bringing back",
  broughtBack: "The former data are back.",
  restorable: ({ time }: { time: string }) => `The former data can be restored until ${time}.`,
  madeBeside: ({ name }: { name: string }) =>
    `The new patients are in a data set of their own. “${name}” is kept as it was.`,
  madeReplaced: ({ samples }: { samples: string }) => `Replaced ${samples}.`,
  cancelled: "Cancelled: everything is as it was before.",
  notDone: ({ reason }: { reason: string }) => `Not done: ${reason}`,
  takingBack: "Taking back",
  files: "Your own files",
  filesAbout:
    "Templates (OPT 1.4), compositions (canonical JSON or XML, FLAT, STRUCTURED), guides (GDL2) and exports (.ndjson), also in folders and .zip archives.",
  target: "Compositions go to",
  targetAsk: "Ask when compositions are added",
  targetNone: "Choose…",
  targetTitle: "To which patient do the compositions belong?",
  targetFolders: ({ count, names }: { count: number; names: string }) =>
    `The files are in ${t.counted(count, { one: "folder or archive", other: "folders or archives" })}: ${names}`,
  targetAdd: "Add",
  targetNew: "A new patient",
  targetFolder: "A patient for each folder",
  targetFile: "A patient for each file name, up to _ or .",
  targetSubject: "The patient whom the document names as subject",
  chooseFiles: "Choose files…",
  chooseFolder: "Choose a folder…",
  drop: "Drop files or folders here",
  dropTo: ({ host }: { host: string }) => `Drop files or folders here to send them to ${host}`,
  staysHere: "They stay in this browser, and are there again after a reload.",
  notKept: "They are in the memory of this tab, and are lost when it is closed or loaded again.",
  sentTo: ({ place }: { place: string }) =>
    `They are sent to the server \`${place}\`, which stores them. Others may read them there.`,
  adding: "Adding files",
  notAdded: ({ reason }: { reason: string }) => `Not added: ${reason}`,
  added: ({ count, of }: { count: number; of: number }) =>
    `${t.number(count)} of ${t.number(of)} files added`,
  addedCancelled: ({ count, of }: { count: number; of: number }) =>
    `${t.number(count)} of ${t.number(of)} files added, then cancelled`,
  addedTo: ({ list, more }: { list: string; more: number }) =>
    more > 0
      ? `Compositions went to: ${list} and ${t.counted(more, { one: "more patient", other: "more patients" })}.`
      : `Compositions went to: ${list}.`,
  tookBack: ({ count }: { count: number }) => `The addition of ${files(count)} was undone.`,
  addedFile: ({ name }: { name: string }) => `${name}: added`,
  addedWarned: ({ count, of, warnings }: { count: number; of: number; warnings: number }) =>
    `${t.number(count)} of ${t.number(of)} compositions added with ${t.counted(warnings, { one: "warning", other: "warnings" })}`,
  rest: "REST without a server",
  restAbout: ({ path, header }: { path: string; header: string }) =>
    `The data of this browser have a base address of their own, \`${path}\`: any page of this origin can use it, without a network too. The Service Worker answers there, and says so in the header \`${header}\`. At every other address only a server answers.`,
};

export const refused = {
  title: ({ count }: { count: number }) => `${files(count)} refused`,
  about: "nothing of them is stored.",
  partly: ({ count }: { count: number }) =>
    t.plural(count, {
      one: `${t.number(count)} line is stored, other lines are refused.`,
      other: `${t.number(count)} lines are stored, other lines are refused.`,
    }),
  others: ({ first, count }: { first: string; count: number }) =>
    `${first}, and ${t.counted(count, { one: "message", other: "messages" })} like it`,
  times: ({ count, of }: { count: number; of: number }) =>
    `${t.counted(count, { one: "time", other: "times" })} in ${files(of)}`,
  report: "Save the report",
  load: ({ count }: { count: number }) =>
    `Load ${t.counted(count, { one: "composition", other: "compositions" })} with warnings`,
  renew: ({ count }: { count: number }) =>
    `Store ${t.counted(count, { one: "composition", other: "compositions" })} with a new uid`,
  moreRules: ({ count }: { count: number }) =>
    `and ${t.counted(count, { one: "rule", other: "rules" })} more: see the report`,
  file: "file",
  rule: "rule",
  path: "path",
  problem: "problem",
};

export const sets = {
  title: "Data sets",
  about:
    "Each is a repository of its own, kept in this browser. An export is a file with every version and audit; dropped below, or imported into a server, it is the same again.",
  example: "Ward 7",
  name: "Name of a new data set",
  nameOf: ({ name }: { name: string }) => `Name of ${name}`,
  new: "New",
  export: "Export everything",
  exporting: "Exporting",
  opening: "Opening",
  renaming: "Renaming",
  removing: "Removing",
  restoring: "Restoring",
  isOpen: "open",
  open: "Open",
  openSet: ({ name }: { name: string }) => `Open ${name}`,
  remove: "Remove",
  removeSet: ({ name }: { name: string }) => `Remove ${name}`,
  removeTitle: ({ name }: { name: string }) => `Remove “${name}”?`,
  removeAbout: ({ size, date }: { size: string; date: string }) =>
    `Its patients and everything written to it, ${size} since ${date}, are removed from this browser. You can undo it for ten minutes; export it to keep it.`,
  keep: "Keep",
  removed: ({ name }: { name: string }) => `“${name}” is removed.`,
  kilobytes: ({ kilobytes }: { kilobytes: number }) => `${t.number(kilobytes)} kB`,
  megabytes: ({ megabytes }: { megabytes: number }) => `${t.number(megabytes)} MB`,
};
