// The texts of the query view: queries, editor, builder, explanation.
import { formats } from "../formats";

const t = /* @__PURE__ */ formats("en");

/** Title and purpose of an example query. */
export interface ExampleTexts {
  title: string;
  about: string;
}

export const query = {
  examples: "Examples",
  /** By the English title. The English texts are in `samples/examples.aql`. */
  exampleTexts: {} as Record<string, ExampleTexts>,
  queries: "Queries",
  new: "New query",
  rename: "Rename",
  editor: "Editor",
  text: "AQL query",
  value: "value",
  keepValues: "Links and saved queries keep these values",
  run: "Run",
  stop: "Stop",
  format: "Format",
  copyLink: "Copy link",
  build: "Build",
  numbered: ({ number }: { number: number }) => `Query ${number}`,
  closed: ({ name }: { name: string }) => `“${name}” is closed.`,
  saveTitle: "Save this query",
  renameTitle: "Rename this query",
  name: "Name",
  taken: "A query with this name is saved already. This one replaces it; you can undo that.",
  saved: "Saved",
  savedNone: "Save a query under a name to find it here.",
  recent: "Recent",
  recentNone: "What you run is listed here, in this browser only.",
  forget: ({ name }: { name: string }) => `Forget ${name}`,
  forgetThis: "Forget this query",
  forgotten: ({ name }: { name: string }) => `“${name}” is forgotten.`,
  replaced: ({ name }: { name: string }) => `“${name}” is replaced.`,
  forgottenOne: "A query is forgotten.",
  notRun: "Not run yet",
  notRunAbout: "Run the query to see its rows.",
  noResult: "No result",
  noResultAbout: "The data cannot be read, so the former result may be of other data.",
  otherData: "Other data",
  otherDataAbout:
    "The result was of other data than those that are open now. Run the query to ask these.",
  nothingToRun: "Nothing to run",
  nothingToRunAbout: "Write a query, or choose an example.",
  cut: "more rows follow; ask for them with LIMIT and OFFSET",
  stopped: "Stopped",
  stoppedAbout: "The query was ended before it had an answer.",
  failed: "The query did not run",
  hasProblem: "The query has a problem",
};

export const builder = {
  close: "Close the builder",
  clear: "Clear",
  find: "Find a node",
  findExample: "Systolic, diagnosis …",
  nodes: "Nodes",
  cleared: "The query is empty. A tick begins a new one.",
  back: "The former query is back.",
  noTemplates: "There are no templates here.",
  notFound: "No node is found.",
  repeated: "The change is repeated.",
  undone: "The change is undone.",
  needed: ({ label }: { label: string }) =>
    `The query needs “${label}” in another place, so it was not removed.`,
  empty: "The query is empty.",
  added: "A column is added.",
  removed: "A column is removed.",
  replaceTitle: "Replace the query?",
  replaceAbout: ({ label }: { label: string }) =>
    `“${label}” cannot be added to this query without changing what it means. A new query with this column can replace it. You can undo that.`,
  replaceYes: "Replace it",
  replaceNo: "Keep the query",
  replaced: "The query is replaced.",
  startTime: "Start time",
  composer: "Composer",
  time: "Time",
  codes: ({ count }: { count: number }) => t.counted(count, { one: "code", other: "codes" }),
};

export const explanation = {
  title: "The query explained",
  notReached: "Not reached: the query has a problem before this.",
  passedOver: "passed over: its node does not match",
  eachWorkedOut: "worked out for each",
  variable: "Variable",
  node: "Node",
  layouts: "Layouts",
  fragments: "Fragments",
  rowIsMadeOf: "A row is made of",
  rowTemplates: "Row templates",
  notRun: "It was not run: see the problems.",
  documents: "Documents",
  scanned: "Looked into",
  batches: "Batches",
  segments: "Segments",
  blobs: "Blobs",
  storedRows: "Stored rows",
  read: "Read",
  rows: "Rows",
  run: "Run",
  runAbout: ({ milliseconds }: { milliseconds: number }) =>
    `what it touched; with its explanation ${t.number(milliseconds, 1)} ms`,
  plan: "Plan",
  planAbout: "what is asked of the data, and how rows are made of it",
  queryAbout: "names resolved, parameters and value sets written in",
  syntax: "Syntax",
  syntaxAbout: "the tree as it was written",
  tokens: "Tokens",
  tokensAbout: ({ count }: { count: number }) => `${t.number(count)} words and signs`,
};
