// The result of a query as a table, a chart or JSON, with export as file or program.
import { byId, copy, h, quoted, rove, save, saveBlob } from "./dom";
import type { DrawnChart } from "./chart";
import { languages, program, type Call } from "./code";
import { Detail } from "./detail";
import { drawRemoved } from "./empty";
import { cellText, csv, ndjson, table, TABLES } from "./export";
import { Grid } from "./grid";
import { languageOf, reasonOf } from "./fault";
import { parse, print } from "./json";
import { completeLabels, nameOf } from "./labels";
import { drawExplanation } from "./explanation";
import type { DocumentFormat, Explained, PageStart, Place, Result } from "./protocol";
import { remember, remembered } from "./remember";
import { ehrColumn, ehrsBeside } from "./series";
import { texts } from "./texts";

declare const CHART_URL: string;

const FORMS = ["table", "chart", "json", "explain"] as const;
type Form = (typeof FORMS)[number];

/** The key of the stored choice whether CSV starts with a byte order mark. */
const BOM = "aqlite-csv-bom";

/** The maximum number of rows that are drawn as JSON. */
const DRAWN = 200;

/** A query with its parameters. */
export type ParameterizedQuery = Pick<Call, "q" | "parameters">;

/** Returns the JSON text of the document that contains a cell of an answer. */
export type Documents = (
  asked: ParameterizedQuery & { identity: string; row: number; column: number; cells: string[] },
) => Promise<string | null>;

/** The functions of the page that the card calls. */
export interface ResultHost {
  /** The query in the editor. */
  call(): Call;
  /** Fetches the document around a cell. */
  document: Documents;
  /** Fetches every document behind the rows of a result, one per line. */
  documents(
    asked: ParameterizedQuery & { identity: string; format: DocumentFormat },
  ): Promise<{ text: string; count: number }>;
  /** Fetches the rows again, with the EHR id of each in a last column. */
  withEhrs(asked: ParameterizedQuery & { identity: string }): Promise<Result | null>;
  /** Shows another page of a result. */
  page(asked: ParameterizedQuery, from: PageStart): void;
  explain(asked: ParameterizedQuery): Promise<Explained>;
  /** Selects a place of the query in the editor. */
  show(place: Place): void;
}

/** The card of the result. */
export class ResultView {
  readonly #box = byId("result");
  #chart: DrawnChart | null = null;
  readonly #detail = new Detail();
  readonly #host: ResultHost;
  #asked: ParameterizedQuery = { q: "", parameters: {} };
  #result: Result | undefined;
  #grid: Grid | undefined;
  #form: Form = "table";
  /** The number of the latest explanation. Answers to earlier requests are ignored. */
  #explanations = 0;
  readonly #mark = h("input", { id: "csv-bom", type: "checkbox" });
  /** The starts of the pages before the displayed one. */
  #pages: PageStart[] = [];
  /** Whether the data are changing, so that the result may soon be outdated. */
  #held = false;
  /** The query of the displayed explanation; `null` without one. */
  #explained: ParameterizedQuery | null = null;
  /** The message that is shown instead of a result. */
  #refusal: HTMLElement | undefined;

  constructor(host: ResultHost) {
    this.#host = host;
    rove(byId("result-form"), (button) => this.#show(button.id.replace("as-", "") as Form));
    byId("csv").addEventListener("click", () => this.#saveCsv());
    this.#mark.checked = remembered("localStorage", BOM) === "true";
    this.#mark.addEventListener("change", () =>
      remember("localStorage", BOM, String(this.#mark.checked)),
    );
    byId("ndjson").addEventListener("click", () =>
      this.#save("result.ndjson", "application/x-ndjson", ndjson),
    );
    byId("json").addEventListener("click", () =>
      this.#save("result.json", "application/json", ({ text }) => text),
    );
    for (const format of ["arrow", "parquet"] as const)
      byId(format).addEventListener("click", () => void this.#saveTable(format));
    this.#listenCode();
    this.#listenDocuments();
    this.#box.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.#detail.close();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw());
  }

  #listenCode(): void {
    const menu = byId<HTMLSelectElement>("copy-as");
    const first = menu.options[0];
    menu.append(
      ...Object.entries(languages).map(([id, { title }]) => h("option", { value: id }, title)),
    );
    menu.addEventListener("change", () => {
      const language = languages[menu.value];
      menu.selectedIndex = 0;
      if (language && first) void copy(first, program(language, this.#host.call()));
    });
  }

  #listenDocuments(): void {
    const menu = byId<HTMLSelectElement>("save-documents");
    menu.addEventListener("change", () => {
      const format = menu.value as DocumentFormat;
      menu.selectedIndex = 0;
      if (format) void this.#saveDocuments(format);
    });
  }

  async #saveDocuments(format: DocumentFormat): Promise<void> {
    const summary = byId("summary");
    const result = this.#result;
    if (!result) return;
    try {
      const { text, count: number } = await this.#host.documents({
        ...this.#asked,
        identity: result.identity,
        format,
      });
      if (number > 0)
        save(`documents.${format.toLowerCase()}.ndjson`, "application/x-ndjson", text);
      else summary.textContent = texts.results.noDocuments;
    } catch (error) {
      summary.textContent = reasonOf(error);
    }
  }

  /** Saves CSV, on request with a byte order mark, without which some spreadsheets misread UTF-8. */
  #saveCsv(): void {
    const mark = this.#mark.checked ? "\ufeff" : "";
    this.#save("result.csv", "text/csv;charset=utf-8", (result) => mark + csv(result));
  }

  /** Saves a table. The first one loads its module. */
  async #saveTable(format: keyof typeof TABLES): Promise<void> {
    if (!this.#result) return;
    try {
      saveBlob(TABLES[format].name, await table(this.#result, this.#asked.q, format));
    } catch (error) {
      byId("summary").textContent = texts.results.noTable({ reason: reasonOf(error) });
    }
  }

  #save(name: string, type: string, write: (result: Result) => string): void {
    if (this.#result) save(name, type, write(this.#result));
  }

  /** The query of the displayed result; `null` without one. */
  get asked(): string | null {
    return this.#result ? this.#asked.q : null;
  }

  /** The identity of the data of the displayed result, see `Contents`; `null` without one. */
  get identity(): string | null {
    return this.#result?.identity ?? null;
  }

  /** Disables exports while the data change: the rows may not belong to the selected data. */
  set held(held: boolean) {
    this.#held = held;
    this.#allowExports();
  }

  /**
   * Marks a result or an explanation of another text, or of other values, than those of the editor.
   * The mark names the query, because charts and saved files belong to it.
   */
  compare(): void {
    const { q, parameters } = this.#host.call();
    const isResult = this.#form !== "explain";
    const asked = isResult ? this.#result && this.#asked : this.#explained;
    const isEarlier =
      !!asked && (q !== asked.q || JSON.stringify(parameters) !== JSON.stringify(asked.parameters));
    const said = isEarlier
      ? texts.results[isResult ? "earlier" : "earlierExplained"]({ q: summaryOf(asked) })
      : "";
    const mark = byId("earlier");
    // The same text is not announced again with each key.
    if (mark.textContent !== said) mark.textContent = said;
  }

  /** Marks that a query is running. */
  set busy(busy: boolean) {
    byId("elapsed").textContent = "";
    if (busy) this.#box.setAttribute("aria-busy", "true");
    else this.#box.removeAttribute("aria-busy");
  }

  /**
   * Shows the answer to a query. `total` is the time until it arrived, `note` an additional remark.
   */
  answer(asked: ParameterizedQuery, result: Result, total: number, note = ""): void {
    this.#asked = asked;
    this.#result = result;
    this.#refusal = undefined;
    this.#detail.close();
    const { rows, columns, milliseconds, offset, next } = result;
    if (offset === 0) this.#pages = [];
    this.#drawPager(result);
    const isPage = next !== null || offset > 0;
    const words = [
      isPage
        ? texts.results.window({ from: offset + 1, to: offset + rows })
        : texts.results.rows({ count: rows }),
      texts.results.columns({ count: columns.length }),
      texts.results.milliseconds({ milliseconds }),
      note,
    ];
    byId("summary").textContent = words.filter(Boolean).join(" · ");
    byId("summary").title = texts.results.times({ engine: milliseconds, total });
    this.#allowExports();
    this.compare();
    this.redraw();
  }

  /** Shows how long a query has been running, in place of the summary of the former result. */
  elapsed(milliseconds: number): void {
    const summary = byId("summary");
    // Screen readers announce the status once. The clock beside it is hidden from them.
    const { running } = texts.results;
    if (summary.textContent !== running) summary.textContent = running;
    byId("elapsed").textContent = texts.results.seconds({ seconds: milliseconds / 1000 });
  }

  /** Moves the focus to the result: in a table to its current cell. */
  focus(): void {
    if (this.#grid && this.#box.contains(this.#grid.element)) this.#grid.focus();
    else this.#box.focus();
  }

  /** Draws the labels of patients again. */
  relabel(): void {
    this.#grid?.relabel();
  }

  /** Draws the buttons for the pages of a result that is too large to be shown at once. */
  #drawPager(result: Result): void {
    const pager = byId("pager");
    const { offset, next } = result;
    pager.hidden = offset === 0 && next === null;
    const pressed = pager.contains(document.activeElement) ? document.activeElement?.id : null;
    const asked = this.#asked;
    const former = this.#pages.at(-1);
    const button = (id: string, label: string, go: (() => void) | null) =>
      h("button", { id, type: "button", disabled: go === null, onclick: () => go?.() }, label);
    const here: PageStart = next ? { ...next, offset } : { offset, fetch: null, snapshot: null };
    pager.replaceChildren(
      h("span", {}, texts.results.paged),
      button(
        "page-before",
        texts.results.pageBefore,
        former
          ? () => {
              this.#pages.pop();
              this.#host.page(asked, former);
            }
          : null,
      ),
      button(
        "page-next",
        texts.results.pageNext,
        next
          ? () => {
              this.#pages.push(here);
              this.#host.page(asked, next);
            }
          : null,
      ),
    );
    // The buttons are new, so the pressed one has lost the focus. At an end, the other one gets it.
    if (!pressed) return;
    const buttons = [...pager.querySelectorAll("button")].filter(({ disabled }) => !disabled);
    (buttons.find(({ id }) => id === pressed) ?? buttons[0])?.focus();
  }

  /** Shows a message instead of a result. */
  say(title: string, about: string): void {
    this.#say(h("div", { class: "empty" }, h("h3", {}, title), h("p", {}, about)));
  }

  #fail(title: string, error: unknown): void {
    const why = h("p", { lang: languageOf(error) }, reasonOf(error));
    this.#say(h("div", { class: "empty bad" }, h("h3", {}, title), why));
  }

  /** Shows an element instead of a result, such as an explanation. */
  instead(element: HTMLElement): void {
    this.#result = undefined;
    this.#refusal = element;
    this.#detail.close();
    byId("summary").textContent = "";
    byId("pager").hidden = true;
    this.#allowExports();
    this.compare();
    if (this.#form === "explain") void this.#explain();
    else this.#say(element);
  }

  /** Explains the query in the editor, valid or not. */
  async #explain(): Promise<void> {
    const { q, parameters } = this.#host.call();
    const mine = (this.#explanations += 1);
    try {
      const explained = await this.#host.explain({ q, parameters });
      if (this.#form === "explain" && mine === this.#explanations) {
        this.#explained = { q, parameters };
        this.#say(drawExplanation(explained, q, (place) => this.#host.show(place)));
        this.compare();
      }
    } catch (error) {
      if (this.#form === "explain" && mine === this.#explanations)
        this.#fail(texts.results.notExplained, error);
    }
  }

  #say(element: HTMLElement): void {
    this.#fill(element);
  }

  #allowExports(): void {
    for (const id of ["csv", "ndjson", "json", "arrow", "parquet", "save-documents"])
      byId<HTMLButtonElement | HTMLSelectElement>(id).disabled = this.#held || !this.#result;
  }

  /** The form of results. */
  get form(): string {
    return this.#form;
  }

  /** Sets the form of results. An unknown form is ignored. */
  set form(form: string | null) {
    const known = FORMS.find((one) => one === form);
    if (known) this.#show(known);
  }

  #show(form: Form): void {
    this.#form = form;
    for (const one of FORMS) {
      byId(`as-${one}`).setAttribute("aria-checked", String(one === form));
      byId(`as-${one}`).tabIndex = one === form ? 0 : -1;
    }
    this.#explained = null;
    this.compare();
    this.redraw();
  }

  /** Draws the result again, for instance in other colours. */
  redraw(): void {
    const result = this.#result;
    if (this.#form === "explain") return void this.#explain();
    if (!result) {
      if (this.#refusal) this.#say(this.#refusal);
      return;
    }
    if (result.rows === 0) void this.#drawNothing(result);
    else if (this.#form === "json") this.#drawJson(result);
    else if (this.#form === "chart") void this.#drawChart(result);
    else this.#drawTable(result);
  }

  /** Shows a result without rows, and then the part of the query that removed the last rows. */
  async #drawNothing(result: Result): Promise<void> {
    this.say(texts.results.noRows, texts.results.noRowsAbout);
    const { q, parameters } = this.#asked;
    const explained = await this.#host.explain({ q, parameters }).catch(() => null);
    if (!explained || this.#result !== result || this.#form === "explain") return;
    // Other servers need not send warnings.
    const warned = (explained.warnings as Explained["warnings"] | undefined)?.[0];
    if (warned) {
      this.say(texts.results.noRows, texts.results.noRowsWarned);
      this.#box.querySelector(".empty")?.append(h("p", { lang: "en" }, ...quoted(warned.message)));
    }
    const removed = drawRemoved(explained, (at) => this.#host.show(at));
    if (removed) this.#box.querySelector(".empty")?.append(removed);
  }

  #drawTable(result: Result): void {
    this.#grid = new Grid(result, (row, column, byKeyboard) =>
      this.#open(result, row, column, byKeyboard),
    );
    this.#grid.bar.append(
      h(
        "label",
        {
          class: "bom",
          title: texts.results.bomAbout,
        },
        this.#mark,
        texts.results.bom,
      ),
    );
    this.#fill(this.#grid.element);
    this.#grid.draw();
  }

  #drawJson(result: Result): void {
    const whole = result.rows <= DRAWN ? print(parse(result.text)) : firstRows(result);
    this.#fill(
      h(
        "pre",
        { class: "raw", tabindex: 0, role: "region", "aria-label": texts.results.json },
        whole,
      ),
    );
  }

  async #drawChart(result: Result): Promise<void> {
    const { chart } = (await import(
      new URL(CHART_URL, document.baseURI).href
    )) as typeof import("./chart");
    const ehrs = await this.#ehrsOf(result);
    await completeLabels(ehrs ?? []);
    if (this.#result !== result || this.#form !== "chart") return;
    const drawn = chart(result, { ehrs, name: nameOf }, texts);
    if (drawn && this.#grid?.filters(result))
      drawn.element.append(h("p", { class: "quiet", role: "note" }, texts.results.unfiltered));
    if (drawn) this.#fill(drawn.element);
    else this.say(texts.results.nothingToDraw, texts.results.nothingToDrawAbout);
    this.#chart = drawn;
  }

  /** Replaces the content, and ends the chart that was there. */
  #fill(content: HTMLElement): void {
    this.#chart?.destroy();
    this.#chart = null;
    this.#box.replaceChildren(content);
  }

  /** Returns the EHR id of each row, or `null` if rows may be of several patients. */
  async #ehrsOf(result: Result): Promise<(string | null)[] | null> {
    const shown = ehrColumn(result);
    if (shown) return shown;
    try {
      const wider = await this.#host.withEhrs({ ...this.#asked, identity: result.identity });
      return wider && ehrsBeside(result, wider);
    } catch {
      // The data have changed, or the server refused. The chart then shows no patients.
      return null;
    }
  }

  #open(result: Result, row: number, column: number, byKeyboard: boolean): void {
    const { name = "", path = null } = result.columns[column] ?? {};
    const asked = this.#asked;
    this.#detail.show(
      {
        title: texts.results.cell({ name, row: result.offset + row + 1 }),
        path,
        text: cellText(result, row, column),
      },
      () =>
        this.#host.document({
          ...asked,
          identity: result.identity,
          row: result.offset + row,
          column,
          cells: result.columns.map((_, at) => cellText(result, row, at)),
        }),
      () => this.#grid?.focus(),
      byKeyboard,
    );
  }
}

/** The maximum length of a query in the mark of an earlier query. */
const SUMMARY = 120;

/** Returns a query and its values in one line. */
function summaryOf({ q, parameters }: ParameterizedQuery): string {
  const line = q.replaceAll(/--.*$/gm, "").replaceAll(/\s+/g, " ").trim();
  const short = line.length > SUMMARY ? `${line.slice(0, SUMMARY)}…` : line;
  const values = Object.entries(parameters).map(([name, value]) => {
    const text = (value as { text?: string } | null)?.text;
    return `$${name} = ${text ?? JSON.stringify(value)}`;
  });
  return [short, ...values].join("; ");
}

function firstRows(result: Result): string {
  const cells = (row: number) =>
    result.columns.map((_, column) => cellText(result, row, column)).join(", ");
  const lines = Array.from({ length: DRAWN }, (_, row) => `  [${cells(row)}]`);
  return `${lines.join(",\n")}\n\n${texts.results.moreRows({ count: result.rows - DRAWN })}`;
}
