// The messages between the page and its worker. Types that the npm package shares are defined
// there.
import type {
  Completions,
  Explanation,
  Hover,
  Progress as CoreProgress,
  TemplateDescription,
} from "../package/types";

export type { Completions, Hover, Part, TemplateDescription, TemplateNode } from "../package/types";
import type { FaultText } from "./fault";
import type { DescribedGuide, TestedGuide } from "./guide-text";
import type { Texts } from "./texts";

/** The progress of a long call. `what` is the key of the call's name in the catalogue of texts. */
export interface Progress extends Omit<CoreProgress, "what"> {
  what: keyof Texts["frame"]["working"];
}

/** The parameters of sample patients. Equal numbers produce equal patients. */
export interface Samples {
  ehrs: number;
  compositions: number;
  seed: number;
}

/** A repository with a name, stored in this browser. */
export interface DataSet {
  id: string;
  name: string;
  /** Milliseconds since 1970. */
  created: number;
  /** The bytes of the data set in the storage of this browser. */
  bytes: number;
  /** The parameters of its sample patients; `null` without any. */
  samples: Samples | null;
  /** Whether it is the current data set of this origin. */
  current: boolean;
}

/** A data set that the user removed. It can be restored for some minutes. */
export interface RemovedSet {
  id: string;
  name: string;
  /** The time until which it can be restored, in milliseconds since 1970. */
  until: number;
}

/** The content of a repository. */
export interface Contents {
  /** The address of the server, or `null` for the data of this browser. */
  place: string | null;
  /** The data set of this browser; `null` on a server. */
  set: DataSet | null;
  /** Whether the data are there again after a reload. */
  isKept: boolean;
  ehrs: number;
  compositions: number;
  /** The parameters of the sample patients; `null` on a server. */
  samples: Samples | null;
  /**
   * The identity of the data: equal for two moments if nothing was removed, replaced or exchanged
   * between them.
   */
  identity: string;
  /** The number of writes of the user. */
  added: number;
  /**
   * The data set that the current one replaced, and until when it can be restored, in milliseconds
   * since 1970; `null` without one.
   */
  replaced: { id: string; until: number } | null;
  /** Bytes of the wasm memory. */
  memory: number;
  /** The time until the repository was ready, in milliseconds. */
  milliseconds: number;
}

/** A problem in a query, offsets in UTF-16 units. */
export interface Diagnostic {
  from: number;
  to: number;
  severity: "error" | "warning";
  code: string;
  message: string;
  help: string | null;
  /** The change of the text that removes the problem. */
  fix?: (Place & { text: string }) | null;
}

/** A range of a query, offsets in UTF-16 units. */
export interface Place {
  from: number;
  to: number;
}

/** The steps of a query, and the data that its run read. */
export interface Explained extends Omit<Explanation, "diagnostics"> {
  diagnostics: Diagnostic[];
  /** Time of explaining and running, in milliseconds. */
  milliseconds: number;
}

/** The start of a page of a result that is too large to be shown at once. */
export interface PageStart {
  /** The index of its first row in the whole result. */
  offset: number;
  /** The number of rows of the previous page that was not too large; `null` for the default. */
  fetch: number | null;
  /** The token of the state from which all pages are read. */
  snapshot: string | null;
}

/** A result set as text, with the position of every cell. */
export interface Result {
  text: string;
  columns: { name: string; path: string | null }[];
  /** Start and end of each cell's JSON text in `text`, row by row. */
  cells: Uint32Array;
  rows: number;
  /** Whether the result has further rows. */
  more: boolean;
  /** The index of the first row in the whole result. */
  offset: number;
  /** The start of the next page; `null` on the last page, and if the source has no pages. */
  next: PageStart | null;
  /** The identity of the data of the result, as in `Contents`. */
  identity: string;
  /** Time in the engine, in milliseconds. */
  milliseconds: number;
}

/** A guide in the repository. */
export interface Guide {
  id: string;
  title: string;
}

/** A problem of a document. */
export interface Problem {
  /** The code of the broken rule, such as `VAL0203`. */
  rule: string;
  path: string;
  message: string;
}

/** An EHR in a list. */
export interface Patient {
  ehr: string;
  label: string;
}

/** A composition in the timeline of a patient. */
export interface Listed {
  /** The id of its latest version. */
  uid: string;
  name: string;
  /** The start of its context; `null` without a context. */
  time: string | null;
  template: string | null;
  composer: string | null;
}

/** A version of a composition. */
export interface Version {
  uid: string;
  committed: string;
  committer: string;
  /** The kind of the change: creation, modification, deleted, … */
  change: string;
}

/** A repository on a server. */
export interface Server {
  /** The address before `/query/aql`. */
  base: string;
  /** The header `Authorization`; kept in memory only. */
  authorization: string | null;
}

/** A data set that was discarded, and its replacement. */
export interface Replacement {
  discarded: string;
  current: string;
}

/** The outcome of an import. */
export interface Imported {
  /** The number of lines that are stored now; some may have been stored before. */
  stored: number;
  /** The errors of refused lines. */
  refused: string[];
}

/** The formats of saved compositions. */
export type DocumentFormat = "JSON" | "FLAT" | "STRUCTURED";

/** The maximum number of patients that are listed. */
export const LISTED = 500;

/** The number of compositions that are listed at once. */
export const TIMELINE = 200;

/** The calls with their arguments and results. */
export interface Calls {
  connect: { argument: Server | null; result: Contents };
  /** Selects a server that answered before, without a request: it may not answer now. */
  resume: { argument: Server; result: null };
  contents: { argument: null; result: Contents };
  templates: { argument: null; result: string[] };
  /** A template as a tree with names, in a language if the template has it (empty: its own). */
  describe: {
    argument: { template: string; language: string };
    result: TemplateDescription | null;
  };
  /**
   * The composition that contains a cell of a result (JSON text), or `null`. Fails if the data are
   * no longer those of the result, or if the row has other cells now (`cells` are those displayed):
   * added documents may have moved it.
   */
  document: {
    argument: {
      q: string;
      parameters: Record<string, unknown>;
      identity: string;
      row: number;
      column: number;
      cells: string[];
    };
    result: string | null;
  };
  /**
   * The compositions from which the rows of a result come: each one once, one per line. Fails if the
   * data are no longer those of the result.
   */
  documents: {
    argument: {
      q: string;
      parameters: Record<string, unknown>;
      identity: string;
      format: DocumentFormat;
    };
    result: { text: string; count: number };
  };
  /**
   * The rows of a query with the EHR id as an additional last column, or `null` if rows may belong
   * to several EHRs. Fails if the data are no longer those of the result.
   */
  withEhrs: {
    argument: { q: string; parameters: Record<string, unknown>; identity: string };
    result: Result | null;
  };
  /** A template as a web template (JSON text). */
  webTemplate: { argument: string; result: string };
  /** Commits a composition in the format FLAT. Returns its version uid. */
  addFlat: { argument: { ehr: string; template: string; text: string }; result: string };
  /** The rows of a query: all of them, or those of a page. */
  query: {
    argument: { q: string; parameters: Record<string, unknown>; from: PageStart | null };
    result: Result;
  };
  explain: { argument: { q: string; parameters: Record<string, unknown> }; result: Explained };
  diagnose: { argument: { q: string }; result: Diagnostic[] };
  complete: { argument: { q: string; offset: number }; result: Completions };
  hover: { argument: { q: string; offset: number }; result: Hover | null };
  format: { argument: { q: string }; result: string };
  guides: { argument: null; result: Guide[] };
  patients: { argument: null; result: Patient[] };
  /** The patients with these EHRs. */
  patientsOf: { argument: { ehrs: string[] }; result: Patient[] };
  /** The compositions of a patient from a position on, the latest first, at most `TIMELINE`. */
  compositions: { argument: { ehr: string; offset: number }; result: Listed[] };
  /** The versions of a composition, the first one first. */
  versions: { argument: { ehr: string; uid: string }; result: Version[] };
  /** A version of a composition (JSON text). */
  version: { argument: { ehr: string; uid: string }; result: string };
  /** The text of a guide as stored. */
  guideText: { argument: string; result: string };
  /**
   * Removes a stored guide, stores a text, or replaces a guide by a text. Returns the removed text,
   * with which the step can be undone. If the call fails, nothing has changed.
   */
  exchangeGuide: { argument: { remove: string | null; add: string | null }; result: string | null };
  /** A guide in a language (empty: its own). */
  describeGuide: { argument: { text: string; language: string }; result: DescribedGuide };
  /** A guide as GDL2 in JSON, or as ODIN. */
  printGuide: { argument: { text: string; syntax: "json" | "odin" }; result: string };
  /** A run of a stored guide on a patient. */
  runGuide: {
    argument: { guide: string; ehr: string; language: string };
    result: { text: string; milliseconds: number };
  };
  /**
   * A run on a patient of a guide that is not stored. The queries run in the repository, which may
   * be on a server, and the rules in the module.
   */
  runGuideText: {
    argument: { text: string; ehr: string; language: string };
    result: { text: string; milliseconds: number };
  };
  /**
   * A run on a form, whose values are literals by variable. `now` is the time of evaluation; `null`
   * for the current time.
   */
  tryGuide: {
    argument: {
      text: string;
      inputs: Record<string, string>;
      language: string;
      now: string | null;
    };
    result: { text: string; milliseconds: number };
  };
  testGuide: { argument: { text: string; fixture: string }; result: TestedGuide };
  generate: { argument: Samples; result: Contents };
  /** Adds a file. Returns false if it is a document of a patient and `ehr` is absent. */
  add: { argument: { name: string; text: string; ehr: string | null }; result: boolean };
  /** The problems for which a composition would be refused; empty for other files. */
  problems: { argument: { name: string; text: string }; result: Problem[] };
  /** Adds a composition (canonical JSON) in spite of its problems. Returns their number. */
  load: { argument: { ehr: string; text: string }; result: number };
  /** Creates an EHR for the subject with this id; `null` for an EHR without subject. Returns its id. */
  newEhr: { argument: string | null; result: string };
  /** Replaces the current data set by a new one of sample patients. Returns both ids. */
  startOver: { argument: null; result: Replacement };
  /** Undoes `startOver`. */
  bringBack: { argument: Replacement; result: Contents };
  /**
   * Undoes the user's writes of a set after the first `to`. Fails unless the set has `from` writes:
   * otherwise the call would also undo writes that were made meanwhile.
   */
  undo: { argument: { set: string; from: number; to: number }; result: Contents };
  /** The data sets of this browser, the oldest first. */
  sets: { argument: null; result: DataSet[] };
  /** The removed data sets that can be restored, the latest first. */
  removedSets: { argument: null; result: RemovedSet[] };
  /** Creates an empty data set and selects it. */
  createSet: { argument: string; result: Contents };
  /** Selects the data set with this id, in all tabs. */
  openSet: { argument: string; result: Contents };
  renameSet: { argument: { id: string; name: string }; result: null };
  /** Removes a data set that is not in use. For some minutes, `restoreSet` can restore it. */
  removeSet: { argument: string; result: null };
  restoreSet: { argument: string; result: null };
  /** Exports the data set as newline-delimited JSON with digests. */
  export: { argument: null; result: Blob };
  /** Imports lines of an export; `first` is the number of the first of them in the export. */
  import: { argument: { text: string; first: number }; result: Imported };
}

/** Ends the call with this id as soon as possible. */
export interface Cancel {
  cancel: number;
}

/** The id of the query that the worker gets before the code of the page is loaded. */
export const EARLY = 1;

/** A call to the worker. */
export interface Request {
  id: number;
  call: keyof Calls;
  argument: unknown;
}

/** A message from the worker. */
export type Reply =
  | { id: number; value: unknown }
  /** The progress of the call with this id. 0 is the start of the worker. */
  | { id: number; progress: Progress }
  /** Another tab, or the Service Worker, changed the data of this browser. */
  | { id: 0; changed: true }
  | { id: number; error: Failure };

/** A problem of one key of a document in the format FLAT. */
export interface Misplaced {
  key: string;
  message: string;
}

/** An error in the form in which it is sent from the worker to the page. */
export interface Failure {
  message: string;
  /** The problems by key, if a FLAT document is the cause. */
  keys: Misplaced[];
  /** Problems of the query text, if it is the cause. */
  diagnostics: Diagnostic[];
  /** The key of the text in the catalogue; `null` if the core or a server wrote the text. */
  fault: FaultText | null;
  /** Whether the wasm instance is unusable, so that the worker must be replaced. */
  fatal: boolean;
}
