// The result grid. Only visible rows exist as elements. One cell has the focus and moves by
// keyboard (ARIA grid pattern).
import { view } from "./cell";
import { h } from "./dom";
import { cellText } from "./export";
import type { Result } from "./protocol";

const ROW = 34;
const SPARE = 8;
const SAMPLED = 120;
/** The approximate width of a character and the padding of a cell, in pixels. */
const CHARACTER = 8.4;
const PADDING = 26;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-/;
/** Browsers limit heights to about 33 million pixels. Longer results scroll proportionally. */
const TALLEST = 30_000_000;

/** Opens an object. */
export type OpenCell = (row: number, column: number) => void;

/** A virtual grid over a result. */
export class Grid {
  readonly element: HTMLElement;
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
    this.#body = h("div", { class: "g-body", role: "rowgroup" });
    this.#body.style.height = `${Math.min(result.rows * ROW, TALLEST)}px`;
    const head = h(
      "div",
      { class: "g-row", role: "row", "aria-rowindex": 1 },
      h("div", { class: "g-cell g-number", role: "columnheader", "aria-colindex": 1 }, "#"),
    );
    result.columns.forEach((column, at) => {
      head.append(
        h(
          "div",
          {
            class: `g-cell${this.#numeric[at] ? " right" : ""}`,
            role: "columnheader",
            "aria-colindex": at + 2,
            title: column.path ?? column.name,
          },
          column.name,
        ),
      );
    });
    this.element = h(
      "div",
      {
        class: "grid",
        role: "grid",
        "aria-label": "Rows of the result",
        "aria-rowcount": result.rows + 1,
        "aria-colcount": result.columns.length + 1,
      },
      h("div", { class: "g-head", role: "rowgroup" }, head),
      this.#body,
    );
    const widths = [
      Math.ceil(String(result.rows).length * CHARACTER) + PADDING,
      ...measured.map(({ width }) => width),
    ];
    const last = widths.pop() ?? 0;
    // The remaining width goes to a last column of texts or stays empty, so that numbers stay near
    // their neighbours.
    const end = this.#numeric.at(-1) ? `${last}px minmax(0, 1fr)` : `minmax(${last}px, 1fr)`;
    this.element.style.setProperty(
      "--columns",
      `${widths.map((width) => `${width}px`).join(" ")} ${end}`,
    );
    this.element.addEventListener("scroll", () => this.draw(), { passive: true });
    this.element.addEventListener("keydown", (event) => this.#key(event));
    this.element.addEventListener("click", (event) => this.#click(event));
    new ResizeObserver(() => this.draw()).observe(this.element);
  }

  #measure(name: string, column: number): { width: number; numeric: boolean } {
    let widest = name.length + 1;
    let numbers = 0;
    let others = 0;
    for (let row = 0; row < Math.min(this.#result.rows, SAMPLED); row += 1) {
      const { kind, text, type } = view(cellText(this.#result, row, column));
      // The first part of a UUID distinguishes rows. The title and the copied text have all of it.
      const shown = kind === "text" && UUID.test(text) ? 12 : text.length;
      widest = Math.max(widest, shown + (type ? type.length + 3 : 0));
      if (kind === "number") numbers += 1;
      else if (kind !== "null") others += 1;
    }
    return {
      width: Math.ceil(Math.min(Math.max(widest * CHARACTER, 56), 340)) + PADDING,
      numeric: numbers > 0 && others === 0,
    };
  }

  get #step(): number {
    return this.#result.rows * ROW <= TALLEST ? ROW : TALLEST / this.#result.rows;
  }

  /** Returns the first and last visible row, counted from 0. */
  #window(): [number, number] {
    const top = Math.floor(this.element.scrollTop / this.#step);
    const count = Math.ceil(this.element.clientHeight / ROW);
    return [Math.max(0, top - SPARE), Math.min(this.#result.rows, top + count + SPARE)];
  }

  /** Draws the visible rows if they changed, or if `again` is set. */
  draw(again = false): void {
    const [first, last] = this.#window();
    if (!again && first === this.#first && last === this.#last) return;
    const focused = this.#body.contains(document.activeElement);
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
        String(row + 1),
      ),
    );
    // With proportional scrolling, the visible rows still have their normal height.
    const top =
      this.#step === ROW
        ? row * ROW
        : this.element.scrollTop + (row - Math.floor(this.element.scrollTop / this.#step)) * ROW;
    line.style.top = `${top}px`;
    line.append(...this.#result.columns.map((_, column) => this.#drawCell(row, column)));
    return line;
  }

  #drawCell(row: number, column: number): HTMLElement {
    const { kind, text, type } = view(cellText(this.#result, row, column));
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
        h("span", { class: "unseen" }, "no value"),
      );
    else if (kind === "object")
      cell.append(h("span", { class: "type" }, type ?? ""), text ? ` ${text}` : "");
    else cell.append(text);
    if (text.length > 12) cell.title = text;
    return cell;
  }

  #focused(): HTMLElement | null {
    return this.#body.querySelector<HTMLElement>(
      `[data-row="${this.#row}"][data-column="${this.#column}"]`,
    );
  }

  /** Moves the focus and scrolls to it. */
  #go(row: number, column: number): void {
    this.#row = Math.max(0, Math.min(row, this.#result.rows - 1));
    this.#column = Math.max(0, Math.min(column, this.#result.columns.length - 1));
    const step = this.#step;
    const space = this.element.clientHeight - ROW;
    const top = this.#row * step;
    if (top < this.element.scrollTop) this.element.scrollTop = top;
    else if (top + ROW > this.element.scrollTop + space) this.element.scrollTop = top + ROW - space;
    this.draw(true);
    const cell = this.#focused();
    cell?.focus({ preventScroll: true });
    cell?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  #click(event: MouseEvent): void {
    const cell = (event.target as HTMLElement).closest<HTMLElement>("[role=gridcell]");
    if (!cell) return;
    const row = Number(cell.dataset["row"]);
    const column = Number(cell.dataset["column"]);
    this.#go(row, column);
    if (cell.classList.contains("object")) this.#open(row, column);
  }

  #key(event: KeyboardEvent): void {
    const page = Math.max(1, Math.floor(this.element.clientHeight / ROW) - 2);
    const whole = event.ctrlKey || event.metaKey;
    const last = this.#result.columns.length - 1;
    const moves: Record<string, [number, number]> = {
      ArrowDown: [this.#row + 1, this.#column],
      ArrowUp: [this.#row - 1, this.#column],
      ArrowRight: [this.#row, this.#column + 1],
      ArrowLeft: [this.#row, this.#column - 1],
      PageDown: [this.#row + page, this.#column],
      PageUp: [this.#row - page, this.#column],
      Home: [whole ? 0 : this.#row, 0],
      End: [whole ? this.#result.rows - 1 : this.#row, last],
    };
    const to = moves[event.key];
    if (to) {
      event.preventDefault();
      this.#go(...to);
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.#open(this.#row, this.#column);
    } else if (event.key === "c" && whole && String(getSelection()) === "") {
      event.preventDefault();
      const { kind, text } = view(cellText(this.#result, this.#row, this.#column));
      void navigator.clipboard.writeText(
        kind === "object" ? cellText(this.#result, this.#row, this.#column) : text,
      );
    }
  }

  /** Returns the focus to the current cell. */
  focus(): void {
    this.draw(true);
    this.#focused()?.focus({ preventScroll: true });
  }
}
