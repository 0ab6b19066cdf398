// The panel that shows one cell: an object as a tree, and the document in which it stands.
import { byId, copy, h } from "./dom";
import { parse, print } from "./json";
import { Paper } from "./paper";
import { tree } from "./tree";

/** Gives the JSON text of the document around a cell, or `null`. */
export type DocumentOf = () => Promise<string | null>;

/** A cell: what it is called, the path of its column, its JSON text. */
export interface Cell {
  title: string;
  path: string | null;
  text: string;
}

/** The panel; one object at a time. */
export class Detail {
  readonly #panel = byId("detail");
  #text = "";
  #path: string | null = null;
  #back: (() => void) | undefined;
  #document: DocumentOf | undefined;

  constructor() {
    byId("detail-where").addEventListener("click", () => void this.#showDocument());
    byId("detail-close").addEventListener("click", () => this.close());
    const button = byId<HTMLButtonElement>("detail-copy");
    button.addEventListener("click", () => void copy(button, this.#text));
    this.#panel.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.close();
    });
  }

  /** Shows a cell; `document` gives what it stands in, `back` puts the focus back where it was. */
  show({ title, path, text }: Cell, document: DocumentOf, back: () => void): void {
    const value = parse(text);
    this.#text = print(value);
    this.#path = path;
    this.#back = back;
    this.#document = document;
    byId("detail-title").textContent = title;
    byId("detail-body").replaceChildren(tree(title, value));
    this.#panel.hidden = false;
    byId("detail-body").focus({ preventScroll: true });
    if (matchMedia("(max-width: 1100px)").matches) this.#panel.scrollIntoView({ block: "nearest" });
  }

  async #showDocument(): Promise<void> {
    const cell = this.#text;
    const body = byId("detail-body");
    try {
      const text = await this.#document?.();
      if (cell !== this.#text) return;
      if (!text) {
        body.replaceChildren(h("p", { class: "quiet" }, "This cell stands in no single document: it is counted, worked out, or said by the EHR itself."));
        return;
      }
      const paper = new Paper(parse(text), parse(cell), this.#path);
      body.replaceChildren(paper.element);
      paper.reveal();
    } catch (error) {
      body.replaceChildren(h("p", { class: "bad" }, error instanceof Error ? error.message : String(error)));
    }
  }

  /** Closes the panel. */
  close(): void {
    if (this.#panel.hidden) return;
    this.#panel.hidden = true;
    this.#back?.();
  }
}
