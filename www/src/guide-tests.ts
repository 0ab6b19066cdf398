// Fixtures of guides. Each fixture names its guide by id. All cases run, and are shown in one table.
import { h } from "./dom";
import { EngineError } from "./engine";
import { drawProblems } from "./guide-about";
import { BLANK } from "./guide-blank";
import type { GuideProblem, TestedGuide } from "./guide-text";
import { texts } from "./texts";
import { reasonOf } from "./fault";
import { storeFixtures, storedFixtures, type FixtureFile } from "./guide-drafts";

/** The maximum number of cases that are drawn at once. */
const DRAWN = 200;

/** The functions of the view that the pane calls. */
export interface FixtureHost {
  /** Returns the id and the text of a guide; `null` if there is none with this id. */
  guide(id: string): Promise<{ id: string; text: string } | null>;
  /** The id of the selected guide; empty for none. */
  selected(): string;
  /** Runs a fixture on the text of a guide. */
  test(text: string, fixture: string): Promise<TestedGuide>;
  /** Shows the form of a guide with these values, at a time of evaluation. */
  use(id: string, literals: [string, string][], now: string | null): void;
}

/** A fixture file with the outcome of its run. */
interface Report {
  file: FixtureFile;
  /** The id of its guide; empty if there is none. */
  guide: string;
  cases: TestedGuide["cases"];
  problems: GuideProblem[];
  /** The reason why it was not run. */
  failure: HTMLElement | null;
}

/** A case of the table. */
interface Line {
  report: Report;
  one: TestedGuide["cases"][number];
}

/** Returns the time of evaluation that a fixture fixes. */
function timeOf(fixture: string): string | null {
  return /^current_datetime:\s*["']?([^\s"'#]+)/m.exec(fixture)?.[1] ?? null;
}

/** The pane of fixtures. */
export class Fixtures {
  readonly element = h("div", { id: "guide-tests", class: "outcome" });
  readonly #host: FixtureHost;
  #files: FixtureFile[] = [];
  /** The source whose fixtures are shown; `undefined` before the first. */
  #place: string | null | undefined;
  /** Whether the files survive a reload. */
  #isKept = true;
  #reports: Report[] = [];
  /** Counts the started and cancelled runs. Only the latest is shown. */
  #runs = 0;
  /** The guide whose cases are shown; empty for all. */
  #only = "";
  #drawn = DRAWN;

  constructor(host: FixtureHost) {
    this.#host = host;
    this.#draw();
  }

  /** Reads the fixtures of a source: the address of a server, or `null` for this browser. */
  open(place: string | null): void {
    if (place === this.#place) return;
    this.#place = place;
    this.#runs += 1;
    [this.#files, this.#reports] = [storedFixtures(place), []];
    [this.#only, this.#drawn, this.#isKept] = ["", DRAWN, true];
    this.#draw();
  }

  /** Shows the pane, and runs the fixtures that were not run yet. */
  async show(): Promise<void> {
    if (this.#files.some((file) => !this.#reports.some((report) => report.file === file)))
      await this.#run((report) => !report);
  }

  #keep(): void {
    this.#isKept = storeFixtures(this.#place ?? null, this.#files);
  }

  /** Reads the files again before a change, because another tab may have added or closed some. */
  #read(): void {
    if (!this.#isKept) return;
    const same = (one: FixtureFile) =>
      this.#files.find(({ name, text }) => name === one.name && text === one.text) ?? one;
    this.#files = storedFixtures(this.#place ?? null).map(same);
  }

  /** Adds fixture files and runs all. A file replaces an earlier file of the same name. */
  async run(files: FixtureFile[]): Promise<void> {
    this.#read();
    const names = new Set(files.map(({ name }) => name));
    this.#files = [...this.#files.filter(({ name }) => !names.has(name)), ...files];
    [this.#only, this.#drawn] = ["", DRAWN];
    this.#keep();
    await this.#run(() => true);
  }

  /** Runs the fixtures of guides again whose texts have changed, and those that were not run. */
  async changed(guides: string[]): Promise<void> {
    if (this.#files.length === 0) return;
    await this.#run((report) => !report || !!report.failure || guides.includes(report.guide));
  }

  /** Runs the files without a report, and those whose guide has changed since their report. */
  async #run(stale: (report: Report | undefined) => boolean): Promise<void> {
    const mine = (this.#runs += 1);
    const former = new Map(this.#reports.map((report) => [report.file, report]));
    const reports: Report[] = [];
    for (const file of this.#files) {
      const known = former.get(file);
      reports.push(known && !stale(known) ? known : await this.#report(file));
      if (mine !== this.#runs) return;
    }
    this.#reports = reports;
    this.#draw();
  }

  async #report(file: FixtureFile): Promise<Report> {
    const report: Report = { file, guide: "", cases: [], problems: [], failure: null };
    try {
      const id = file.instead ?? (await this.#host.test(BLANK, file.text)).guide_id;
      const guide = await this.#host.guide(id);
      if (!guide) return { ...report, failure: this.#missing(file, id) };
      report.guide = guide.id;
      const { cases, problems } = await this.#host.test(guide.text, file.text);
      return { ...report, cases, problems };
    } catch (error) {
      const problems = error instanceof EngineError ? (error.diagnostics as GuideProblem[]) : [];
      const why = h("p", {}, reasonOf(error));
      return { ...report, failure: problems.length > 0 ? drawProblems(problems) : why };
    }
  }

  /** Draws the reason why a fixture has no guide, and the remedy. */
  #missing(file: FixtureFile, id: string): HTMLElement {
    const selected = this.#host.selected();
    const instead = () => {
      this.#read();
      file.instead = selected;
      this.#keep();
      void this.#run((report) => report?.file === file);
    };
    return h(
      "div",
      {},
      h("p", {}, id ? texts.fixtures.noGuide({ id }) : texts.fixtures.noGuideId),
      selected
        ? h("button", { type: "button", onclick: instead }, texts.fixtures.runOn({ id: selected }))
        : null,
    );
  }

  #draw(): void {
    if (this.#files.length === 0) {
      const about = texts.fixtures.noneAbout;
      this.element.replaceChildren(
        h("div", { class: "empty" }, h("h2", {}, texts.fixtures.none), h("p", {}, about)),
      );
      return;
    }
    if (this.#reports.length === 0) {
      this.element.replaceChildren(h("p", { class: "quiet" }, texts.fixtures.running));
      return;
    }
    const shown = this.#reports.filter(({ guide }) => this.#only === "" || guide === this.#only);
    const lines = shown
      .flatMap((report) => report.cases.map((one): Line => ({ report, one })))
      .sort((a, b) => Number(a.one.passed) - Number(b.one.passed));
    this.element.replaceChildren(
      this.#drawSummary(lines, shown),
      ...(this.#isKept ? [] : [h("p", { class: "bad" }, texts.fixtures.notKept)]),
      ...this.#reports.filter(({ failure }) => failure).map(drawFailure),
      ...(lines.length > 0 ? [this.#drawTable(lines)] : []),
      ...(lines.length > this.#drawn ? [this.#drawMore(lines.length)] : []),
      ...shown.filter(({ problems }) => problems.length > 0).map(drawLint),
    );
  }

  #drawSummary(lines: Line[], shown: Report[]): HTMLElement {
    const passed = lines.filter(({ one }) => one.passed).length;
    const broken = shown.filter(({ failure }) => failure).length;
    const [failed, all] = [lines.length - passed, lines.length];
    const title =
      failed > 0
        ? texts.fixtures.failing({ count: failed, of: all })
        : broken > 0
          ? texts.fixtures.filesNotRun({ count: broken })
          : texts.fixtures.allPass;
    return h(
      "div",
      { class: "bar" },
      h("h2", {}, title),
      h(
        "p",
        { class: "summary", role: "status" },
        texts.fixtures.passing({ count: passed, of: all }),
      ),
      this.#drawFilter(),
      h(
        "button",
        { type: "button", id: "guide-tests-clear", onclick: () => this.#clear() },
        texts.fixtures.close,
      ),
    );
  }

  #clear(): void {
    this.#runs += 1;
    const closed = new Set(this.#files.map(({ name }) => name));
    this.#read();
    // Files that another tab has opened meanwhile stay.
    this.#files = this.#files.filter(({ name }) => !closed.has(name));
    this.#keep();
    [this.#files, this.#reports] = [[], []];
    this.#draw();
  }

  /** Draws the choice of a guide with its number of failures, if there are several. */
  #drawFilter(): HTMLElement | null {
    const guides = [...new Set(this.#reports.map(({ guide }) => guide))].filter(Boolean).sort();
    if (guides.length < 2) return null;
    const option = (id: string) => {
      const cases = this.#reports.flatMap(({ guide, cases }) => (guide === id ? cases : []));
      const failed = cases.filter(({ passed }) => !passed).length;
      const words =
        failed > 0
          ? texts.fixtures.someFail({ count: failed, of: cases.length })
          : texts.fixtures.pass({ count: cases.length });
      return h("option", { value: id, selected: id === this.#only }, `${id} (${words})`);
    };
    const select = h(
      "select",
      { id: "guide-tests-only", class: "menu", "aria-label": texts.fixtures.show },
      h("option", { value: "" }, texts.fixtures.allGuides({ count: guides.length })),
      ...guides.map(option),
    );
    select.addEventListener("change", () => {
      [this.#only, this.#drawn] = [select.value, DRAWN];
      this.#draw();
      this.element.querySelector<HTMLElement>("#guide-tests-only")?.focus();
    });
    return select;
  }

  #drawMore(all: number): HTMLElement {
    const more = () => {
      this.#drawn += 10 * DRAWN;
      this.#draw();
    };
    return h(
      "button",
      { type: "button", class: "more", onclick: more },
      texts.fixtures.more({ count: all }),
    );
  }

  #drawTable(lines: Line[]): HTMLElement {
    const heads = [
      texts.fixtures.result,
      texts.guide.one,
      texts.fixtures.case,
      texts.fixtures.differences,
      texts.fixtures.form,
    ];
    return h(
      "table",
      { class: "cases" },
      h("thead", {}, h("tr", {}, ...heads.map((head) => h("th", { scope: "col" }, head)))),
      h("tbody", {}, ...lines.slice(0, this.#drawn).map((line) => this.#drawCase(line))),
    );
  }

  #drawCase({ report: { guide, file }, one }: Line): HTMLElement {
    const { id, line, passed, differences, input } = one;
    const use = () => this.#host.use(guide, input, timeOf(file.text));
    const differ = differences.map((difference) => h("li", {}, difference));
    return h(
      "tr",
      { class: passed ? "passed" : "failed" },
      h(
        "td",
        {},
        h(
          "span",
          { class: passed ? "mark fired" : "mark failed" },
          passed ? texts.fixtures.passed : texts.fixtures.failed,
        ),
      ),
      h("td", { class: "case-guide" }, guide),
      h(
        "td",
        {},
        h(
          "details",
          {},
          h("summary", {}, id, " ", h("small", {}, texts.fixtures.at({ file: file.name, line }))),
          drawValues(one),
        ),
      ),
      h("td", {}, h("ul", { class: "differences" }, ...differ)),
      h(
        "td",
        {},
        h(
          "button",
          { type: "button", "aria-label": texts.fixtures.useCase({ id }), onclick: use },
          texts.fixtures.use,
        ),
      ),
    );
  }
}

function drawFailure({ file, failure }: Report): HTMLElement {
  return h(
    "section",
    { class: "fixture bad" },
    h("h3", {}, texts.fixtures.notRun({ file: file.name })),
    failure,
  );
}

/** Draws the problems of a fixture. */
function drawLint({ file, problems }: Report): HTMLElement {
  return h("section", { class: "fixture" }, h("h3", {}, file.name), drawProblems(problems));
}

/** Draws input, expected output and fired rules of a case. */
function drawValues({ input, expected, fired }: TestedGuide["cases"][number]): HTMLElement {
  const pairs = (title: string, values: string[]) =>
    h(
      "div",
      {},
      h("h4", {}, title),
      values.length === 0
        ? h("p", { class: "quiet" }, texts.fixtures.nothing)
        : h("ul", {}, ...values.map((value) => h("li", {}, h("code", {}, value)))),
    );
  const literal = ([code, value]: [string, string]) => `${code} = ${value}`;
  return h(
    "div",
    { class: "case-values" },
    pairs(texts.fixtures.input, input.map(literal)),
    pairs(texts.fixtures.expected, expected.map(literal)),
    pairs(
      texts.fixtures.fired,
      fired.map((rule, at) => `${at + 1}. ${rule}`),
    ),
  );
}
