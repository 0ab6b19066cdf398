// What the page and its worker say to each other. What the npm package gives, too, has its types there.
import type {
  Completions,
  Explanation,
  Hover,
  Progress,
  TemplateDescription,
} from "../package/types";

export type {
  Completions,
  Hover,
  Part,
  Progress,
  TemplateDescription,
  TemplateNode,
} from "../package/types";
import type { DescribedGuide, TestedGuide } from "./guide-text";

/** How many sample patients there are, and what they are made from. The same three numbers always give the same patients. */
export interface Samples {
  ehrs: number;
  compositions: number;
  seed: number;
}

/** A repository under a name, kept in this browser. */
export interface DataSet {
  id: string;
  name: string;
  /** Milliseconds since 1970. */
  created: number;
  /** What it takes of the storage of this browser. */
  bytes: number;
  /** What its sample patients are made from; `null` without any. */
  samples: Samples | null;
  /** The one that this origin works with. */
  current: boolean;
}

/** What the repository holds. */
export interface Contents {
  /** The address of the server, or `null` for the data of this browser. */
  place: string | null;
  /** The data set of this browser; `null` on a server. */
  set: DataSet | null;
  ehrs: number;
  compositions: number;
  /** What the sample patients are made from; `null` on a server. */
  samples: Samples | null;
  /** Identifies the data: equal for two moments between which nothing was removed, replaced or exchanged for other data. */
  of: string;
  /** Requests that wrote something of the user's own. */
  added: number;
  /** Bytes of the wasm memory. */
  memory: number;
  /** How long it took to get here. */
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
}

/** A place in a query, offsets in UTF-16 units. */
export interface Place {
  from: number;
  to: number;
}

/** A query, rung by rung, and what its run touched. */
export interface Explained extends Omit<Explanation, "diagnostics"> {
  diagnostics: Diagnostic[];
  /** Time of explaining and running. */
  milliseconds: number;
}

/** A result set as text, with the place of every cell in it. */
export interface Result {
  text: string;
  columns: { name: string; path: string | null }[];
  /** Start and end of each cell's JSON text in `text`, row by row. */
  cells: Uint32Array;
  rows: number;
  /** Whether rows follow that were not asked for. */
  more: boolean;
  /** The data that gave it, as in `Contents`. */
  of: string;
  /** Time in the engine. */
  milliseconds: number;
}

/** A guide in the repository. */
export interface Guide {
  id: string;
  title: string;
}

/** An EHR to choose. */
export interface Patient {
  ehr: string;
  label: string;
}

/** A repository elsewhere. */
export interface Server {
  /** What stands in front of `/query/aql`. */
  base: string;
  /** The header `Authorization`; kept in memory only. */
  authorization: string | null;
}

/** A data set that was discarded, and the one in its place. */
export interface Replacement {
  discarded: string;
  current: string;
}

/** The forms in which compositions are saved. */
export type DocumentFormat = "JSON" | "FLAT" | "STRUCTURED";

/** What a call may take and give. */
export interface Calls {
  connect: { takes: Server | null; gives: Contents };
  contents: { takes: null; gives: Contents };
  templates: { takes: null; gives: string[] };
  /** A template as people read it, in a language where it has it (empty: its own). */
  describe: { takes: { template: string; language: string }; gives: TemplateDescription | null };
  /** The composition in which a cell of a result stands (JSON text); `null` where it stands in none. Fails on other data than those of the result. */
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
  /** Every composition behind the rows of a result, once, a line each. Fails on other data than those of the result. */
  documents: {
    takes: { q: string; parameters: Record<string, unknown>; of: string; format: DocumentFormat };
    gives: { text: string; count: number };
  };
  /** A template as a web template (JSON text). */
  webTemplate: { takes: string; gives: string };
  /** Commits a composition in the format FLAT; gives its version uid. */
  addFlat: { takes: { ehr: string; template: string; text: string }; gives: string };
  query: { takes: { q: string; parameters: Record<string, unknown> }; gives: Result };
  explain: { takes: { q: string; parameters: Record<string, unknown> }; gives: Explained };
  diagnose: { takes: { q: string }; gives: Diagnostic[] };
  complete: { takes: { q: string; offset: number }; gives: Completions };
  hover: { takes: { q: string; offset: number }; gives: Hover | null };
  format: { takes: { q: string }; gives: string };
  guides: { takes: null; gives: Guide[] };
  patients: { takes: null; gives: Patient[] };
  /** A guide as it was stored. */
  guideText: { takes: string; gives: string };
  /** A guide in a language (empty: its own). */
  describeGuide: { takes: { text: string; language: string }; gives: DescribedGuide };
  /** A guide as GDL2 in JSON, or as ODIN. */
  printGuide: { takes: { text: string; syntax: "json" | "odin" }; gives: string };
  /** A run of a stored guide on a patient. */
  runGuide: {
    takes: { guide: string; ehr: string; language: string };
    gives: { text: string; milliseconds: number };
  };
  /** A run on a patient of a guide that is not stored: its queries are asked, its rules run here. */
  runGuideText: {
    takes: { text: string; ehr: string; language: string };
    gives: { text: string; milliseconds: number };
  };
  /** A run on a form: literals by variable. */
  tryGuide: {
    takes: { text: string; inputs: Record<string, string>; language: string };
    gives: { text: string; milliseconds: number };
  };
  testGuide: { takes: { text: string; fixture: string }; gives: TestedGuide };
  generate: { takes: Samples; gives: Contents };
  /** Adds a file; false when it is a document of a patient, and `ehr` names none. */
  add: { takes: { name: string; text: string; ehr: string | null }; gives: boolean };
  /** Makes an EHR; gives its id. */
  newEhr: { takes: null; gives: string };
  /** Puts a new data set of sample patients in the place of the current one; gives both ids. */
  startOver: { takes: null; gives: Replacement };
  /** Takes back `startOver`. */
  bringBack: { takes: Replacement; gives: Contents };
  /** Takes back the own writes of a set behind the first `to`. Fails unless there are `from` of them: others were made meanwhile. */
  undo: { takes: { set: string; from: number; to: number }; gives: Contents };
  /** The data sets of this browser, the oldest first. */
  sets: { takes: null; gives: DataSet[] };
  /** Makes an empty data set of this name and works with it. */
  createSet: { takes: string; gives: Contents };
  /** Works with the data set of this id, in all tabs. */
  openSet: { takes: string; gives: Contents };
  renameSet: { takes: { id: string; name: string }; gives: null };
  /** Removes a data set that is not in use; `restoreSet` brings it back for some minutes. */
  removeSet: { takes: string; gives: null };
  restoreSet: { takes: string; gives: null };
  /** Everything of the data set, as newline-delimited JSON with digests. */
  export: { takes: null; gives: Blob };
  /** Takes in an export; gives what is wrong with it. */
  import: { takes: string; gives: string[] };
}

/** Ends the call with this id as soon as it can. */
export interface Cancel {
  cancel: number;
}

/** A call on its way to the worker. */
export interface Request {
  id: number;
  call: keyof Calls;
  argument: unknown;
}

/** What comes back. */
export type Reply =
  | { id: number; value: unknown }
  /** Of the call with this id; 0 is the start of the worker. */
  | { id: number; progress: Progress }
  /** Another tab, or the Service Worker, changed the data of this browser. */
  | { id: 0; changed: true }
  | { id: number; error: Failure };

/** What is wrong with one key of a document in the format FLAT. */
export interface Misplaced {
  key: string;
  message: string;
}

/** An error that crosses the border between worker and page. */
export interface Failure {
  message: string;
  /** What is wrong with which key, when a FLAT document is the reason. */
  keys: Misplaced[];
  /** Problems of the query text, when the text is the reason. */
  diagnostics: Diagnostic[];
  /** The instance is dead: the worker has to be replaced. */
  fatal: boolean;
}
