// Fixtures of guides: each finds its guide by id, all cases are run and shown in one table.
import { count, h } from "./dom";
import { EngineError } from "./engine";
import { drawProblems } from "./guide-about";
import { BLANK } from "./guide-blank";
import type { GuideProblem, TestedGuide } from "./guide-text";

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

/** A fixture file. */
interface FixtureFile {
  name: string;
  text: string;
  /** The id of the guide that the user chose for it, if it names none that is here. */
  instead?: string;
}

/** The outcome of a file. */
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

function counted(number: number, noun: string): string {
  return `${count.format(number)} ${noun}${number === 1 ? "" : "s"}`;
}

/** The pane of fixtures. */
export class Fixtures {
  readonly element = h("div", { id: "guide-tests", class: "outcome" });
  readonly #host: FixtureHost;
  #files: FixtureFile[] = [];
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

  /** Adds fixture files and runs all. A file with a known name replaces the former one. */
  async run(files: FixtureFile[]): Promise<void> {
    const names = new Set(files.map(({ name }) => name));
    this.#files = [...this.#files.filter(({ name }) => !names.has(name)), ...files];
    [this.#only, this.#drawn] = ["", DRAWN];
    await this.#run(() => true);
  }

  /** Runs the fixtures of guides again whose texts have changed, and those that were not run. */
  async changed(guides: string[]): Promise<void> {
    if (this.#files.length === 0) return;
    await this.#run((report) => !report || !!report.failure || guides.includes(report.guide));
  }

  /** Runs the files without report, and those whose last report is stale. */
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
      const why = h("p", {}, error instanceof Error ? error.message : String(error));
      return { ...report, failure: problems.length > 0 ? drawProblems(problems) : why };
    }
  }

  /** Draws the reason why a fixture has no guide, and the remedy. */
  #missing(file: FixtureFile, id: string): HTMLElement {
    const selected = this.#host.selected();
    const instead = () => {
      file.instead = selected;
      void this.#run((report) => report?.file === file);
    };
    return h(
      "div",
      {},
      h("p", {}, `No guide ${id || "without id"} is here. Open it, alone or with its fixtures.`),
      selected ? h("button", { type: "button", onclick: instead }, `Run it on ${selected}`) : null,
    );
  }

  #draw(): void {
    if (this.#files.length === 0) {
      const about =
        "Open or drop fixture files (.yml), also several with their guides. Each is run on the guide that it names, and what differs from its expected output is shown.";
      this.element.replaceChildren(
        h("div", { class: "empty" }, h("h2", {}, "No fixtures yet"), h("p", {}, about)),
      );
      return;
    }
    const shown = this.#reports.filter(({ guide }) => this.#only === "" || guide === this.#only);
    const lines = shown
      .flatMap((report) => report.cases.map((one): Line => ({ report, one })))
      .sort((a, b) => Number(a.one.passed) - Number(b.one.passed));
    this.element.replaceChildren(
      this.#drawSummary(lines, shown),
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
        ? `${count.format(failed)} of ${counted(all, "case")} ${failed === 1 ? "fails" : "fail"}`
        : broken > 0
          ? `${counted(broken, "file")} not run`
          : "Every case passes";
    return h(
      "div",
      { class: "bar" },
      h("h2", {}, title),
      h(
        "p",
        { class: "summary", role: "status" },
        `${count.format(passed)} of ${counted(all, "case")} pass`,
      ),
      this.#drawFilter(),
      h(
        "button",
        { type: "button", id: "guide-tests-clear", onclick: () => this.#clear() },
        "Close the fixtures",
      ),
    );
  }

  #clear(): void {
    this.#runs += 1;
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
      const words = failed > 0 ? `${failed} of ${cases.length} fail` : `${cases.length} pass`;
      return h("option", { value: id, selected: id === this.#only }, `${id} (${words})`);
    };
    const select = h(
      "select",
      { id: "guide-tests-only", class: "menu", "aria-label": "Show the cases of" },
      h("option", { value: "" }, `All ${guides.length} guides`),
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
      `Show more of ${count.format(all)} cases`,
    );
  }

  #drawTable(lines: Line[]): HTMLElement {
    const heads = ["Result", "Guide", "Case", "Differences", "Form"];
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
        h("span", { class: passed ? "mark fired" : "mark failed" }, passed ? "passed" : "failed"),
      ),
      h("td", { class: "case-guide" }, guide),
      h(
        "td",
        {},
        h(
          "details",
          {},
          h("summary", {}, id, " ", h("small", {}, `${file.name}, line ${line}`)),
          drawValues(one),
        ),
      ),
      h("td", {}, h("ul", { class: "differences" }, ...differ)),
      h(
        "td",
        {},
        h(
          "button",
          { type: "button", "aria-label": `Use as form: ${id}`, onclick: use },
          "Use as form",
        ),
      ),
    );
  }
}

function drawFailure({ file, failure }: Report): HTMLElement {
  return h("section", { class: "fixture bad" }, h("h3", {}, `${file.name}: not run`), failure);
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
        ? h("p", { class: "quiet" }, "nothing")
        : h("ul", {}, ...values.map((value) => h("li", {}, h("code", {}, value)))),
    );
  const literal = ([code, value]: [string, string]) => `${code} = ${value}`;
  return h(
    "div",
    { class: "case-values" },
    pairs("Input", input.map(literal)),
    pairs("Expected", expected.map(literal)),
    pairs(
      "Rules fired",
      fired.map((rule, at) => `${at + 1}. ${rule}`),
    ),
  );
}
