// The panel with one cell: its object as a tree, and the document that contains it.
import { byId, copy, h, rove } from "./dom";
import { parse, print } from "./json";
import { Paper } from "./composition-view";
import { tree } from "./tree";
import { texts } from "./texts";
import { languageOf, reasonOf } from "./fault";

/** Returns the JSON text of the document around a cell, or `null`. */
export type DocumentOf = () => Promise<string | null>;

/** A cell: its title, the path of its column, its JSON text. */
export interface Cell {
  title: string;
  path: string | null;
  text: string;
}

/** The panel. It shows one object at a time. */
export class Detail {
  readonly #panel = byId("detail");
  #title = "";
  #text = "";
  #path: string | null = null;
  #back: (() => void) | undefined;
  #document: DocumentOf | undefined;
  /** The number of the latest drawing. A document that arrives after another one is not drawn. */
  #drawings = 0;

  constructor() {
    rove(byId("detail-form"), (button) =>
      button.id === "detail-where" ? void this.#showDocument() : this.#showObject(),
    );
    byId("detail-close").addEventListener("click", () => this.close());
    const button = byId<HTMLButtonElement>("detail-copy");
    button.addEventListener("click", () => void copy(button, this.#text));
    this.#panel.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.close();
    });
  }

  /**
   * Shows a cell. `document` loads its document. `back` returns the focus to its previous place.
   * With `focused`, the focus moves to the object.
   */
  show(
    { title, path, text }: Cell,
    document: DocumentOf,
    back: () => void,
    focused: boolean,
  ): void {
    this.#title = title;
    this.#text = print(parse(text));
    this.#path = path;
    this.#back = back;
    this.#document = document;
    byId("detail-title").textContent = title;
    this.#showObject();
    this.#panel.hidden = false;
    if (focused) byId("detail-body").focus({ preventScroll: true });
    if (matchMedia("(max-width: 1100px)").matches) this.#panel.scrollIntoView({ block: "nearest" });
  }

  #check(form: "object" | "where"): void {
    for (const one of ["object", "where"]) {
      byId(`detail-${one}`).setAttribute("aria-checked", String(one === form));
      byId(`detail-${one}`).tabIndex = one === form ? 0 : -1;
    }
  }

  #showObject(): void {
    this.#drawings += 1;
    this.#check("object");
    byId("detail-body").replaceChildren(tree(this.#title, parse(this.#text)));
  }

  async #showDocument(): Promise<void> {
    this.#check("where");
    const [cell, mine] = [this.#text, (this.#drawings += 1)];
    const body = byId("detail-body");
    try {
      const text = await this.#document?.();
      if (mine !== this.#drawings) return;
      if (!text) {
        body.replaceChildren(h("p", { class: "quiet" }, texts.results.noDocument));
        return;
      }
      const paper = new Paper(parse(text), parse(cell), this.#path);
      body.replaceChildren(paper.element);
      paper.reveal();
    } catch (error) {
      if (mine !== this.#drawings) return;
      body.replaceChildren(h("p", { class: "bad", lang: languageOf(error) }, reasonOf(error)));
    }
  }

  /** Closes the panel. */
  close(): void {
    if (this.#panel.hidden) return;
    // A new result also closes the panel. The focus may be in the editor then, and must stay there.
    const isInside = this.#panel.contains(document.activeElement);
    this.#panel.hidden = true;
    if (isInside) this.#back?.();
  }
}
