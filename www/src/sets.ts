// The data sets of this browser: open, create, rename, remove, and export to a file.
import { confirmed } from "./confirm";
import { focusIfLost, h, saveBlob, type Change } from "./dom";
import type { Engine } from "./engine";
import type { Contents, DataSet, RemovedSet } from "./protocol";
import { Work } from "./work";
import { dateOf, texts } from "./texts";
import { languageOf, reasonOf } from "./fault";

function size(bytes: number): string {
  return bytes < 1_000_000
    ? texts.sets.kilobytes({ kilobytes: Math.ceil(bytes / 1000) })
    : texts.sets.megabytes({ megabytes: Math.round(bytes / 1_000_000) });
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
 * The line of a data set in the list. Updates reuse the line, because the user may be typing a name
 * in it.
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
    placeholder: texts.sets.example,
  });
  /** The removed data sets that can be restored. */
  readonly #removed = h("ul", { class: "sets-removed", "aria-live": "polite" });
  /** The lines of these data sets, with the timers that end them. */
  readonly #offers = new Map<string, { element: HTMLElement; timer: number }>();
  readonly #said = h("p", { class: "messages", "aria-live": "polite" });
  readonly #work = new Work();
  /** Moves a lost focus after the data sets are drawn again; `null` without need. */
  #wanted: (() => void) | null = null;
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
      h("label", { class: "unseen", for: "set-name" }, texts.sets.name),
      this.#name,
      h("button", { id: "set-new" }, texts.sets.new),
    );
    made.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.#do(texts.sets.opening, () =>
        this.#engine.call("createSet", this.#name.value),
      ).then((done) => (done ? (this.#name.value = "") : null));
    });
    const whole = h(
      "button",
      { id: "export", type: "button", onclick: () => void this.#export() },
      texts.sets.export,
    );
    return h(
      "section",
      { class: "card", "aria-labelledby": "sets-title" },
      h("h2", { id: "sets-title" }, texts.sets.title),
      h("p", { class: "quiet" }, texts.sets.about),
      this.#list,
      made,
      h("div", { class: "actions" }, whole),
      this.#work.element,
      this.#said,
      this.#removed,
    );
  }

  /** Shows the data sets; none while a server is selected. */
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
    await this.#drawRemoved();
    this.#wanted?.();
    this.#wanted = null;
  }

  /** Creates an empty line of the list. */
  #line(id: string): Line {
    const name = h("input", { class: "set-name", maxlength: 80, autocomplete: "off" });
    name.addEventListener(
      "change",
      () =>
        void this.#do(texts.sets.renaming, () =>
          this.#engine.call("renameSet", { id, name: name.value }),
        ),
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
    name.setAttribute("aria-label", texts.sets.nameOf(set));
    about.textContent = `${size(set.bytes)} · ${dateOf(set.created)}`;
    element.setAttribute("aria-current", String(set.current));
    if (set.current)
      actions.replaceChildren(h("strong", { class: "set-current" }, texts.sets.isOpen));
    else
      actions.replaceChildren(
        this.#opening(set),
        h(
          "button",
          {
            type: "button",
            "aria-label": texts.sets.removeSet(set),
            onclick: () => void this.#remove(set),
          },
          texts.sets.remove,
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
        "aria-label": texts.sets.openSet({ name }),
        onclick: () => void this.#do(texts.sets.opening, open).then(() => this.#focusOn(id)),
      },
      texts.sets.open,
    );
  }

  async #remove({ id, name, bytes, created }: DataSet): Promise<void> {
    const about = texts.sets.removeAbout({ size: size(bytes), date: dateOf(created) });
    if (
      !(await confirmed({
        title: texts.sets.removeTitle({ name }),
        about,
        yes: texts.sets.remove,
        no: texts.sets.keep,
      }))
    )
      return;
    if (!(await this.#do(texts.sets.removing, () => this.#engine.call("removeSet", id)))) return;
    // The button that had the focus is removed when the data sets are drawn again.
    this.#wanted = () => focusIfLost(this.#removed.querySelector<HTMLElement>(`[data-id="${id}"]`));
  }

  /**
   * Draws the removed data sets, the latest first, each with its undo, which other steps do not
   * end. Lines that remain are not drawn again, because one may have the focus.
   */
  async #drawRemoved(): Promise<void> {
    const removed = await this.#engine.call("removedSets", null);
    const gone = [...this.#offers.keys()].filter((id) => !removed.some((set) => set.id === id));
    gone.forEach((id) => this.#endOffer(id));
    for (const set of removed) if (!this.#offers.has(set.id)) this.#offer(set);
  }

  /** Offers to restore a removed data set until it is erased. */
  #offer({ id, name, until }: RemovedSet): void {
    const restore = () =>
      void this.#do(texts.sets.restoring, () => this.#engine.call("restoreSet", id)).then(() =>
        this.#focusOn(id),
      );
    const button = { type: "button", "data-id": id, class: "restore", onclick: restore };
    const words = [texts.sets.removed({ name }), " ", h("button", button, texts.frame.undo)];
    const element = h("li", {}, ...words);
    const timer = window.setTimeout(() => this.#endOffer(id), until - Date.now());
    this.#offers.set(id, { element, timer });
    this.#removed.prepend(element);
  }

  #endOffer(id: string): void {
    const offer = this.#offers.get(id);
    clearTimeout(offer?.timer);
    offer?.element.remove();
    this.#offers.delete(id);
  }

  /** Moves a lost focus to the name of a data set, now and after the data sets are drawn again. */
  #focusOn(id: string): void {
    this.#wanted = () => focusIfLost(this.#lines.get(id)?.name ?? null);
    this.#wanted();
  }

  async #export(): Promise<void> {
    await this.#do(texts.sets.exporting, async () => {
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
        h("span", { class: "bad", lang: languageOf(error) }, reasonOf(error)),
      );
      return false;
    }
  }
}
