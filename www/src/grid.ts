// The result grid. Only visible rows exist as elements. One cell has the focus, and the arrow keys
// move the focus (ARIA grid pattern).
import { arranged, type Order } from "./arrange";
import { view } from "./cell";
import { debounced, h } from "./dom";
import { cellText } from "./export";
import { labelOf } from "./labels";
import { isEhrId } from "./series";
import type { Result } from "./protocol";
import { texts } from "./texts";

const ROW = 34;
const SPARE = 8;
const SAMPLED = 120;
/** The approximate width of a character and the padding of a cell, in pixels. */
const CHARACTER = 8.4;
const PADDING = 26;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-/;
/** Browsers limit heights to about 33 million pixels. Longer results scroll proportionally. */
const TALLEST = 30_000_000;

/** The row of the names of the columns, above row 0. */
const HEAD = -1;
/** The smallest width of a column, and the step of a change by keyboard, in pixels. */
const NARROWEST = 48;
const STEP = 24;
/** The time in milliseconds between the last key in a filter and its effect. */
const TYPING = 150;

/**
 * Opens a cell. With the keyboard the focus moves to the opened object; a pointer leaves it in the
 * grid.
 */
export type OpenCell = (row: number, column: number, byKeyboard: boolean) => void;

/** A virtual grid over a result. */
export class Grid {
  /** The grid below its bar. */
  readonly element: HTMLElement;
  readonly bar = h("div", { class: "grid-bar" });
  readonly #grid: HTMLElement;
  readonly #head: HTMLElement[];
  readonly #filterRow: HTMLElement;
  readonly #filters: HTMLInputElement[];
  readonly #filterButton: HTMLButtonElement;
  readonly #shown = h("span", { class: "grid-shown", role: "status" });
  readonly #widths: number[];
  /** The displayed rows as indices of rows of the result. */
  #rows: Uint32Array;
  #order: Order | null = null;
  readonly #result: Result;
  readonly #open: OpenCell;
  readonly #body: HTMLElement;
  readonly #numeric: boolean[];
  #row = 0;
  #column = 0;
  #first = -1;
  #last = -1;

  constructor(result: Result, open: OpenCell) {
    this.#result = result;
    this.#open = open;
    const measured = result.columns.map((column, at) => this.#measure(column.name, at));
    this.#numeric = measured.map(({ numeric }) => numeric);
    this.#rows = Uint32Array.from({ length: result.rows }, (_, row) => row);
    this.#widths = [
      Math.ceil(String(result.offset + result.rows).length * CHARACTER) + PADDING,
      ...measured.map(({ width }) => width),
    ];
    this.#body = h("div", { class: "g-body", role: "rowgroup" });
    this.#head = result.columns.map((column, at) => this.#drawName(column, at));
    this.#filters = result.columns.map((column) => this.#drawFilter(column.name));
    this.#filterRow = this.#drawFilterRow();
    this.#filterButton = h(
      "button",
      { type: "button", class: "grid-filter", "aria-expanded": "false" },
      texts.results.filter,
    );
    this.#grid = this.#drawGrid();
    const isPage = result.next !== null || result.offset > 0;
    this.bar.append(
      this.#filterButton,
      ...(isPage ? [h("span", { class: "grid-shown" }, texts.results.thisPage)] : []),
      this.#shown,
    );
    this.element = h("div", { class: "grid-card" }, this.bar, this.#grid);
    this.#size();
    this.#listen();
  }

  #drawGrid(): HTMLElement {
    const names = h(
      "div",
      { class: "g-row", role: "row", "aria-rowindex": 1 },
      h("div", { class: "g-cell g-number", role: "columnheader", "aria-colindex": 1 }, "#"),
      ...this.#head,
    );
    return h(
      "div",
      {
        class: "grid",
        role: "grid",
        "aria-label": texts.results.gridTitle,
        "aria-rowcount": this.#result.rows + 1,
        "aria-colcount": this.#result.columns.length + 1,
      },
      h("div", { class: "g-head", role: "rowgroup" }, names, this.#filterRow),
      this.#body,
    );
  }

  /** Draws the name of a column, which sorts, and its edge, which changes the width. */
  #drawName({ name, path }: Result["columns"][number], at: number): HTMLElement {
    const edge = h("span", { class: "g-edge", "aria-hidden": "true" });
    edge.addEventListener("pointerdown", (event) => this.#drag(event, at + 1));
    return h(
      "div",
      {
        class: `g-cell g-name${this.#numeric[at] ? " right" : ""}`,
        role: "columnheader",
        tabindex: -1,
        "aria-colindex": at + 2,
        "data-row": HEAD,
        "data-column": at,
        title: `${path ?? name}\n${texts.results.clickToSort}`,
      },
      name,
      edge,
    );
  }

  #drawFilter(name: string): HTMLInputElement {
    return h("input", {
      type: "search",
      "aria-label": texts.results.filterColumn({ name }),
      placeholder: texts.results.filterExample,
      autocomplete: "off",
      spellcheck: "false",
    });
  }

  #drawFilterRow(): HTMLElement {
    const cells = this.#filters.map((input) =>
      h("div", { class: "g-filter", role: "columnheader" }, input),
    );
    return h(
      "div",
      { class: "g-row g-filters", role: "row", hidden: true },
      h(
        "div",
        { class: "g-cell g-number", role: "columnheader" },
        h("span", { class: "unseen" }, texts.results.filters),
      ),
      ...cells,
    );
  }

  /** Sets the widths of the columns, and the height of the body. */
  #size(): void {
    const widths = [...this.#widths];
    const last = widths.pop() ?? 0;
    // The remaining width goes to a last column of texts or stays empty, so that numbers stay near
    // their neighbors.
    const end = this.#numeric.at(-1) ? `${last}px minmax(0, 1fr)` : `minmax(${last}px, 1fr)`;
    this.#grid.style.setProperty(
      "--columns",
      `${widths.map((width) => `${width}px`).join(" ")} ${end}`,
    );
    this.#body.style.height = `${Math.min(this.#rows.length * ROW, TALLEST)}px`;
  }

  #listen(): void {
    this.#grid.addEventListener("scroll", () => this.draw(), { passive: true });
    this.#grid.addEventListener("keydown", (event) => this.#key(event));
    this.#grid.addEventListener("click", (event) => this.#click(event));
    this.#filterButton.addEventListener("click", () => this.#toggleFilters());
    const filter = debounced(TYPING, () => this.#arrange());
    for (const input of this.#filters) input.addEventListener("input", filter);
    new ResizeObserver(() => this.draw()).observe(this.#grid);
  }

  /** Shows the filters of the columns, or hides and clears them. */
  #toggleFilters(): void {
    const open = this.#filterRow.hidden;
    this.#filterRow.hidden = !open;
    this.#filterButton.setAttribute("aria-expanded", String(open));
    if (open) return this.#filters[0]?.focus();
    for (const input of this.#filters) input.value = "";
    this.#arrange();
  }

  /** Sorts by a column: ascending, then descending, then in the order of the query. */
  #sort(column: number): void {
    const { column: former, descending } = this.#order ?? { column: -1, descending: false };
    if (former !== column) this.#order = { column, descending: false };
    else this.#order = descending ? null : { column, descending: true };
    this.#head.forEach((name, at) => {
      if (this.#order?.column === at)
        name.setAttribute("aria-sort", this.#order.descending ? "descending" : "ascending");
      else name.removeAttribute("aria-sort");
    });
    this.#arrange();
  }

  #arrange(): void {
    const current = this.#source(this.#row);
    const label = (row: number, column: number) => this.#label(row, column) ?? "";
    const filters = this.#filters.map(({ value }) => value);
    this.#rows = arranged(this.#result, filters, this.#order, label);
    this.#grid.setAttribute("aria-rowcount", String(this.#rows.length + 1));
    const isFiltered = filters.some((written) => written.trim() !== "");
    this.#shown.textContent = isFiltered
      ? texts.results.matching({ count: this.#rows.length, of: this.#result.rows })
      : "";
    // The current cell stays current if its row is still displayed.
    if (this.#row !== HEAD) this.#row = Math.max(0, this.#rows.indexOf(current));
    this.#size();
    this.draw(true);
  }

  /** Whether the grid shows a part of the rows of a result. */
  filters(result: Result): boolean {
    return this.#result === result && this.#rows.length < result.rows;
  }

  /** Draws the labels of patients, which may have arrived after the result. */
  relabel(): void {
    this.#result.columns.forEach(({ name, path }, at) => {
      if (!isEhrId(path)) return;
      const { width } = this.#measure(name, at);
      this.#widths[at + 1] = Math.max(this.#widths[at + 1] ?? 0, width);
    });
    // Filters and orders compare labels too.
    this.#arrange();
  }

  /** Returns the label of the patient of a cell with the id of an EHR, or `null`. */
  #label(row: number, column: number): string | null {
    if (!isEhrId(this.#result.columns[column]?.path ?? null)) return null;
    return labelOf(view(cellText(this.#result, row, column)).text);
  }

  /** Changes the width of a column with the pointer. */
  #drag(event: PointerEvent, column: number): void {
    event.preventDefault();
    const edge = event.currentTarget as HTMLElement;
    const width = this.#widths[column] ?? NARROWEST;
    edge.setPointerCapture(event.pointerId);
    edge.onpointermove = ({ clientX }) => this.#resize(column, width + clientX - event.clientX);
    edge.onpointerup = () => {
      edge.onpointermove = null;
      edge.onpointerup = null;
    };
  }

  #resize(column: number, width: number): void {
    this.#widths[column] = Math.max(NARROWEST, Math.round(width));
    this.#size();
  }

  #measure(name: string, column: number): { width: number; numeric: boolean } {
    let widest = name.length + 1;
    let numbers = 0;
    let others = 0;
    for (let row = 0; row < Math.min(this.#result.rows, SAMPLED); row += 1) {
      const { kind, text, type } = view(cellText(this.#result, row, column));
      // The first part of a UUID distinguishes rows. The title and the copied text have all of it.
      const shown = kind === "text" && UUID.test(text) ? 12 : text.length;
      const label = this.#label(row, column);
      widest = Math.max(
        widest,
        shown + (type ? type.length + 3 : 0) + (label ? label.length + 2 : 0),
      );
      if (kind === "number") numbers += 1;
      else if (kind !== "null") others += 1;
    }
    return {
      width: Math.ceil(Math.min(Math.max(widest * CHARACTER, 56), 340)) + PADDING,
      numeric: numbers > 0 && others === 0,
    };
  }

  get #step(): number {
    return this.#rows.length * ROW <= TALLEST ? ROW : TALLEST / this.#rows.length;
  }

  /** Returns the first and last visible row, counted from 0. */
  #window(): [number, number] {
    const top = Math.floor(this.#grid.scrollTop / this.#step);
    const visible = Math.ceil(this.#grid.clientHeight / ROW);
    return [Math.max(0, top - SPARE), Math.min(this.#rows.length, top + visible + SPARE)];
  }

  /** Draws the visible rows if they changed, or if `again` is set. */
  draw(again = false): void {
    const [first, last] = this.#window();
    if (!again && first === this.#first && last === this.#last) return;
    const focused = this.#body.contains(document.activeElement);
    // With no row, the names of the columns take the focus.
    if (this.#rows.length === 0) this.#row = HEAD;
    this.#head.forEach(
      (name, at) => (name.tabIndex = this.#row === HEAD && at === this.#column ? 0 : -1),
    );
    this.#first = first;
    this.#last = last;
    const rows: HTMLElement[] = [];
    for (let row = first; row < last; row += 1) rows.push(this.#drawRow(row));
    this.#body.replaceChildren(...rows);
    if (focused) this.#focused()?.focus({ preventScroll: true });
  }

  #drawRow(row: number): HTMLElement {
    const line = h(
      "div",
      { class: "g-row", role: "row", "aria-rowindex": row + 2 },
      h(
        "div",
        { class: "g-cell g-number", role: "rowheader", "aria-colindex": 1 },
        String(this.#result.offset + this.#source(row) + 1),
      ),
    );
    // With proportional scrolling, the visible rows still have their normal height.
    const top =
      this.#step === ROW
        ? row * ROW
        : this.#grid.scrollTop + (row - Math.floor(this.#grid.scrollTop / this.#step)) * ROW;
    line.style.top = `${top}px`;
    line.append(...this.#result.columns.map((_, column) => this.#drawCell(row, column)));
    return line;
  }

  #drawCell(row: number, column: number): HTMLElement {
    const source = this.#source(row);
    const { kind, text, type } = view(cellText(this.#result, source, column));
    const active = row === this.#row && column === this.#column;
    const cell = h("div", {
      class: `g-cell ${kind}${this.#numeric[column] ? " right" : ""}`,
      role: "gridcell",
      tabindex: active ? 0 : -1,
      "aria-colindex": column + 2,
      "data-row": row,
      "data-column": column,
    });
    if (kind === "null")
      cell.append(
        h("span", { "aria-hidden": "true" }, "–"),
        h("span", { class: "unseen" }, texts.frame.noValue),
      );
    else if (kind === "object")
      cell.append(h("span", { class: "type" }, type ?? ""), text ? ` ${text}` : "");
    else cell.append(text);
    if (text.length > 12) cell.title = text;
    const label = this.#label(source, column);
    if (label) {
      cell.classList.add("labelled");
      cell.replaceChildren(
        h("span", { class: "g-id" }, text),
        " ",
        h("span", { class: "g-label" }, label),
      );
    }
    return cell;
  }

  #focused(): HTMLElement | null {
    return this.#grid.querySelector<HTMLElement>(
      `[data-row="${this.#row}"][data-column="${this.#column}"]`,
    );
  }

  /** Moves the focus and scrolls to it. Above the first row are the names of the columns. */
  #go(row: number, column: number): void {
    this.#row = Math.max(HEAD, Math.min(row, this.#rows.length - 1));
    this.#column = Math.max(0, Math.min(column, this.#result.columns.length - 1));
    const step = this.#step;
    const space = this.#grid.clientHeight - this.#headHeight;
    const top = Math.max(0, this.#row) * step;
    if (top < this.#grid.scrollTop) this.#grid.scrollTop = top;
    else if (top + ROW > this.#grid.scrollTop + space) this.#grid.scrollTop = top + ROW - space;
    this.draw(true);
    const cell = this.#focused();
    cell?.focus({ preventScroll: true });
    cell?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  get #headHeight(): number {
    return (this.#grid.firstElementChild as HTMLElement).offsetHeight;
  }

  #click(event: MouseEvent): void {
    const target = event.target as HTMLElement;
    const cell = target.closest<HTMLElement>("[data-row]");
    // A text that was selected with the pointer is to be copied.
    if (!cell || target.classList.contains("g-edge") || String(getSelection()) !== "") return;
    this.#go(Number(cell.dataset["row"]), Number(cell.dataset["column"]));
    this.#act(false);
  }

  /** Opens the current cell, or sorts by the current column. */
  #act(byKeyboard: boolean): void {
    if (this.#row === HEAD) this.#sort(this.#column);
    else this.#open(this.#source(this.#row), this.#column, byKeyboard);
  }

  /** Returns the index in the result of a displayed row. */
  #source(row: number): number {
    return this.#rows[row] ?? 0;
  }

  #key(event: KeyboardEvent): void {
    if (event.target instanceof HTMLInputElement) return;
    const page = Math.max(1, Math.floor(this.#grid.clientHeight / ROW) - 2);
    const whole = event.ctrlKey || event.metaKey;
    const last = this.#result.columns.length - 1;
    const sideways: Record<string, number> = { ArrowRight: STEP, ArrowLeft: -STEP };
    const wider = this.#row === HEAD && event.shiftKey ? sideways[event.key] : undefined;
    const moves: Record<string, [number, number]> = {
      ArrowDown: [this.#row + 1, this.#column],
      ArrowUp: [this.#row - 1, this.#column],
      ArrowRight: [this.#row, this.#column + 1],
      ArrowLeft: [this.#row, this.#column - 1],
      PageDown: [this.#row + page, this.#column],
      PageUp: [Math.max(0, this.#row - page), this.#column],
      Home: [whole ? 0 : this.#row, 0],
      End: [whole ? this.#rows.length - 1 : this.#row, last],
    };
    const to = moves[event.key];
    if (wider !== undefined) {
      event.preventDefault();
      const column = this.#column + 1;
      this.#resize(column, (this.#widths[column] ?? NARROWEST) + wider);
    } else if (to) {
      event.preventDefault();
      this.#go(...to);
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.#act(true);
    } else if (event.key === "c" && whole && String(getSelection()) === "") {
      event.preventDefault();
      void navigator.clipboard.writeText(this.#copied());
    }
  }

  /** Returns the text of the current cell or column name for the clipboard. */
  #copied(): string {
    if (this.#row === HEAD) return this.#result.columns[this.#column]?.name ?? "";
    const json = cellText(this.#result, this.#source(this.#row), this.#column);
    const { kind, text } = view(json);
    return kind === "object" ? json : text;
  }

  /** Returns the focus to the current cell. */
  focus(): void {
    this.draw(true);
    this.#focused()?.focus({ preventScroll: true });
  }
}
