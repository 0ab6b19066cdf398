// The pane that edits a guide: the text with marks at its problems, an outline whose entries select
// a place of the text, and buttons that store, replace, remove and download the guide.
import { h, save } from "./dom";
import { drawProblems } from "./guide-about";
import { GuideEditor } from "./guide-editor";
import { idOf, outline, type Item, type Kind } from "./guide-outline";
import type { DescribedGuide, GuideProblem } from "./guide-text";
import { texts } from "./texts";

/** The functions of the view that the pane calls. */
export interface EditHost {
  changed(text: string): void;
  /** Runs the guide on its form. */
  run(): void;
  /** Stores the text, under a new id or in place of the stored one. */
  store(): void;
  /** Stores the text under the id of the next free version. */
  version(): void;
  remove(): void;
  discard(): void;
}

/** The state of the text that is edited. */
export interface Edited {
  id: string;
  /** Whether a guide is stored under the id in the text. */
  isStored: boolean;
  /** Whether the text differs from the stored one, or is not stored. */
  isDraft: boolean;
  /** Whether a guide is stored under the listed id. */
  isRemovable: boolean;
}

/** The groups of the outline, with the keys of their titles. */
const GROUPS = [
  ["binding", "bindings"],
  ["rule", "rules"],
  ["term", "terms"],
] as const;

/** The pane, and the card with the outline. */
export class EditPane {
  readonly element: HTMLElement;
  readonly outline = h("section", {
    id: "guide-outline",
    class: "card outline",
    "aria-labelledby": "guide-outline-title",
    hidden: true,
  });
  readonly #host: EditHost;
  readonly #place = h("div", {});
  /** Created when the pane is first opened: most visitors do not edit guides. */
  #editor: GuideEditor | undefined;
  #text = "";
  #marks: GuideProblem[] = [];
  readonly #status = h("p", { id: "guide-status", class: "problems", role: "status" });
  readonly #problems = h("div", {});
  readonly #store: HTMLButtonElement;
  readonly #version: HTMLButtonElement;
  readonly #remove: HTMLButtonElement;
  readonly #discard: HTMLButtonElement;
  #id = "";
  /** The terms of the last readable text by code. */
  #names = new Map<string, string>();
  #language = "";

  constructor(host: EditHost) {
    this.#host = host;
    const button = (id: string, label: string, act: () => void, kind = "") =>
      h("button", { id, type: "button", class: kind, onclick: act }, label);
    this.#store = button("guide-store", texts.frame.save, () => host.store(), "primary");
    this.#version = button("guide-version", texts.guideEdit.saveVersion, () => host.version());
    this.#remove = button("guide-remove", texts.guideEdit.remove, () => host.remove());
    this.#discard = button("guide-discard", texts.guideEdit.discard, () => host.discard());
    const download = button("guide-download", texts.guideEdit.download, () => this.#download());
    this.element = h(
      "div",
      { class: "guide-edit" },
      h(
        "div",
        { class: "actions", role: "group", "aria-label": texts.guideEdit.title },
        this.#store,
        this.#version,
        download,
        this.#discard,
        this.#remove,
      ),
      this.#place,
      this.#status,
      this.#problems,
    );
  }

  /** Opens the pane. */
  open(): void {
    if (this.#editor) return;
    const editor = new GuideEditor({
      changed: (text) => {
        this.#text = text;
        this.#host.changed(text);
      },
      run: () => this.#host.run(),
    });
    this.#editor = editor;
    this.#place.replaceWith(editor.element);
    editor.load(this.#text);
    editor.mark(this.#marks);
  }

  /** Shows another text. */
  load(text: string): void {
    this.#text = text;
    this.#editor?.load(text);
    this.#drawOutline();
  }

  /** Writes another id into the text. Returns false if the text has no id. */
  rename(id: string): boolean {
    const found = idOf(this.#text);
    if (!found || !this.#editor) return false;
    this.#editor.replace(found, id);
    return true;
  }

  /** Enables the buttons of the steps that the state of the text permits. */
  allow({ id, isStored, isDraft, isRemovable }: Edited): void {
    this.#id = id;
    this.#store.textContent = isStored && isDraft ? texts.guideEdit.replace : texts.frame.save;
    this.#store.disabled = !isDraft;
    this.#discard.disabled = !isDraft;
    this.#remove.disabled = !isRemovable;
    this.#version.disabled = id === "";
  }

  /** Marks the problems of a text that is a guide, and shows its names in the outline. */
  described(guide: DescribedGuide, language: string): void {
    this.#names = new Map(guide.terms.map(({ id, text }) => [id, text]));
    this.#language = language;
    this.#mark(guide.problems, texts.guideEdit.fine);
  }

  /** Marks the problems of a text that cannot be read. */
  refused(problems: GuideProblem[], why: string): void {
    this.#mark(problems, why);
  }

  #mark(problems: GuideProblem[], otherwise: string): void {
    this.#marks = problems;
    this.#editor?.mark(problems);
    const errors = problems.filter(({ severity }) => severity === "error").length;
    const warnings = problems.length - errors;
    const words = [
      errors > 0 ? texts.guideEdit.errors({ count: errors }) : "",
      warnings > 0 ? texts.guideEdit.warnings({ count: warnings }) : "",
    ]
      .filter(Boolean)
      .join(", ");
    this.#status.textContent = words || otherwise;
    this.#status.classList.toggle(
      "bad",
      errors > 0 || (!words && otherwise !== texts.guideEdit.fine),
    );
    this.#problems.replaceChildren(
      drawProblems(problems, (problem) => this.#editor?.show(problem)),
    );
    this.#drawOutline();
  }

  #download(): void {
    const isJson = this.#text.trimStart().startsWith("{");
    save(
      `${idOf(this.#text)?.id || this.#id || "guide"}.${isJson ? "gdl2.json" : "gdl"}`,
      isJson ? "application/json" : "text/plain",
      this.#text,
    );
  }

  /** Draws the outline. Groups that are open stay open. */
  #drawOutline(): void {
    const items = outline(this.#text);
    const languages = new Set(items.map(({ language }) => language));
    const chosen = languages.has(this.#language)
      ? this.#language
      : ([...languages].find((language) => language !== "") ?? "");
    const groups = GROUPS.map(([kind, title]) => {
      const here = items.filter(
        (item) =>
          (item.kind === kind || (kind === "binding" && item.kind === "element")) &&
          (item.language === "" || item.language === chosen),
      );
      return this.#drawGroup(kind, texts.guideEdit[title], here);
    });
    this.outline.replaceChildren(
      h("h2", { id: "guide-outline-title" }, texts.guideEdit.outline),
      ...groups,
    );
  }

  #drawGroup(kind: Kind, title: string, items: Item[]): HTMLElement {
    const id = `guide-outline-${kind}`;
    const before = this.outline.querySelector<HTMLDetailsElement>(`#${id}`);
    const lines = items.map((item) =>
      h(
        "li",
        { class: `item-${item.kind}` },
        h(
          "button",
          { type: "button", class: "link", onclick: () => this.#jump(item) },
          this.#names.get(item.code) ?? item.code,
        ),
        " ",
        h("small", {}, item.code),
      ),
    );
    const count = items.filter((item) => item.kind === kind).length;
    return h(
      "details",
      { id, open: before ? before.open : kind !== "term" },
      h("summary", {}, title, " ", h("span", { class: "count" }, String(count))),
      count > 0 ? h("ul", {}, ...lines) : h("p", { class: "quiet" }, texts.guideEdit.none),
    );
  }

  /** Selects an item in the text, which may have changed since the outline was drawn. */
  #jump({ kind, code, language }: Item): void {
    const item = outline(this.#text).find(
      (one) => one.kind === kind && one.code === code && one.language === language,
    );
    if (!item) return;
    this.#editor?.show(item);
    this.#editor?.element.scrollIntoView({ block: "nearest" });
  }
}
