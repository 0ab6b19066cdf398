// The panel that builds a query: the tree of the loaded templates beside the editor. A tick adds
// the column of a value, and its removal removes the column.
import { builderNodes, type BuilderNode } from "./builder-nodes";
import { confirmed } from "./confirm";
import { byId, debounced, h } from "./dom";
import type { Editor } from "./editor";
import { EngineError, type Engine } from "./engine";
import type { Contents } from "./protocol";
import { columnsOf, firstQuery, pathIn, withoutValue, withValue, type Value } from "./query-build";
import { readQuery } from "./query-text";
import { remember, remembered } from "./remember";
import { texts } from "./texts";
import { reasonOf } from "./fault";

const OPEN = "aqlite-builder";
/** The maximum number of values that a search shows. */
const FOUND = 60;
const KEYS: Record<string, (index: number, last: number) => number> = {
  ArrowDown: (index) => index + 1,
  ArrowUp: (index) => index - 1,
  Home: () => 0,
  End: (_, last) => last,
};

/** A visible line of the tree. */
interface Line {
  node: BuilderNode;
  level: number;
  position: number;
  siblings: number;
  above: BuilderNode | null;
  /** The names of the nodes around a found value. */
  place: string;
  element: HTMLElement;
}

/** The panel. */
export class Builder {
  readonly #engine: Engine;
  readonly #editor: Editor;
  readonly #panel = byId("builder");
  readonly #toggle = byId("build");
  readonly #search = h("input", {
    id: "builder-search",
    type: "search",
    placeholder: texts.builder.findExample,
    autocomplete: "off",
  });
  readonly #tree = h("div", {
    id: "builder-tree",
    role: "tree",
    "aria-label": texts.builder.nodes,
  });
  readonly #status = h("p", { id: "builder-status", class: "quiet", role: "status" });
  readonly #undo = h("p", { class: "actions" });
  /** The templates of the source, in its order. `null` for a template whose nodes are not read yet. */
  #templates = new Map<string, BuilderNode | null>();
  readonly #open = new Set<string>();
  #lines: Line[] = [];
  #active = "";
  #where = "";
  /** The end of the last tick. Ticks run one after another, each on the text after the previous one. */
  #last: Promise<void> = Promise.resolve();

  constructor(engine: Engine, editor: Editor) {
    this.#engine = engine;
    this.#editor = editor;
    this.#draw();
    this.#listen();
    this.#show(remembered("localStorage", OPEN) === "open");
  }

  #draw(): void {
    const close = () => {
      this.#show(false);
      this.#toggle.focus();
    };
    this.#panel.append(
      h(
        "div",
        { class: "bar" },
        h("h2", { id: "builder-title" }, texts.query.build),
        h(
          "button",
          { type: "button", id: "builder-new", onclick: () => this.#clear() },
          texts.builder.clear,
        ),
        h(
          "button",
          { type: "button", class: "icon", "aria-label": texts.builder.close, onclick: close },
          "✕",
        ),
      ),
      h("label", { class: "unseen", for: "builder-search" }, texts.builder.find),
      this.#search,
      this.#tree,
      this.#status,
      this.#undo,
    );
  }

  #listen(): void {
    this.#toggle.addEventListener("click", () => {
      this.#show(this.#panel.hidden);
      if (!this.#panel.hidden) this.#search.focus();
    });
    this.#search.addEventListener(
      "input",
      debounced(150, () => void this.#find()),
    );
    this.#search.addEventListener("keydown", (event) => {
      if (event.key !== "ArrowDown") return;
      event.preventDefault();
      this.#move(0);
    });
    this.#tree.addEventListener("keydown", (event) => this.#press(event));
    this.#tree.addEventListener("click", (event) => this.#click(event));
    this.#tree.addEventListener("dblclick", (event) => this.#insert(this.#at(event)));
    this.#tree.addEventListener("dragstart", (event) => {
      const value = this.#at(event)?.node.value;
      if (value) event.dataTransfer?.setData("text/plain", this.#path(value));
    });
  }

  /** Shows the templates of the source. */
  async load({ place, set }: Contents, templates: string[]): Promise<void> {
    const where = [place ?? set?.id ?? "", ...templates].join("\n");
    if (where === this.#where) return;
    this.#where = where;
    this.#templates = new Map(templates.map((template) => [template, null]));
    if (!this.#panel.hidden) await this.#find();
  }

  /** Updates the ticks after a change of the query. */
  sync(): void {
    if (this.#panel.hidden) return;
    const query = readQuery(this.#editor.text);
    for (const { node, element } of this.#lines)
      if (node.value)
        element.setAttribute(
          "aria-checked",
          String(query !== null && columnsOf(query, node.value).length > 0),
        );
  }

  /** Removes the message and the undo button of the last step, because another query is shown. */
  renew(): void {
    this.#say("");
    this.sync();
  }

  #show(isOpen: boolean): void {
    this.#panel.hidden = !isOpen;
    this.#toggle.setAttribute("aria-expanded", String(isOpen));
    remember("localStorage", OPEN, isOpen ? "open" : "");
    if (isOpen && this.#where) void this.#find();
  }

  #clear(): void {
    this.#editor.rewrite("");
    this.#say(texts.builder.cleared, true);
    this.#search.focus();
  }

  #say(text: string, isUndoable = false): void {
    this.#status.textContent = text;
    const undo = () => {
      this.#editor.step("undo");
      this.#say(texts.builder.back);
      this.#move(this.#index());
    };
    const button = h(
      "button",
      { type: "button", id: "builder-undo", onclick: undo },
      texts.frame.undo,
    );
    this.#undo.replaceChildren(...(isUndoable ? [button] : []));
  }

  // --- the tree

  /** Reads the nodes of a template, unless they were read. */
  async #describe(template: string): Promise<void> {
    const where = this.#where;
    if (this.#templates.get(template) !== null) return;
    const found = await this.#engine.call("describe", { template, language: texts.language });
    if (found && where === this.#where)
      this.#templates.set(template, builderNodes(template, found.tree));
  }

  /** Draws the tree, or the values that the search finds. */
  async #find(): Promise<void> {
    const wanted = this.#search.value.trim().toLowerCase();
    const where = this.#where;
    try {
      if (wanted === "" && this.#templates.size > 1) this.#drawLines(this.#visible());
      for (const template of this.#templates.keys()) await this.#describe(template);
    } catch (error) {
      this.#say(reasonOf(error));
    }
    const isLatest = where === this.#where && wanted === this.#search.value.trim().toLowerCase();
    if (isLatest) this.#drawLines(wanted === "" ? this.#visible() : this.#found(wanted));
  }

  #roots(): BuilderNode[] {
    return [...this.#templates].map(
      ([template, node]) =>
        node ?? {
          ...{ key: template, label: template, detail: "", description: "" },
          ...{ value: null, children: [] },
        },
    );
  }

  /** Returns the lines of the open branches. */
  #visible(): Omit<Line, "element">[] {
    const lines: Omit<Line, "element">[] = [];
    const add = (nodes: BuilderNode[], above: BuilderNode | null, level: number) => {
      nodes.forEach((node, at) => {
        const siblings = nodes.length;
        lines.push({ node, level, position: at + 1, siblings, above, place: "" });
        if (this.#open.has(node.key)) add(node.children, node, level + 1);
      });
    };
    add(this.#roots(), null, 1);
    return lines;
  }

  #found(wanted: string): Omit<Line, "element">[] {
    const found: { node: BuilderNode; place: string }[] = [];
    const look = (node: BuilderNode, place: string) => {
      const path = node.value?.steps[0].rest ?? "";
      const text = `${node.label} ${node.description} ${path} ${place}`.toLowerCase();
      const isFound = wanted.split(/\s+/).every((word) => text.includes(word));
      if (node.value && isFound && found.length < FOUND) found.push({ node, place });
      for (const child of node.children)
        look(child, place ? `${place} › ${node.label}` : node.label);
    };
    this.#roots().forEach((root) => look(root, ""));
    return found.map(({ node, place }, at) => ({
      ...{ node, place, level: 1, above: null },
      ...{ position: at + 1, siblings: found.length },
    }));
  }

  #drawLines(lines: Omit<Line, "element">[]): void {
    const hadFocus = this.#tree.contains(document.activeElement);
    this.#lines = lines.map((line) => ({ ...line, element: this.#drawLine(line) }));
    const none = this.#templates.size === 0 ? texts.builder.noTemplates : texts.builder.notFound;
    const elements = this.#lines.map(({ element }) => element);
    // A tree without items has no role: it would be announced as an empty widget.
    if (elements.length > 0) this.#tree.setAttribute("role", "tree");
    else this.#tree.setAttribute("role", "group");
    this.#tree.replaceChildren(
      ...(elements.length > 0 ? elements : [h("p", { class: "quiet" }, none)]),
    );
    const active = this.#lines[this.#index()];
    if (active) active.element.tabIndex = 0;
    if (hadFocus) active?.element.focus();
    this.sync();
  }

  #drawLine(line: Omit<Line, "element">): HTMLElement {
    const { node, level, position, siblings, place } = line;
    const isBranch = node.children.length > 0 || this.#templates.get(node.key) === null;
    const mark = h("span", {
      class: node.value ? "builder-box" : "builder-arrow",
      "aria-hidden": "true",
    });
    const element = h(
      "div",
      {
        ...{
          role: "treeitem",
          class: "builder-line",
          tabindex: -1,
          title: node.description || null,
        },
        ...{ "aria-level": level, "aria-posinset": position, "aria-setsize": siblings },
        ...{ draggable: node.value ? "true" : null, "data-key": node.key },
        "aria-checked": node.value ? "false" : null,
        "aria-expanded": isBranch ? String(this.#open.has(node.key)) : null,
      },
      mark,
      h(
        "span",
        { class: "builder-label" },
        place ? h("small", {}, place) : null,
        h("span", {}, node.label),
        " ",
        h("span", { class: "t-type" }, node.detail),
      ),
    );
    element.style.setProperty("--level", String(level - 1));
    return element;
  }

  #index(): number {
    const at = this.#lines.findIndex(({ node }) => node.key === this.#active);
    return Math.max(at, 0);
  }

  #at(event: Event): Line | undefined {
    const element = (event.target as HTMLElement).closest("[role=treeitem]");
    return this.#lines.find((line) => line.element === element);
  }

  /** Moves the focus to a line. */
  #move(index: number): void {
    const line = this.#lines[Math.max(0, Math.min(index, this.#lines.length - 1))];
    if (!line) return;
    for (const { element } of this.#lines) element.tabIndex = -1;
    this.#active = line.node.key;
    line.element.tabIndex = 0;
    line.element.focus();
  }

  #press(event: KeyboardEvent): void {
    const index = this.#index();
    const line = this.#lines[index];
    if (!line || event.altKey) return;
    if (event.ctrlKey || event.metaKey) {
      this.#pressWithControl(event);
      return;
    }
    const to = KEYS[event.key]?.(index, this.#lines.length - 1);
    if (to !== undefined) this.#move(to);
    else if (event.key === "ArrowRight") this.#unfold(line, index);
    else if (event.key === "ArrowLeft") this.#fold(line);
    else if (event.key === " ") this.#choose(line);
    else if (event.key === "Enter") this.#enter(line);
    else return;
    event.preventDefault();
  }

  #pressWithControl(event: KeyboardEvent): void {
    const key = event.key.toLowerCase();
    if (key !== "z" && key !== "y") return;
    event.preventDefault();
    this.#editor.step(key === "y" || event.shiftKey ? "redo" : "undo");
    this.#say(key === "y" || event.shiftKey ? texts.builder.repeated : texts.builder.undone);
  }

  #enter(line: Line): void {
    if (line.node.value) this.#insert(line);
    else this.#choose(line);
  }

  #unfold(line: Line, index: number): void {
    const isFolded = line.element.getAttribute("aria-expanded") === "false";
    if (isFolded) this.#flip(line.node);
    else if (line.node.children.length > 0) this.#move(index + 1);
  }

  #fold(line: Line): void {
    if (line.element.getAttribute("aria-expanded") === "true") this.#flip(line.node);
    else if (line.above) this.#move(this.#lines.findIndex(({ node }) => node === line.above));
  }

  /** Opens or closes a branch. Branches with a single branch below open with it. */
  #flip(node: BuilderNode): void {
    if (this.#open.delete(node.key)) {
      this.#drawLines(this.#visible());
      return;
    }
    const open = (one: BuilderNode) => {
      this.#open.add(one.key);
      const below = one.children.filter(({ children }) => children.length > 0);
      if (below.length === 1 && one.children.length === 1) below.forEach(open);
    };
    open(node);
    this.#drawLines(this.#visible());
  }

  #click(event: MouseEvent): void {
    const line = this.#at(event);
    if (!line) return;
    this.#move(this.#lines.indexOf(line));
    const isMark = (event.target as HTMLElement).closest(".builder-box") !== null;
    if (isMark || !line.node.value) this.#choose(line);
  }

  /** Ticks a value, or opens or closes a branch. */
  #choose({ node }: Line): void {
    const { value } = node;
    if (!value) this.#flip(node);
    else
      this.#last = this.#last.then(() => this.#tick(value)).catch((error) => this.#failed(error));
  }

  #failed(error: unknown): void {
    this.#say(error instanceof EngineError ? error.message : String(error));
  }

  // --- the query

  #path(value: Value): string {
    return pathIn(readQuery(this.#editor.text), value);
  }

  #insert(line: Line | undefined): void {
    if (line?.node.value) this.#editor.insert(this.#path(line.node.value));
  }

  /** Adds or removes the columns of a value. */
  async #tick(value: Value): Promise<void> {
    const text = this.#editor.text;
    const query = readQuery(text);
    const isTicked = query !== null && columnsOf(query, value).length > 0;
    if (text.trim() === "") {
      await this.#change(text, firstQuery(value), "added");
      return;
    }
    const next = query && (isTicked ? withoutValue(query, value) : withValue(query, value));
    const isSafe = next === "" || (next !== null && (await this.#isValid(text, next)));
    if (isSafe && next !== null) await this.#change(text, next, isTicked ? "removed" : "added");
    else if (isTicked) this.#say(texts.builder.needed(value));
    else await this.#replace(value);
  }

  /** Whether the engine finds no error in any of the texts. */
  async #isValid(...texts: string[]): Promise<boolean> {
    for (const q of texts) {
      const found = await this.#engine.call("diagnose", { q });
      if (found.some(({ severity }) => severity === "error")) return false;
    }
    return true;
  }

  /** Returns the text in the form of the formatter. */
  async #formatted(q: string): Promise<string> {
    return q === "" ? "" : this.#engine.call("format", { q });
  }

  /** Changes the query. The new text is formatted only if the old text was. */
  async #change(text: string, next: string, how: "added" | "removed"): Promise<void> {
    const isFormatted = text.trim() === "" || (await this.#formatted(text)).trim() === text.trim();
    const changed = isFormatted ? (await this.#formatted(next)).trimEnd() : next;
    // The user typed while the engine was checking. The change would discard these letters, so it is
    // dropped, and the user can tick again.
    if (this.#editor.text !== text) return;
    this.#editor.rewrite(changed);
    this.#say(changed === "" ? texts.builder.empty : texts.builder[how]);
  }

  /** Asks whether to replace a query to which no column can be added. */
  async #replace(value: Value): Promise<void> {
    const isConfirmed = await confirmed({
      title: texts.builder.replaceTitle,
      about: texts.builder.replaceAbout(value),
      yes: texts.builder.replaceYes,
      no: texts.builder.replaceNo,
    });
    this.#move(this.#index());
    if (!isConfirmed) return;
    this.#editor.rewrite((await this.#formatted(firstQuery(value))).trimEnd());
    this.#say(texts.builder.replaced, true);
  }
}
