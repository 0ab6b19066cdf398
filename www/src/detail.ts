// The panel that shows one object as a tree.
import { byId, copy } from "./dom";
import { parse, print } from "./json";
import { tree } from "./tree";

/** The panel; one object at a time. */
export class Detail {
  readonly #panel = byId("detail");
  #text = "";
  #back: (() => void) | undefined;

  constructor() {
    byId("detail-close").addEventListener("click", () => this.close());
    const button = byId<HTMLButtonElement>("detail-copy");
    button.addEventListener("click", () => void copy(button, this.#text));
    this.#panel.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.close();
    });
  }

  /** Shows the JSON text of an object; `back` puts the focus back where it was. */
  show(title: string, text: string, back: () => void): void {
    const value = parse(text);
    this.#text = print(value);
    this.#back = back;
    byId("detail-title").textContent = title;
    byId("detail-body").replaceChildren(tree(title, value));
    this.#panel.hidden = false;
    byId("detail-body").focus({ preventScroll: true });
    if (matchMedia("(max-width: 1100px)").matches) this.#panel.scrollIntoView({ block: "nearest" });
  }

  /** Closes the panel. */
  close(): void {
    if (this.#panel.hidden) return;
    this.#panel.hidden = true;
    this.#back?.();
  }
}
