// Fixtures of a guide: dropped, run at once, shown case by case.
import { h } from "./dom";
import { EngineError } from "./engine";
import { drawProblems } from "./guide-about";
import type { GuideProblem, TestedGuide } from "./guide-text";

/** The pane of fixtures. */
export class Fixtures {
  readonly element = h("div", { id: "guide-tests", class: "outcome", "aria-live": "polite" });
  /** Counts the started and cancelled runs. Only the latest is shown. */
  #runs = 0;
  readonly #test: (fixture: string) => Promise<TestedGuide>;

  /** `test` runs a fixture on the selected guide. */
  constructor(test: (fixture: string) => Promise<TestedGuide>) {
    this.#test = test;
    this.clear();
  }

  /** Removes the results. */
  clear(): void {
    this.#runs += 1;
    this.element.replaceChildren(
      h(
        "div",
        { class: "empty" },
        h("h2", {}, "No fixtures yet"),
        h(
          "p",
          {},
          "Open or drop the fixture files (.yml) of this guide: every case is run, and what differs from its expected output is shown.",
        ),
      ),
    );
  }

  /** Runs fixture files and shows their results, failures first. */
  async run(fixtures: { name: string; text: string }[]): Promise<void> {
    const mine = (this.#runs += 1);
    const reports: { element: HTMLElement; passed: number; cases: number }[] = [];
    for (const { name, text } of fixtures) reports.push(await this.#report(name, text));
    if (mine !== this.#runs) return;
    const sum = (count: (report: (typeof reports)[number]) => number) =>
      reports.reduce((total, report) => total + count(report), 0);
    const [passed, cases] = [sum((report) => report.passed), sum((report) => report.cases)];
    reports.sort((a, b) => Number(a.passed === a.cases) - Number(b.passed === b.cases));
    this.element.replaceChildren(
      h(
        "div",
        { class: "bar" },
        h(
          "h2",
          {},
          passed === cases ? "Every case passes" : `${cases - passed} of ${cases} cases fail`,
        ),
        h("p", { class: "summary" }, `${passed} of ${cases} cases pass`),
      ),
      ...reports.map(({ element }) => element),
    );
  }

  async #report(
    name: string,
    text: string,
  ): Promise<{ element: HTMLElement; passed: number; cases: number }> {
    try {
      const tested = await this.#test(text);
      const passed = tested.cases.filter((one) => one.passed).length;
      const cases = [...tested.cases].sort((a, b) => Number(a.passed) - Number(b.passed));
      const element = h(
        "section",
        { class: "fixture" },
        h("h3", {}, name, " ", h("small", {}, `${passed} of ${cases.length} pass`)),
        drawProblems(tested.problems),
        h("ol", { class: "rules" }, ...cases.map(drawCase)),
      );
      return { element, passed, cases: cases.length };
    } catch (error) {
      const problems = error instanceof EngineError ? (error.diagnostics as GuideProblem[]) : [];
      const words =
        problems.length > 0
          ? drawProblems(problems)
          : h("p", {}, error instanceof Error ? error.message : String(error));
      return {
        element: h("section", { class: "fixture bad" }, h("h3", {}, name), words),
        passed: 0,
        cases: 1,
      };
    }
  }
}

function drawCase({
  id,
  line,
  passed,
  differences,
  fired,
  input,
  expected,
}: TestedGuide["cases"][number]): HTMLElement {
  const pairs = (title: string, values: [string, string][]) =>
    h(
      "div",
      {},
      h("h4", {}, title),
      values.length === 0
        ? h("p", { class: "quiet" }, "nothing")
        : h(
            "ul",
            {},
            ...values.map(([code, literal]) => h("li", {}, h("code", {}, `${code} = ${literal}`))),
          ),
    );
  return h(
    "li",
    {},
    h(
      "details",
      { open: !passed },
      h(
        "summary",
        {},
        h("span", { class: passed ? "mark fired" : "mark failed" }, passed ? "passed" : "failed"),
        " ",
        id,
        " ",
        h("small", {}, `line ${line}`),
      ),
      differences.length > 0
        ? h(
            "ul",
            { class: "differences" },
            ...differences.map((difference) => h("li", {}, difference)),
          )
        : null,
      h(
        "div",
        { class: "case-values" },
        pairs("Input", input),
        pairs("Expected", expected),
        pairs(
          "Rules fired",
          fired.map((rule, at) => [String(at + 1), rule]),
        ),
      ),
    ),
  );
}
