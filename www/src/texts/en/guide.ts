// The texts of the guide view.
import { formats } from "../formats";

const t = /* @__PURE__ */ formats("en");

const cases = (count: number) => t.counted(count, { one: "case", other: "cases" });

export const guide = {
  one: "Guide",
  the: "The guide",
  whatToSee: "What to see of the guide",
  panes: {
    patient: "Patient",
    form: "Form",
    edit: "Edit",
    about: "About",
    tests: "Fixtures",
  },
  run: "Run guide",
  new: "New guide",
  form: "Form of the guide",
  open: "Open guides or fixtures…",
  orDrop: "or drop them here: .gdl, .gdl2.json, .yml, .zip",
  draft: "draft",
  openedHere: "opened here",
  nothingToRun: "Nothing to run",
  nothingToRunAbout:
    "There are no guides or no patients. Make sample patients in the Data view, or open a guide here.",
  ready: "Ready",
  readyAbout:
    "Choose a patient and run the guide: its rules read the record with AQL, and what they conclude appears here.",
  none: "No guide",
  noneAbout:
    "There is none in the repository. Open or write one here, or make sample patients in the Data view.",
  store: "Store in the repository",
  noInputs: "No inputs",
  noInputsAbout: "This guide reads nothing: its rules fire without data.",
  fill: "Fill in from the patient",
  runForm: "Run on the form",
  noForm: "No form",
  noFormAbout: "The text is not a guide yet. Its problems are listed under Edit.",
  notKept: "The draft is not kept over a reload: this browser has no room for it.",
  caseFilled: "The values of a case are filled in.",
  patientEmpty: ({ patient }: { patient: string }) => `${patient} has no values for this guide.`,
  patientFilled: ({ patient }: { patient: string }) => `The values of ${patient} are filled in.`,
  notChoices: ({ names }: { names: string }) => `Not among the choices: ${names}.`,
  notOpened: ({ reason }: { reason: string }) => `Not opened: ${reason}`,
  editHere: "Edit it here",
  thisForm: "this form",
  failed: "The guide did not run",
  // Steps that change the stored guides.
  notDone: ({ reason }: { reason: string }) => `Not done: ${reason}`,
  noId: "Not stored: the text has no id.",
  replaceTitle: ({ id }: { id: string }) => `Replace ${id}?`,
  replaceAbout: ({ destination }: { destination: string }) =>
    `Its stored text is replaced by this one, and later runs use this one. ${destination} You can undo it.`,
  replaceYes: "Replace",
  replaceNo: "Keep the stored one",
  storing: "Storing",
  takingBack: "Taking back",
  stored: ({ id }: { id: string }) => `${id} is stored.`,
  replaced: ({ id }: { id: string }) => `${id} is replaced.`,
  unstored: ({ id }: { id: string }) => `${id} is not stored any more. Its text is a draft.`,
  formerStored: ({ id }: { id: string }) =>
    `The former text of ${id} is stored again. The newer one is a draft.`,
  removeTitle: ({ id }: { id: string }) => `Remove ${id}?`,
  removeAbout: "It is not run any more. You can undo it.",
  removeAboutDraft: "It is not run any more. Your draft of it stays. You can undo it.",
  removeYes: "Remove",
  removeNo: "Keep it",
  removing: "Removing",
  storedAgain: ({ id }: { id: string }) => `${id} is stored again.`,
  removed: ({ id }: { id: string }) => `${id} is removed.`,
  draftBack: ({ id }: { id: string }) => `The draft of ${id} is back.`,
  draftDiscarded: ({ id }: { id: string }) => `The draft of ${id} is discarded.`,
  draftFollowed: ({ id }: { id: string }) =>
    `Another tab has changed the draft of ${id}. This tab shows the new text.`,
  draftRestored: ({ id }: { id: string }) => `The text that this tab had for ${id} is back.`,
};

export const guideForm = {
  unit: "unit",
  kind: "kind",
  denominator: "denominator",
  part: "part",
  kinds: ["ratio", "unitary", "percent", "fraction", "integer fraction"],
  time: "Time of evaluation",
  timeEmpty: "Empty: now",
  atLeast: ({ min }: { min: string }) => `at least ${min}`,
  moreThan: ({ min }: { min: string }) => `more than ${min}`,
  atMost: ({ max }: { max: string }) => `at most ${max}`,
  lessThan: ({ max }: { max: string }) => `less than ${max}`,
  both: ({ lower, upper }: { lower: string; upper: string }) => `${lower} and ${upper}`,
  range: ({ min, max }: { min: string; max: string }) => `${min} to ${max}`,
  outside: ({ ranges }: { ranges: string }) => `out of range: ${ranges}`,
};

export const guideAbout = {
  purpose: "Purpose",
  use: "Use",
  misuse: "Misuse",
  saveJson: "Save as GDL2 (JSON)",
  saveOdin: "Save as ODIN",
  noProblems: "No problems found",
  problems: ({ count }: { count: number }) => `Problems (${t.number(count)})`,
  bindings: "Bindings",
  rules: ({ count }: { count: number }) => `Rules (${t.number(count)}), by priority`,
  beforeAll: "Before all",
  first: "First",
  terms: ({ count }: { count: number }) => `Terms (${t.number(count)})`,
  makes: "makes",
  reads: "reads",
  both: "both",
  onlyWhere: "Only where",
  cards: ({ count }: { count: number }) => t.counted(count, { one: "card", other: "cards" }),
  when: "When",
  then: "Then",
};

export const guideEdit = {
  title: "The text of the guide",
  text: "Text of the guide",
  placeholder: "A guide in GDL2 (JSON) or GDL1 (ODIN)",
  fine: "No problems found.",
  bindings: "Bindings",
  rules: "Rules",
  terms: "Terms",
  saveVersion: "Save as new version",
  replace: "Replace…",
  remove: "Remove…",
  discard: "Discard the draft",
  download: "Download",
  outline: "Outline",
  none: "none",
  errors: ({ count }: { count: number }) => t.counted(count, { one: "error", other: "errors" }),
  warnings: ({ count }: { count: number }) =>
    t.counted(count, { one: "warning", other: "warnings" }),
};

export const guideOutcome = {
  says: ({ whom }: { whom: string }) => `What it says about ${whom}`,
  saysNothing: ({ whom }: { whom: string }) => `Nothing to say about ${whom}`,
  fired: ({ count, milliseconds }: { count: number; milliseconds: number }) =>
    `${t.counted(count, { one: "rule", other: "rules" })} fired · ${t.number(milliseconds, 1)} ms`,
  missing: "Not given:",
  noResult: "No rule set a result.",
  notComputed: "What could not be computed",
  before: "Before the rules, all of these must be true",
  setBefore: "Set before the rules",
  rules: "Rules, in the order of their evaluation",
  read: "What it read",
  asked: "What it asked the record",
  openQuery: "Open as query",
  query: "query",
  inPlace: ({ place }: { place: string }) => `in ${place}:`,
  ruleFired: "fired",
  ruleNotFired: "not fired",
  noConditions: "It has no conditions.",
  set: ({ values }: { values: string }) => `It set ${values}`,
  true: "true",
  false: "false",
  unknown: "unknown",
  nothingFound: "nothing found",
  found: ({ count }: { count: number }) => `${t.number(count)} found`,
  passing: ({ count, of }: { count: number; of: number }) =>
    `${t.number(count)} of ${t.number(of)} pass the predicates`,
  indicators: { info: "info", warning: "warning", critical: "critical" },
};

export const fixtures = {
  running: "The fixtures are being run …",
  none: "No fixtures yet",
  noneAbout:
    "Open or drop fixture files (.yml), also several with their guides. Each is run on the guide that it names, and what differs from its expected output is shown.",
  noGuide: ({ id }: { id: string }) =>
    `No guide ${id} is here. Open it, alone or with its fixtures.`,
  noGuideId: "The fixture names no guide. Open its guide, alone or with its fixtures.",
  runOn: ({ id }: { id: string }) => `Run it on ${id}`,
  failing: ({ count, of }: { count: number; of: number }) =>
    `${t.number(count)} of ${cases(of)} ${t.plural(count, { one: "fails", other: "fail" })}`,
  filesNotRun: ({ count }: { count: number }) =>
    `${t.counted(count, { one: "file", other: "files" })} not run`,
  allPass: "Every case passes",
  passing: ({ count, of }: { count: number; of: number }) =>
    `${t.number(count)} of ${cases(of)} pass`,
  close: "Close the fixtures",
  someFail: ({ count, of }: { count: number; of: number }) =>
    `${t.number(count)} of ${t.number(of)} fail`,
  pass: ({ count }: { count: number }) => `${t.number(count)} pass`,
  show: "Show the cases of",
  allGuides: ({ count }: { count: number }) => `All ${t.number(count)} guides`,
  more: ({ count }: { count: number }) => `Show more of ${cases(count)}`,
  result: "Result",
  case: "Case",
  differences: "Differences",
  form: "Form",
  passed: "passed",
  failed: "failed",
  at: ({ file, line }: { file: string; line: number }) => `${file}, line ${t.number(line)}`,
  use: "Use as form",
  useCase: ({ id }: { id: string }) => `Use as form: ${id}`,
  notRun: ({ file }: { file: string }) => `${file}: not run`,
  nothing: "nothing",
  input: "Input",
  expected: "Expected",
  fired: "Rules fired",
  notKept: "The fixtures are not kept over a reload: this browser has no room for them.",
};
