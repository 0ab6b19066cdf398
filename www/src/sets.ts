// The data sets of this browser: open, create, rename, remove, and export to a file.
import { confirmed } from "./confirm";
import { count, h, saveBlob, type Change } from "./dom";
import type { Engine } from "./engine";
import type { Contents, DataSet } from "./protocol";
import { Work } from "./work";

function size(bytes: number): string {
  return bytes < 1_000_000
    ? `${count.format(Math.ceil(bytes / 1000))} kB`
    : `${count.format(Math.round(bytes / 1_000_000))} MB`;
}

/** Converts a name to a part of a file name. */
function slug(name: string): string {
  return (
    name
      .toLowerCase()
      .replaceAll(/[^a-z0-9]+/g, "-")
      .replaceAll(/^-|-$/g, "") || "data"
  );
}

/**
 * A data set in the list. The line stays while others change, so that a name that is being typed
 * stays, too.
 */
interface Line {
  element: HTMLElement;
  name: HTMLInputElement;
  about: HTMLElement;
  actions: HTMLElement;
}

/** The card of the data sets. */
export class SetsCard {
  readonly #engine: Engine;
  readonly #change: Change;
  readonly #lines = new Map<string, Line>();
  readonly #list = h("ul", { class: "sets" });
  readonly #name = h("input", {
    id: "set-name",
    required: true,
    maxlength: 80,
    autocomplete: "off",
    placeholder: "Ward 7",
  });
  readonly #said = h("p", { class: "messages", "aria-live": "polite" });
  readonly #work = new Work();
  readonly element: HTMLElement;

  constructor(engine: Engine, change: Change) {
    this.#engine = engine;
    this.#change = change;
    this.element = this.#draw();
  }

  #draw(): HTMLElement {
    const made = h(
      "form",
      { class: "actions" },
      h("label", { class: "unseen", for: "set-name" }, "Name of a new data set"),
      this.#name,
      h("button", { id: "set-new" }, "New"),
    );
    made.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.#do("Opening", () => this.#engine.call("createSet", this.#name.value)).then(
        (done) => (done ? (this.#name.value = "") : null),
      );
    });
    const whole = h(
      "button",
      { id: "export", type: "button", onclick: () => void this.#export() },
      "Export everything",
    );
    return h(
      "section",
      { class: "card", "aria-labelledby": "sets-title" },
      h("h2", { id: "sets-title" }, "Data sets"),
      h(
        "p",
        { class: "quiet" },
        "Each is a repository of its own, kept in this browser. An export is a file with every version and audit; dropped below, or imported into a server, it is the same again.",
      ),
      this.#list,
      made,
      h("div", { class: "actions" }, whole),
      this.#work.element,
      this.#said,
    );
  }

  /** Shows the data sets. With a server selected, there are none to show. */
  async show(contents: Contents): Promise<void> {
    this.element.hidden = contents.set === null;
    if (contents.set === null) return;
    const sets = await this.#engine.call("sets", null);
    const gone = [...this.#lines.keys()].filter((id) => !sets.some((set) => set.id === id));
    for (const id of gone) {
      this.#lines.get(id)?.element.remove();
      this.#lines.delete(id);
    }
    for (const set of sets) this.#update(set, this.#lines.get(set.id) ?? this.#line(set.id));
  }

  /** Creates an empty line of the list. */
  #line(id: string): Line {
    const name = h("input", { class: "set-name", maxlength: 80, autocomplete: "off" });
    name.addEventListener(
      "change",
      () =>
        void this.#do("Renaming", () => this.#engine.call("renameSet", { id, name: name.value })),
    );
    const [about, actions] = [h("span", { class: "quiet" }), h("span", { class: "actions" })];
    const line = { element: h("li", {}, name, about, actions), name, about, actions };
    this.#list.append(line.element);
    this.#lines.set(id, line);
    return line;
  }

  /** Updates the line of a data set: its description and its actions. */
  #update(set: DataSet, { element, name, about, actions }: Line): void {
    if (document.activeElement !== name) name.value = set.name;
    name.setAttribute("aria-label", `Name of ${set.name}`);
    about.textContent = `${size(set.bytes)} · ${new Date(set.created).toLocaleDateString()}`;
    element.setAttribute("aria-current", String(set.current));
    if (set.current) actions.replaceChildren(h("strong", { class: "set-current" }, "open"));
    else
      actions.replaceChildren(
        this.#opening(set),
        h(
          "button",
          {
            type: "button",
            "aria-label": `Remove ${set.name}`,
            onclick: () => void this.#remove(set),
          },
          "Remove",
        ),
      );
  }

  #opening({ id, name }: DataSet): HTMLElement {
    const open = () =>
      this.#work.run((progress, signal) => this.#engine.call("openSet", id, { progress, signal }));
    return h(
      "button",
      {
        type: "button",
        "aria-label": `Open ${name}`,
        onclick: () => void this.#do("Opening", open),
      },
      "Open",
    );
  }

  async #remove({ id, name, bytes, created }: DataSet): Promise<void> {
    const about = `Its patients and everything written to it, ${size(bytes)} since ${new Date(created).toLocaleDateString()}, are removed from this browser. You can undo it for ten minutes; export it to keep it.`;
    if (!(await confirmed({ title: `Remove “${name}”?`, about, yes: "Remove", no: "Keep" })))
      return;
    if (!(await this.#do("Removing", () => this.#engine.call("removeSet", id)))) return;
    const restore = () => void this.#do("Restoring", () => this.#engine.call("restoreSet", id));
    this.#said.replaceChildren(
      h("span", {}, `“${name}” is removed. `),
      h("button", { id: "restore", type: "button", onclick: restore }, "Undo"),
    );
  }

  async #export(): Promise<void> {
    await this.#do("Exporting", async () => {
      const blob = await this.#work.run((progress, signal) =>
        this.#engine.call("export", null, { progress, signal }),
      );
      const current = (await this.#engine.call("sets", null)).find((set) => set.current);
      saveBlob(`${slug(current?.name ?? "data")}.ndjson`, blob);
    });
  }

  /** Runs a step, shows its error, and draws the data sets. Returns whether it succeeded. */
  async #do(what: string, run: () => Promise<unknown>): Promise<boolean> {
    this.#said.replaceChildren();
    try {
      await this.#change(what, run);
      return true;
    } catch (error) {
      this.#said.replaceChildren(
        h("span", { class: "bad" }, error instanceof Error ? error.message : String(error)),
      );
      return false;
    }
  }
}
