// The data sets of this browser: opened, made, named, removed, and saved as a file.
import { count, h, saveBlob } from "./dom";
import type { Engine } from "./engine";
import type { Contents, DataSet } from "./protocol";
import { Work } from "./work";

function size(bytes: number): string {
  return bytes < 1_000_000 ? `${count.format(Math.ceil(bytes / 1000))} kB` : `${count.format(Math.round(bytes / 1_000_000))} MB`;
}

/** A name as part of a file name. */
function slug(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-").replaceAll(/^-|-$/g, "") || "data";
}

/** The card of the data sets. */
export class SetsCard {
  readonly #engine: Engine;
  readonly #changed: () => void;
  readonly #list = h("ul", { class: "sets" });
  readonly #name = h("input", { id: "set-name", required: true, maxlength: 80, autocomplete: "off", placeholder: "Ward 7" });
  readonly #said = h("p", { class: "told", "aria-live": "polite" });
  readonly #work = new Work();
  readonly #removal = h("dialog", { "aria-labelledby": "removal-title" });
  readonly element: HTMLElement;

  /** `changed` hears that another data set is open. */
  constructor(engine: Engine, changed: () => void) {
    this.#engine = engine;
    this.#changed = changed;
    this.element = this.#draw();
  }

  #draw(): HTMLElement {
    const made = h("form", { class: "actions" }, h("label", { class: "unseen", for: "set-name" }, "Name of a new data set"), this.#name, h("button", { id: "set-new" }, "New"));
    made.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.#do(() => this.#engine.call("createSet", this.#name.value)).then((done) => (done ? (this.#name.value = "") : null));
    });
    const whole = h("button", { id: "export", type: "button", onclick: () => void this.#export() }, "Export everything");
    return h(
      "section",
      { class: "card", "aria-labelledby": "sets-title" },
      h("h2", { id: "sets-title" }, "Data sets"),
      h("p", { class: "quiet" }, "Each is a repository of its own, kept in this browser. An export is a file with every version and audit; dropped below, or imported into a server, it is the same again."),
      this.#list,
      made,
      h("div", { class: "actions" }, whole),
      this.#work.element,
      this.#said,
      this.#removal,
    );
  }

  /** Shows the data sets; those of a server are its own matter. */
  async show(contents: Contents): Promise<void> {
    this.element.hidden = contents.set === null;
    if (contents.set === null) return;
    const sets = await this.#engine.call("sets", null);
    this.#list.replaceChildren(...sets.map((set) => this.#line(set, sets)));
  }

  #line(set: DataSet, sets: DataSet[]): HTMLElement {
    const open = h("button", { type: "button", "aria-label": `Open ${set.name}`, onclick: () => void this.#do(() => this.#work.run((progress, signal) => this.#engine.call("openSet", set.id, { progress, signal }))) }, "Open");
    const remove = h("button", { type: "button", "aria-label": `Remove ${set.name}`, onclick: () => this.#askRemoval(set) }, "Remove");
    const name = h("input", { class: "set-name", value: set.name, "aria-label": `Name of ${set.name}`, maxlength: 80, autocomplete: "off" });
    name.addEventListener("change", () => void this.#rename(set, name));
    const current = set.current ? h("strong", { class: "set-current" }, "open") : open;
    return h("li", { "aria-current": set.current ? "true" : null }, name, h("span", { class: "quiet" }, `${size(set.bytes)} · ${new Date(set.created).toLocaleDateString()}`), current, sets.length > 1 && !set.current ? remove : null);
  }

  async #rename(set: DataSet, name: HTMLInputElement): Promise<void> {
    if (!(await this.#do(() => this.#engine.call("renameSet", { id: set.id, name: name.value })))) name.value = set.name;
  }

  #askRemoval(set: DataSet): void {
    const remove = () => {
      this.#removal.close();
      void this.#do(() => this.#engine.call("removeSet", set.id));
    };
    this.#removal.replaceChildren(
      h("h2", { id: "removal-title" }, `Remove “${set.name}”?`),
      h("p", {}, "What is in it is gone then. Export it first to keep it."),
      h("div", { class: "actions" }, h("button", { type: "button", class: "primary", onclick: remove }, "Remove"), h("button", { type: "button", onclick: () => this.#removal.close() }, "Keep")),
    );
    this.#removal.showModal();
  }

  async #export(): Promise<void> {
    await this.#do(async () => {
      const blob = await this.#work.run((progress, signal) => this.#engine.call("export", null, { progress, signal }));
      const current = (await this.#engine.call("sets", null)).find((set) => set.current);
      saveBlob(`${slug(current?.name ?? "data")}.ndjson`, blob);
    });
  }

  /** Does something, says what went wrong, and shows what is there then. True when nothing went wrong. */
  async #do(run: () => Promise<unknown>): Promise<boolean> {
    this.#said.replaceChildren();
    try {
      await run();
      this.#changed();
      return true;
    } catch (error) {
      this.#said.replaceChildren(h("span", { class: "bad" }, error instanceof Error ? error.message : String(error)));
      return false;
    }
  }
}
