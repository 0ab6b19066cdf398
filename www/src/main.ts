// The page: it draws and listens, and calls the engine for everything else.
import { setDiagnostics } from "@codemirror/lint";
import { Builder } from "./builder";
import { byId, copy, debounced, h, quoted } from "./dom";
import { DataPanel } from "./data";
import { Editor, fixName } from "./editor";
import { Engine, EngineError } from "./engine";
import { GuideView } from "./guide";
import { History } from "./history";
import { examples, type Example } from "./examples";
import { firstQuery, keepFirstQuery, linked } from "./first-query";
import type { Contents, Diagnostic, PageStart } from "./protocol";
import { readLabels, setLabels } from "./labels";
import { prepareOffline } from "./offline";
import { PatientView } from "./patients";
import { Queries } from "./queries";
import { remember } from "./remember";
import { ResultView, type ParameterizedQuery } from "./results";
import { SourceChoice } from "./source";
import { TemplateView } from "./templates";
import { Views } from "./views";
import { describeProgress } from "./work";
import { texts } from "./texts";
import { languageOf, reasonOf } from "./fault";
import { confirmed } from "./confirm";
import { reloadWith, resumed } from "./resume";
import { listenLanguage, loadTexts } from "./translate";

declare const WORKER_URL: string;

const ISSUES = "https://github.com/aqlite/aqlite/issues/new";
const apple = /Mac|iP(hone|ad)/.test(navigator.platform);

/** The number of rows to which a server limits a result by default. */
const PAGE = 10_000;
await loadTexts();

/** The state before a change of the language; `null` after an ordinary load. */
const before = resumed();
let problems: Diagnostic[] = [];
/** Whether a server is the source of answers, not this browser. */
let elsewhere = false;

const engine = new Engine(WORKER_URL, {
  crashed,
  starting: (progress) => state("busy", describeProgress(progress)),
  changed,
});
const results = new ResultView({
  call: () => ({
    base: source.base,
    q: editor.text,
    parameters: parameters(),
    local: source.isLocal,
  }),
  document: (asked) => engine.call("document", asked),
  documents: (asked) => engine.call("documents", asked),
  withEhrs: (asked) => engine.call("withEhrs", asked),
  page: (asked, from) => void run({ asked, from }),
  explain: (asked) => engine.call("explain", asked),
  show: (place) => editor.show(place),
});
readLabels(
  (ehrs) => engine.call("patientsOf", { ehrs }),
  () => results.relabel(),
);
const history = new History((q, values) => {
  editor.text = q;
  enterValues(values);
  void run();
});
const guide = new GuideView(byId("view-guide"), engine, { ask: askHere, change });
const templateView = new TemplateView(byId("view-templates"), engine, {
  ask: askHere,
  change,
});
const patientView = new PatientView(byId("view-patients"), engine);
const data = new DataPanel(byId("view-data"), engine, change);
const source = new SourceChoice(engine, {
  change: (connect) => {
    byId("notice").hidden = true;
    return change(texts.frame.connecting, connect);
  },
  connected: ({ place, identity }) => {
    elsewhere = place !== null;
    renewResult(identity);
  },
  failed: notify,
});
const keepSoon = debounced(400, keepQuery);
const syncSoon = debounced(0, () => builder.sync());
const editor = new Editor(byId("editor"), firstQuery() ?? "", {
  texts: texts.editor,
  run: () => void run(),
  format: () => void format(),
  diagnose: (q) => engine.call("diagnose", { q }),
  complete: (q, offset) => engine.call("complete", { q, offset }),
  hover: (q, offset) => engine.call("hover", { q, offset }),
  changed: () => {
    keepSoon();
    leaveLink();
    markExample();
    drawParameters();
    results.compare();
    syncSoon();
  },
  showDiagnostics: showProblems,
});
const builder = new Builder(engine, editor);
const queries = new Queries(editor, { values: parameterTexts, shown: showQuery });
const views = new Views({
  opened: (name) => (patientView.open = name === "patients"),
  focusQuery: () => editor.view.focus(),
  focusResult: () => results.focus(),
});

/** The prefix of the names of parameter values in a link. */
const VALUE = "value.";

function link(): string {
  const values = Object.entries(chosenValues()).map(([name, text]) => [VALUE + name, text]);
  const form = results.form === "table" ? {} : { as: results.form };
  const settings = { q: editor.text, ...form, ...Object.fromEntries(values) };
  return `${location.href.replace(/#.*/, "")}#${new URLSearchParams(settings)}`;
}

/** Returns the values of parameters in a link. */
function linkedValues(): Record<string, string> {
  const named = [...linked()].filter(([name]) => name.startsWith(VALUE));
  return Object.fromEntries(named.map(([name, text]) => [name.slice(VALUE.length), text]));
}

/** Returns the values of parameters for links and saved queries, if the user chose to keep them. */
function chosenValues(): Record<string, string> {
  if (!byId<HTMLInputElement>("keep-values").checked) return {};
  const filled = Object.entries(parameterTexts()).filter(([, text]) => text.trim() !== "");
  return Object.fromEntries(filled);
}

/** Writes values into the fields of the parameters. */
function enterValues(values: Record<string, string>): void {
  for (const input of byId("parameters").querySelectorAll("input"))
    input.value = values[input.name] ?? input.value;
  results.compare();
}

/** Draws parameters and result after the choice of another tab, and runs its query again if needed. */
function showQuery(values: Record<string, string>, hasRun: boolean): void {
  // An answer to a query of the former tab may still arrive. The new number makes the page ignore it.
  runs += 1;
  byId("stop").hidden = true;
  results.busy = false;
  byId("parameters").replaceChildren();
  formerValues = {};
  drawParameters(values);
  showProblems([]);
  leaveLink();
  markExample();
  builder.renew();
  editor.check();
  if (hasRun) void run();
  else results.instead(words(texts.query.notRun, texts.query.notRunAbout));
}

/** Stores the queries for the next load of this tab of the browser. */
function keepQuery(): void {
  keepFirstQuery(editor.text);
  queries.keep();
}

/** Removes the fragment of a link once the query has changed. */
function leaveLink(): void {
  const q = linked().get("q");
  if (q !== null && q !== editor.text)
    window.history.replaceState(null, "", location.pathname + location.search);
}

// --- state of the engine

function state(kind: "busy" | "ready" | "bad", text: string, more = ""): void {
  byId("state").dataset["state"] = kind;
  byId("state-text").replaceChildren(text, h("span", { class: "state-more" }, more));
}

/** Shows an error above everything else. */
function notify(title: string, why: string, ...actions: HTMLElement[]): void {
  const notice = byId("notice");
  notice.hidden = false;
  notice.classList.remove("news");
  const closed = () => {
    notice.hidden = true;
    // The pressed button is removed, so the focus moves to the control below the notice.
    byId("source").focus();
  };
  const close = h("button", { type: "button", onclick: closed }, texts.frame.close);
  notice.replaceChildren(
    h("p", {}, h("strong", {}, title), " ", why),
    h("p", { class: "actions" }, ...actions, close),
  );
}

function crashed(why: string): void {
  const report = h(
    "a",
    {
      href: `${ISSUES}?title=${encodeURIComponent(`Playground: ${why}`)}`,
      target: "_blank",
      rel: "noopener",
    },
    texts.frame.report,
  );
  notify(texts.frame.crashed, `${texts.frame.crashedAbout} ${why}`, report);
  void refresh();
}

/** The end of the last change of the data. Changes run one after another, each until it is drawn. */
let last: Promise<unknown> = Promise.resolve();
/** The number of running and waiting changes. */
let changes = 0;
/** The number of the latest reading of the data. Earlier ones are not drawn any more. */
let readings = 0;
/** The identity of the data that are drawn, see `Contents`. `null` before the first. */
let drawn: string | null = null;

/**
 * Changes the data after all earlier changes, and draws them. The page shows "busy" until then.
 */
function change<T>(what: string, run: () => Promise<T>): Promise<T> {
  changes += 1;
  results.held = true;
  state("busy", what);
  const done = last.then(() => {
    state("busy", what);
    return run();
  });
  last = done
    .then(
      () => undefined,
      () => undefined,
    )
    .then(() => {
      changes -= 1;
      return refresh();
    });
  return done;
}

/** Whether another tab or the Service Worker wrote data that are not drawn yet. */
let stale = false;

function changed(): void {
  stale = true;
  catchUp();
}

/** Draws the writes of other realms: once for several writes, and only while the page is visible. */
function catchUp(): void {
  if (!document.hidden) last = last.then(() => (stale && !elsewhere ? refresh() : undefined));
}

/** Reads the content of the repository and draws it. */
async function refresh(): Promise<void> {
  const reading = (readings += 1);
  stale = false;
  state("busy", texts.frame.loading);
  try {
    const contents = await engine.call("contents", null);
    const [templates, patients] = await Promise.all([
      engine.call("templates", null),
      engine.call("patients", null),
    ]);
    if (reading !== readings) return;
    elsewhere = contents.place !== null;
    keepData(contents);
    setLabels(patients);
    results.relabel();
    renewResult(contents.identity);
    await Promise.all([
      builder.load(contents, templates),
      data.show(contents, templates, patients),
      guide.load(contents, patients),
      templateView.load(contents, templates, patients),
      patientView.load(contents, patients),
    ]);
    if (reading !== readings || changes > 0) return;
    results.held = false;
    state(
      "ready",
      texts.frame.counts({ count: contents.ehrs }),
      ` · ${texts.frame.documents({ count: contents.compositions })}`,
    );
  } catch (error) {
    if (reading === readings) unreadable(error);
  }
}

/** The least number of own writes of each data set that was drawn. */
const writesBefore = new Map<string, number>();
let isStorageNamed = false;

/**
 * Asks the browser once to keep the data after an own write, or shows a notice if they are in memory
 * only.
 */
function keepData({ set, isKept, added }: Contents): void {
  if (set === null) return;
  const before = Math.min(writesBefore.get(set.id) ?? added, added);
  writesBefore.set(set.id, before);
  if (isStorageNamed || (isKept && added === before)) return;
  isStorageNamed = true;
  if (isKept) void navigator.storage.persist().catch(() => false);
  else notify(texts.frame.notKept, texts.frame.notKeptAbout);
}

/** Shows that the content of the source could not be read. */
function unreadable(error: unknown): void {
  state("bad", error instanceof Error ? error.message : texts.frame.notAvailable);
  data.unknown(source.place);
  // The result stays only if the same server returned it. In this browser, the user may have switched
  // to another data set since.
  if (results.identity !== null && results.identity !== source.place)
    results.instead(words(texts.query.noResult, texts.query.noResultAbout));
  results.held = false;
}

/** Repeats the query when the data were exchanged, unless the user is writing another query. */
function renewResult(identity: string): void {
  const stale =
    results.identity === null
      ? drawn !== null && drawn !== identity
      : results.identity !== identity;
  drawn = identity;
  if (!stale) return;
  const untouched = results.asked === null || results.asked === editor.text;
  results.instead(words(texts.query.otherData, texts.query.otherDataAbout));
  if (untouched) void run();
}

// --- query

/** Returns the names behind `$` in a query, except in its strings and comments. */
function parameterNames(q: string): string[] {
  const bare = q.replaceAll(/'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|--.*/g, "");
  return [...new Set([...bare.matchAll(/\$(\w+)/g)].map((found) => found[1] ?? ""))];
}

/** The values of parameters that the text named before, for when it names them again. */
let formerValues: Record<string, string> = {};

/** Draws a field for each parameter. The values of present fields are kept unless new ones are passed. */
function drawParameters(values = parameterTexts()): void {
  const box = byId("parameters");
  const names = parameterNames(editor.text);
  const shown = [...box.querySelectorAll("input")].map((input) => input.name);
  box.hidden = names.length === 0;
  byId("with-values").hidden = box.hidden;
  if (names.join() === shown.join()) return;
  formerValues = { ...formerValues, ...parameterTexts() };
  box.replaceChildren(
    ...names.map((name) =>
      h(
        "label",
        { class: "parameter" },
        h("span", {}, `$${name}`),
        h("input", {
          name,
          value: values[name] ?? formerValues[name] ?? "",
          autocomplete: "off",
          spellcheck: "false",
          placeholder: texts.query.value,
        }),
      ),
    ),
  );
}

function parameterTexts(): Record<string, string> {
  return Object.fromEntries(
    [...byId("parameters").querySelectorAll("input")].map((input) => [input.name, input.value]),
  );
}

/**
 * Returns the values of the fields. Quoted texts, lists, true and false are read as JSON. Any other
 * text gets the type of the other operand of its comparison. The parameter of an empty field stays
 * unbound.
 */
function parameters(): Record<string, unknown> {
  const filled = Object.entries(parameterTexts()).filter(([, text]) => text.trim() !== "");
  return Object.fromEntries(filled.map(([name, text]) => [name, parameterValue(text)]));
}

function parameterValue(text: string): unknown {
  try {
    const value = JSON.parse(text) as unknown;
    if (typeof value !== "number") return value;
  } catch {
    // A bare text, such as a date.
  }
  return { text: text.trim() };
}

/** Runs a query of another view in the query view, and moves the focus to its result. */
function askHere(q: string, values: Record<string, string> = {}): void {
  views.open("query");
  editor.text = q;
  enterValues(values);
  byId("result").focus({ preventScroll: true });
  void run();
}

/** The number of the latest run. Answers to earlier runs are ignored. */
let runs = 0;

/** The time in milliseconds between two readings of the clock of a running query. */
const TICK = 100;

/** Runs the query of the editor, or reads a further page of the displayed result. */
async function run(page?: { asked: ParameterizedQuery; from: PageStart }): Promise<void> {
  const mine = (runs += 1);
  const stop = byId("stop");
  const slow = setTimeout(() => (stop.hidden = mine !== runs), 300);
  const start = performance.now();
  const clock = setInterval(() => {
    if (mine === runs) results.elapsed(performance.now() - start);
  }, TICK);
  results.busy = true;
  queries.ran();
  clearStaleProblems();
  const show = await answered(
    page?.asked ?? { q: editor.text, parameters: parameters() },
    page?.from ?? null,
  );
  clearTimeout(slow);
  clearInterval(clock);
  if (mine !== runs) return;
  stop.hidden = true;
  results.busy = false;
  show();
  // The data were replaced during the run, or a source that did not answer before has answered now.
  const isAway = byId("state").dataset["state"] === "bad";
  if (
    changes === 0 &&
    results.identity !== null &&
    drawn !== null &&
    (results.identity !== drawn || isAway)
  )
    last = last.then(refresh);
}

/** Runs a query. Returns the function that shows its answer or error. */
async function answered(asked: ParameterizedQuery, from: PageStart | null): Promise<() => void> {
  const { q } = asked;
  if (q.trim() === "")
    return () => results.instead(words(texts.query.nothingToRun, texts.query.nothingToRunAbout));
  const start = performance.now();
  try {
    const answer = await engine.call("query", { ...asked, from });
    // The answer to a query that was asked early may be here before the page asks.
    const total = Math.max(performance.now() - start, answer.milliseconds);
    // Some servers do not report that they cut a result. If it has exactly the default number of
    // rows, the page warns that there may be more.
    const cut =
      answer.next === null &&
      (answer.more || (elsewhere && answer.rows === PAGE && !/\blimit\b/i.test(q)));
    return () => {
      results.answer(asked, answer, total, cut ? texts.query.cut : "");
      if (!examples.some((example) => example.q === q)) history.ran(q);
    };
  } catch (error) {
    return () => failed(error);
  }
}

function failed(error: unknown): void {
  if (error instanceof EngineError && error.fault?.key === "stopped") {
    results.instead(words(texts.query.stopped, texts.query.stoppedAbout));
    void refresh();
    return;
  }
  if (!(error instanceof EngineError) || error.diagnostics.length === 0) {
    results.instead(words(texts.query.failed, reasonOf(error), true, languageOf(error)));
    return;
  }
  editor.check();
  const list = h("ul", { class: "problem-list" }, ...error.diagnostics.map(drawProblem));
  results.instead(h("div", { class: "empty bad" }, h("h3", {}, texts.query.hasProblem), list));
}

/** Returns a message. `language` is that of `about` if it is not that of the page. */
function words(
  title: string,
  about: string,
  bad = false,
  language: string | null = null,
): HTMLElement {
  const described = h("p", { lang: language }, about);
  return h("div", { class: `empty${bad ? " bad" : ""}` }, h("h3", {}, title), described);
}

function place({ from }: Diagnostic): string {
  const before = editor.text.slice(0, from).split("\n");
  const column = (before.at(-1)?.length ?? 0) + 1;
  return texts.frame.place({ line: before.length, column });
}

function helpLine(help: string): HTMLElement {
  const remedy = h("span", { lang: "en" }, ...quoted(help));
  return h("span", { class: "help-line" }, texts.editor.help, " ", remedy);
}

function drawProblem(problem: Diagnostic): HTMLElement {
  return h(
    "li",
    {},
    h(
      "button",
      { type: "button", class: "link", onclick: () => editor.show(problem) },
      place(problem),
    ),
    h("span", { lang: "en" }, ...quoted(problem.message), " ", h("small", {}, problem.code)),
    problem.help ? helpLine(problem.help) : null,
    ...fixButton(problem),
  );
}

/** The query text to which the displayed problems belong. */
let checked = "";

/**
 * Removes the problems of an earlier text. The worker answers one call after another, so it checks
 * the present text only after the running query.
 */
function clearStaleProblems(): void {
  if (checked === editor.text) return;
  editor.view.dispatch(setDiagnostics(editor.view.state, []));
  showProblems([]);
}

function showProblems(found: Diagnostic[]): void {
  checked = editor.text;
  problems = found;
  const box = byId("problems");
  const first = found[0];
  if (!first) {
    box.replaceChildren();
    return;
  }
  const more = found.length > 1 ? ` ${texts.frame.more({ count: found.length - 1 })}` : "";
  const message = h("span", { lang: "en" }, ...quoted(first.message));
  const children = [`${place(first)}: `, message, more];
  box.replaceChildren(
    h(
      "button",
      {
        type: "button",
        class: `link ${first.severity}`,
        onclick: () => editor.show(problems[0] ?? first),
      },
      ...children,
    ),
    ...fixButton(first),
  );
}

/** Returns the button that applies the change of a problem of the present query, if it has one. */
function fixButton(problem: Diagnostic): HTMLElement[] {
  const q = editor.text;
  const apply = () => editor.fix(problem, q);
  const button = () =>
    h("button", { type: "button", class: "fix", onclick: apply }, fixName(problem, texts.editor));
  return problem.fix ? [button()] : [];
}

async function format(): Promise<void> {
  const q = editor.text;
  try {
    const formatted = await engine.call("format", { q });
    // The user may have changed the text since the problem was drawn. Such a text stays.
    if (q === editor.text && formatted !== q) editor.text = formatted;
  } catch {
    editor.check();
  }
}

// --- examples

/** Returns title and purpose of an example in the language of the page. */
function exampleTexts({ title, about }: Example): { title: string; about: string } {
  return texts.query.exampleTexts[title] ?? { title, about };
}

function drawExamples(): void {
  byId("examples").replaceChildren(
    ...examples.map((example) =>
      h(
        "li",
        {},
        h(
          "button",
          { type: "button", class: "example", onclick: () => void choose(example) },
          h("strong", {}, exampleTexts(example).title),
          h("small", {}, exampleTexts(example).about),
        ),
      ),
    ),
  );
  markExample();
}

function markExample(): void {
  const buttons = byId("examples").querySelectorAll("button");
  examples.forEach(({ q }, at) => {
    if (q === editor.text) buttons[at]?.setAttribute("aria-current", "true");
    else buttons[at]?.removeAttribute("aria-current");
  });
}

async function choose(example: Example): Promise<void> {
  editor.text = example.q;
  enterValues(example.parameters);
  await run();
}

// --- the frame

function drawTheme(): void {
  const chosen = document.documentElement.dataset["theme"];
  const { themeLight, themeDark, themeSystem } = texts.frame;
  const label = chosen === "light" ? themeLight : chosen === "dark" ? themeDark : themeSystem;
  byId("theme").setAttribute("aria-label", label);
}

/** Reads a name and saves the query under it. */
function listenSave(): void {
  const dialog = byId<HTMLDialogElement>("naming");
  const name = byId<HTMLInputElement>("naming-name");
  const warning = byId("naming-taken");
  name.addEventListener("input", () => {
    warning.hidden = !history.has(name.value.trim());
  });
  byId("keep").addEventListener("click", () => dialog.showModal());
  byId("naming-cancel").addEventListener("click", () => dialog.close());
  byId("naming-form").addEventListener("submit", () => {
    history.save(name.value.trim(), editor.text, chosenValues());
    byId<HTMLDetailsElement>("saved").open = true;
    name.value = "";
    warning.hidden = true;
  });
}

function nextTheme(): void {
  const order = [undefined, "light", "dark"];
  const next = order[(order.indexOf(document.documentElement.dataset["theme"]) + 1) % order.length];
  if (next) document.documentElement.dataset["theme"] = next;
  else delete document.documentElement.dataset["theme"];
  remember("localStorage", "aqlite-theme", next ?? "");
  drawTheme();
  results.redraw();
}

function drawKeys(): void {
  const { keys } = texts.frame;
  const mod = apple ? "⌘" : keys.control;
  const rows: [string[], string][] = [
    [[mod, "↵"], keys.run],
    [[keys.shift, keys.alt, "F"], keys.format],
    [[apple ? "⌃" : keys.control, keys.space], keys.complete],
    [[mod, "/"], keys.comment],
    [[mod, "F"], keys.search],
    [["F8"], keys.problem],
    [[keys.tab], keys.accept],
    [[keys.arrows, keys.page, keys.home, keys.end], keys.move],
    [[keys.enter], keys.open],
    [[keys.shift, "←", "→"], keys.width],
    [[keys.escape], keys.shut],
    [["F2", keys.delete], keys.rename],
    [[keys.space], keys.tick],
    [["↵"], keys.insert],
    [["←", "→"], keys.points],
    [[mod, "C"], keys.copy],
    [["?"], keys.list],
  ];
  byId("keys-list").replaceChildren(
    ...rows.map(([pressed, what]) =>
      h("div", {}, h("dt", {}, ...pressed.map((key) => h("kbd", {}, key))), h("dd", {}, what)),
    ),
  );
  byId("run-key").textContent = `${mod} ↵`;
}

/** Shows the list of keys from its beginning. The button at its end would get the focus otherwise. */
function showKeys(): void {
  byId<HTMLDialogElement>("keys").showModal();
  byId("keys-title").focus();
}

/** Loads the page again in the chosen language. Queries, view and source stay. */
function changeLanguage(): void {
  keepQuery();
  reloadWith({
    form: results.form,
    values: parameterTexts(),
    keepsValues: byId<HTMLInputElement>("keep-values").checked,
  });
}

/** Asks before the values of forms are lost. */
function allowReload(): Promise<boolean> {
  if (!isFormTyped) return Promise.resolve(true);
  const { switchTitle: title, switchAbout: about, switchYes: yes, switchNo: no } = texts.frame;
  return confirmed({ title, about, yes, no });
}

/** Whether values were typed into the form of a template or of a guide. */
let isFormTyped = false;

function listenForms(): void {
  byId("parameters").addEventListener("input", () => results.compare());
  for (const id of ["template-form", "guide-form"])
    byId(id).addEventListener("input", () => (isFormTyped = true));
}

function listen(): void {
  byId("run").addEventListener("click", () => void run());
  byId("stop").addEventListener("click", () => engine.stop());
  byId("format").addEventListener("click", () => void format());
  const share = byId<HTMLButtonElement>("share");
  share.addEventListener("click", () => void copy(share, link()));
  listenSave();
  byId("theme").addEventListener("click", nextTheme);
  listenForms();
  listenLanguage(byId<HTMLSelectElement>("language"), allowReload, changeLanguage);
  byId("help").addEventListener("click", () => showKeys());
  addEventListener("keydown", (event) => {
    const typing = (event.composedPath()[0] as HTMLElement).closest?.(
      "input, select, textarea, [contenteditable]",
    );
    if (event.key === "?" && !typing) showKeys();
    if (
      event.key === "Enter" &&
      (event.ctrlKey || event.metaKey) &&
      views.current === "query" &&
      !event.defaultPrevented
    )
      void run();
  });
  addEventListener("pagehide", keepQuery);
  document.addEventListener("visibilitychange", catchUp);
  addEventListener("hashchange", () => {
    const q = linked().get("q");
    if (q === null) return;
    const [form, values] = [linked().get("as") ?? "table", linkedValues()];
    views.open("query");
    queries.follow(q, values);
    results.form = form;
    byId("result").focus({ preventScroll: true });
    void run();
  });
}

async function start(): Promise<void> {
  listen();
  drawKeys();
  drawTheme();
  drawParameters(before?.values ?? linkedValues());
  drawExamples();
  results.form = before?.form ?? linked().get("as");
  byId<HTMLInputElement>("keep-values").checked = before?.keepsValues ?? false;
  views.resume(linked().has("q"));
  await source.resume();
  byId("history").replaceWith(history.element);
  const [first] = examples;
  const answer = editor.text.trim() === "" && first ? choose(first) : run();
  last = answer.then(refresh);
  await last;
  // The Service Worker is registered after the first answer, which the download of the cached files
  // would delay.
  await prepareOffline(byId("offline"), byId("notice"));
}

start().catch((error: unknown) => {
  state("bad", texts.frame.notStarted);
  failed(error);
});
