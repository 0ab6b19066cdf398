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

/** The progress of a long call. `what` is the key of its name in the catalogue. */
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
  /** The bytes that it occupies in the storage of this browser. */
  bytes: number;
  /** The parameters of its sample patients; `null` without any. */
  samples: Samples | null;
  /** Whether this origin works with it. */
  current: boolean;
}

/** The content of a repository. */
export interface Contents {
  /** The address of the server, or `null` for the data of this browser. */
  place: string | null;
  /** The data set of this browser; `null` on a server. */
  set: DataSet | null;
  ehrs: number;
  compositions: number;
  /** The parameters of the sample patients; `null` on a server. */
  samples: Samples | null;
  /**
   * The identity of the data: equal for two moments if nothing was removed, replaced or exchanged
   * between them.
   */
  of: string;
  /** The number of writes of the user. */
  added: number;
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

/** The beginning of a page of a result that is too large to be shown at once. */
export interface PageStart {
  /** The index of its first row in the whole result. */
  offset: number;
  /** The number of rows that were small enough before; `null` for the default. */
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
  /** The next page; `null` if there is none, or if the source cannot return it. */
  next: PageStart | null;
  /** The identity of its data, as in `Contents`. */
  of: string;
  /** Time in the engine, in milliseconds. */
  milliseconds: number;
}

/** A guide in the repository. */
export interface Guide {
  id: string;
  title: string;
}

/** A finding about a document. */
export interface Problem {
  /** The rule that it breaks, such as `VAL0203`. */
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

/** The formats of saved compositions. */
export type DocumentFormat = "JSON" | "FLAT" | "STRUCTURED";

/** The number of compositions that are listed at once. */
export const TIMELINE = 200;

/** The calls with their arguments and results. */
export interface Calls {
  connect: { takes: Server | null; gives: Contents };
  /** Selects a server that answered before, without a request. It may be away now. */
  resume: { takes: Server; gives: null };
  contents: { takes: null; gives: Contents };
  templates: { takes: null; gives: string[] };
  /** A template for people, in a language if it has it (empty: its own). */
  describe: { takes: { template: string; language: string }; gives: TemplateDescription | null };
  /**
   * The composition that contains a cell of a result (JSON text), or `null`. Fails if the data are
   * no longer those of the result.
   */
  document: {
    takes: {
      q: string;
      parameters: Record<string, unknown>;
      of: string;
      row: number;
      column: number;
    };
    gives: string | null;
  };
  /**
   * Every composition behind the rows of a result, once, one per line. Fails if the data are no
   * longer those of the result.
   */
  documents: {
    takes: { q: string; parameters: Record<string, unknown>; of: string; format: DocumentFormat };
    gives: { text: string; count: number };
  };
  /**
   * The rows of a query with the EHR id as an additional last column, or `null` if rows may belong
   * to several EHRs. Fails if the data are no longer those of the result.
   */
  withEhrs: {
    takes: { q: string; parameters: Record<string, unknown>; of: string };
    gives: Result | null;
  };
  /** A template as a web template (JSON text). */
  webTemplate: { takes: string; gives: string };
  /** Commits a composition in the format FLAT. Returns its version uid. */
  addFlat: { takes: { ehr: string; template: string; text: string }; gives: string };
  /** The rows of a query: all of them, or those of a page. */
  query: {
    takes: { q: string; parameters: Record<string, unknown>; from: PageStart | null };
    gives: Result;
  };
  explain: { takes: { q: string; parameters: Record<string, unknown> }; gives: Explained };
  diagnose: { takes: { q: string }; gives: Diagnostic[] };
  complete: { takes: { q: string; offset: number }; gives: Completions };
  hover: { takes: { q: string; offset: number }; gives: Hover | null };
  format: { takes: { q: string }; gives: string };
  guides: { takes: null; gives: Guide[] };
  patients: { takes: null; gives: Patient[] };
  /** The compositions of a patient from a position on, the latest first, at most `TIMELINE`. */
  compositions: { takes: { ehr: string; offset: number }; gives: Listed[] };
  /** The versions of a composition, the first one first. */
  versions: { takes: { ehr: string; uid: string }; gives: Version[] };
  /** A version of a composition (JSON text). */
  version: { takes: { ehr: string; uid: string }; gives: string };
  /** The text of a guide as stored. */
  guideText: { takes: string; gives: string };
  /**
   * Removes a stored guide, stores a text, or replaces the one by the other. Returns the former
   * text, with which it can be undone. If it fails, nothing has changed.
   */
  exchangeGuide: { takes: { remove: string | null; add: string | null }; gives: string | null };
  /** A guide in a language (empty: its own). */
  describeGuide: { takes: { text: string; language: string }; gives: DescribedGuide };
  /** A guide as GDL2 in JSON, or as ODIN. */
  printGuide: { takes: { text: string; syntax: "json" | "odin" }; gives: string };
  /** A run of a stored guide on a patient. */
  runGuide: {
    takes: { guide: string; ehr: string; language: string };
    gives: { text: string; milliseconds: number };
  };
  /**
   * A run on a patient of a guide that is not stored: its queries run in the repository, its rules
   * in the module.
   */
  runGuideText: {
    takes: { text: string; ehr: string; language: string };
    gives: { text: string; milliseconds: number };
  };
  /**
   * A run on a form, whose values are literals by variable. `now` is the time of evaluation; `null`
   * for the present.
   */
  tryGuide: {
    takes: { text: string; inputs: Record<string, string>; language: string; now: string | null };
    gives: { text: string; milliseconds: number };
  };
  testGuide: { takes: { text: string; fixture: string }; gives: TestedGuide };
  generate: { takes: Samples; gives: Contents };
  /** Adds a file. Returns false for a document of a patient without `ehr`. */
  add: { takes: { name: string; text: string; ehr: string | null }; gives: boolean };
  /** The findings that would refuse a composition. Empty for other files. */
  problems: { takes: { name: string; text: string }; gives: Problem[] };
  /** Adds a composition (canonical JSON) with all of its findings. Returns their number. */
  load: { takes: { ehr: string; text: string }; gives: number };
  /** Creates an EHR, with this id of its subject unless it is `null`. Returns its id. */
  newEhr: { takes: string | null; gives: string };
  /** Replaces the current data set by a new one of sample patients. Returns both ids. */
  startOver: { takes: null; gives: Replacement };
  /** Undoes `startOver`. */
  bringBack: { takes: Replacement; gives: Contents };
  /**
   * Undoes the user's writes of a set behind the first `to`. Fails unless there are `from` of them,
   * because others were made meanwhile.
   */
  undo: { takes: { set: string; from: number; to: number }; gives: Contents };
  /** The data sets of this browser, the oldest first. */
  sets: { takes: null; gives: DataSet[] };
  /** Creates an empty data set and selects it. */
  createSet: { takes: string; gives: Contents };
  /** Selects the data set with this id, in all tabs. */
  openSet: { takes: string; gives: Contents };
  renameSet: { takes: { id: string; name: string }; gives: null };
  /** Removes a data set that is not in use. `restoreSet` restores it for some minutes. */
  removeSet: { takes: string; gives: null };
  restoreSet: { takes: string; gives: null };
  /** Exports the data set as newline-delimited JSON with digests. */
  export: { takes: null; gives: Blob };
  /** Imports an export. Returns its errors. */
  import: { takes: string; gives: string[] };
}

/** Ends the call with this id as soon as possible. */
export interface Cancel {
  cancel: number;
}

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
  /** The text of the error in the catalogue; `null` for a text of the core or of a server. */
  fault: FaultText | null;
  /** Whether the instance is lost, so that the worker must be replaced. */
  fatal: boolean;
}
