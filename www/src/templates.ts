// The templates view: the content of a template, a query from each of its nodes, and a form.
import { selectedPath, holds, merged, name, query } from "./described";
import { focusIfLost, h, languageName, rove, type Change } from "./dom";
import { EngineError, type Engine } from "./engine";
import { Form, type Flat } from "./form";
import { print } from "./json";
import type { Contents, TemplateDescription, TemplateNode, Patient } from "./protocol";
import { destinationOf } from "./source";
import type { WebTemplate } from "./web-template";
import { texts } from "./texts";
import { reasonOf } from "./fault";

/** The maximum number of nodes that a search shows. */
const FOUND = 60;

/** The functions of the page that the view calls. */
export interface TemplateHost {
  /** Runs a query in the query view. */
  ask(q: string): void;
  change: Change;
}

/** The view. */
export class TemplateView {
  readonly #engine: Engine;
  readonly #host: TemplateHost;
  readonly #templates = h("select", { id: "template" });
  readonly #language = h("select", { id: "template-language" });
  readonly #search = h("input", {
    id: "template-search",
    type: "search",
    placeholder: texts.templates.findExample,
    autocomplete: "off",
  });
  readonly #tree = h("div", { id: "template-tree", class: "nodes" });
  readonly #form = h("div", { id: "template-form" });
  readonly #patient = h("select", { id: "form-patient", required: true });
  readonly #saving = h("button", { id: "form-save", class: "primary" }, texts.templates.save);
  readonly #composer = h("input", {
    id: "form-composer",
    value: texts.templates.composerDefault,
    autocomplete: "off",
  });
  readonly #territory = h("input", {
    id: "form-territory",
    value: new Intl.Locale(navigator.language).region ?? "GB",
    size: 3,
    maxlength: 2,
    autocomplete: "off",
  });
  readonly #outcome = h("div", { id: "form-outcome", class: "messages", "aria-live": "polite" });
  readonly #panes: Record<string, HTMLElement>;
  #described: TemplateDescription | undefined;
  #entered: Form | undefined;
  /** The entered values, while the form is drawn again in another language. */
  readonly #drafts = new Map<string, Map<string, string>>();
  readonly #destination = h("p", { id: "form-destination", class: "quiet" });
  /** The template on the screen, and its source. */
  #shown = "";
  #where = "";
  /** The number of the latest opened template. Answers about earlier ones are ignored. */
  #opens = 0;

  constructor(root: HTMLElement, engine: Engine, host: TemplateHost) {
    this.#engine = engine;
    this.#host = host;
    this.#panes = { tree: this.#drawTreePane(), form: this.#drawFormPane() };
    root.append(this.#drawHead(), ...Object.values(this.#panes));
    this.#templates.addEventListener("change", () => void this.#open(""));
    this.#language.addEventListener("change", () => void this.#open(this.#language.value));
    this.#search.addEventListener("input", () => this.#drawTree());
  }

  #drawHead(): HTMLElement {
    const choice = h(
      "div",
      { class: "segmented", role: "radiogroup", "aria-label": texts.templates.showAs },
      h(
        "button",
        { role: "radio", id: "template-tree-tab", type: "button", "aria-checked": "true" },
        texts.templates.tree,
      ),
      h(
        "button",
        {
          role: "radio",
          id: "template-form-tab",
          type: "button",
          "aria-checked": "false",
          tabindex: -1,
        },
        texts.templates.form,
      ),
    );
    rove(choice, (button) => this.#show(button.id === "template-form-tab" ? "form" : "tree"));
    return h(
      "div",
      { class: "card template-head" },
      h(
        "p",
        { class: "field" },
        h("label", { for: "template" }, texts.templates.one),
        this.#templates,
      ),
      h(
        "p",
        { class: "field" },
        h("label", { for: "template-language" }, texts.frame.language),
        this.#language,
      ),
      choice,
    );
  }

  #drawTreePane(): HTMLElement {
    return h(
      "section",
      { class: "card template-pane", "aria-label": texts.templates.nodes },
      h(
        "p",
        { class: "field" },
        h("label", { for: "template-search" }, texts.templates.find),
        this.#search,
      ),
      h("p", { class: "quiet" }, texts.templates.about),
      this.#tree,
    );
  }

  #drawFormPane(): HTMLElement {
    const form = h(
      "form",
      { class: "card template-pane", hidden: true, "aria-label": texts.templates.formTitle },
      h(
        "div",
        { class: "fields" },
        h(
          "p",
          { class: "field" },
          h("label", { for: "form-patient" }, texts.templates.patient),
          this.#patient,
        ),
        h(
          "p",
          { class: "field" },
          h("label", { for: "form-composer" }, texts.templates.composer),
          this.#composer,
        ),
        h(
          "p",
          { class: "field" },
          h("label", { for: "form-territory" }, texts.templates.territory),
          this.#territory,
        ),
      ),
      this.#form,
      this.#destination,
      h(
        "div",
        { class: "actions" },
        this.#saving,
        h(
          "button",
          { id: "form-flat", type: "button", onclick: () => this.#showFlat() },
          texts.templates.flat,
        ),
      ),
      this.#outcome,
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.#save();
    });
    return form;
  }

  #show(pane: string): void {
    for (const [name, element] of Object.entries(this.#panes)) element.hidden = name !== pane;
    for (const name of ["tree", "form"]) {
      const tab = document.getElementById(`template-${name}-tab`);
      tab?.setAttribute("aria-checked", String(name === pane));
      if (tab) tab.tabIndex = name === pane ? 0 : -1;
    }
  }

  /** Shows the content of the repository. */
  async load({ place, set }: Contents, templates: string[], patients: Patient[]): Promise<void> {
    const where = place ?? set?.id ?? "";
    this.#destination.textContent = destinationOf(place);
    const before = this.#templates.value;
    this.#templates.replaceChildren(
      ...templates.map((id) => h("option", { value: id, selected: id === before }, id)),
    );
    this.#drawPatients(patients);
    if (this.#shown === this.#templates.value && this.#where === where) return;
    this.#where = where;
    await this.#open("");
  }

  /** Draws the list of patients. A patient that is gone is not replaced by another. */
  #drawPatients(patients: Patient[]): void {
    const before = this.#patient.value;
    const isGone = this.#patient.options.length > 0 && !patients.some(({ ehr }) => ehr === before);
    this.#patient.replaceChildren(
      ...(isGone ? [h("option", { value: "" }, texts.data.targetNone)] : []),
      ...patients.map(({ ehr, label: name }) =>
        h("option", { value: ehr, selected: ehr === before }, name),
      ),
    );
  }

  /** Shows the selected template in a language. Empty selects that of the page, else its own. */
  async #open(language: string): Promise<void> {
    const [template, opening] = [this.#templates.value, (this.#opens += 1)];
    // The entered values are stored by template and source, so they survive the choice of another.
    if (this.#entered) this.#drafts.set(this.#shown, this.#entered.texts());
    this.#described = undefined;
    this.#entered = undefined;
    this.#outcome.replaceChildren();
    if (!template) return this.#say(texts.templates.none, texts.templates.noneAbout);
    const wanted = { template, language: language || texts.language };
    const described = await this.#engine.call("describe", wanted);
    if (opening !== this.#opens) return;
    if (!described) return this.#say(texts.templates.notShown, texts.templates.notShownAbout);
    this.#shown = template;
    this.#described = described;
    if (!language)
      this.#language.replaceChildren(
        ...described.languages.map((one) =>
          h("option", { value: one, selected: one === texts.language }, languageName(one)),
        ),
      );
    this.#drawTree();
    await this.#drawForm(template, opening);
  }

  async #drawForm(template: string, opening: number): Promise<void> {
    this.#form.replaceChildren(h("p", { class: "quiet" }, texts.templates.making));
    try {
      const web = JSON.parse(await this.#engine.call("webTemplate", template)) as WebTemplate;
      if (opening !== this.#opens) return;
      this.#entered = new Form(web, this.#language.value);
      this.#entered.enter(this.#drafts.get(template) ?? new Map());
      this.#form.replaceChildren(this.#entered.element);
    } catch (error) {
      if (opening !== this.#opens) return;
      this.#form.replaceChildren(
        h("p", { class: "bad" }, texts.templates.noForm({ reason: reasonOf(error) })),
      );
    }
  }

  #say(title: string, about: string): void {
    this.#shown = "";
    this.#tree.replaceChildren(h("div", { class: "empty" }, h("h3", {}, title), h("p", {}, about)));
    this.#form.replaceChildren();
  }

  #drawTree(): void {
    const tree = this.#described?.tree;
    if (!tree) return;
    const wanted = this.#search.value.trim().toLowerCase();
    if (wanted === "") this.#tree.replaceChildren(this.#branch(tree, true));
    else this.#tree.replaceChildren(...this.#found(tree, wanted));
  }

  #found(tree: TemplateNode, wanted: string): HTMLElement[] {
    const found: HTMLElement[] = [];
    const look = (whole: TemplateNode, above: string) => {
      const node = merged(whole);
      const place = above ? `${above} › ${name(node)}` : name(node);
      const text = `${name(node)} ${node.id ?? ""} ${node.description ?? ""}`.toLowerCase();
      if (found.length < FOUND && text.includes(wanted))
        found.push(
          h(
            "div",
            { class: "branch node-found" },
            h("small", {}, above),
            this.#line(node),
            this.#ask(node),
          ),
        );
      for (const child of node.children ?? []) look(child, place);
    };
    look(tree, "");
    return found.length > 0 ? found : [h("p", { class: "quiet" }, texts.templates.notFound)];
  }

  #branch(whole: TemplateNode, open: boolean): HTMLElement {
    const node = merged(whole);
    const below = node.children ?? [];
    if (below.length === 0) return h("div", { class: "branch" }, this.#line(node), this.#ask(node));
    const children = h("div", { class: "t-children" });
    const details = h("details", {}, h("summary", {}, this.#line(node)), children);
    const fill = () => {
      if (!children.hasChildNodes())
        children.append(...below.map((child) => this.#branch(child, open && below.length === 1)));
    };
    details.addEventListener("toggle", fill);
    if (open) {
      fill();
      details.open = true;
    }
    return h("div", { class: "branch" }, details, this.#ask(node));
  }

  /**
   * Returns the button that creates a query of a node. It is placed beside the line, because a line
   * that opens is a button itself.
   */
  #ask(node: TemplateNode): HTMLElement | null {
    if (!node.path) return null;
    const ask = () => {
      if (this.#described) this.#host.ask(query(this.#shown, this.#described.tree, node));
    };
    return h(
      "button",
      {
        type: "button",
        class: "link ask",
        "aria-label": texts.templates.queryNode({ name: name(node) }),
        onclick: ask,
      },
      texts.templates.query,
    );
  }

  #line(node: TemplateNode): HTMLElement {
    const line = h(
      "span",
      {
        class: "node",
        draggable: "true",
        title: [node.description, `c${selectedPath(node)}`].filter(Boolean).join("\n"),
      },
      h("strong", {}, name(node)),
      " ",
      h("span", { class: "t-type" }, holds(node)),
      " ",
      h("span", { class: "t-hint" }, node.occurrences),
    );
    line.addEventListener("dragstart", (event) => {
      event.stopPropagation();
      event.dataTransfer?.setData("text/plain", `c${selectedPath(node)}`);
    });
    return line;
  }

  #flat(): Flat {
    const context = {
      "ctx/language": this.#language.value,
      "ctx/territory": this.#territory.value,
      "ctx/composer_name": this.#composer.value,
    };
    return { ...context, ...this.#entered?.flat() };
  }

  #showFlat(): void {
    if (this.#isUnreadable()) return;
    this.#outcome.replaceChildren(h("pre", { tabindex: 0 }, h("code", {}, print(this.#flat()))));
  }

  /** Marks the fields with unreadable texts. Returns whether there are any. */
  #isUnreadable(): boolean {
    const found = this.#entered?.unreadable() ?? [];
    this.#entered?.showProblems(found);
    if (found.length === 0) return false;
    const message = texts.templates.unreadable({ count: found.length });
    this.#outcome.replaceChildren(h("p", { class: "bad" }, message));
    return true;
  }

  async #save(): Promise<void> {
    if (!this.#entered || this.#isUnreadable()) return;
    // A second press would store the document again.
    this.#saving.disabled = true;
    try {
      const sent = {
        ehr: this.#patient.value,
        template: this.#shown,
        text: print(this.#flat()),
      };
      const uid = await this.#host.change(texts.templates.saving, () =>
        this.#engine.call("addFlat", sent),
      );
      this.#outcome.replaceChildren(h("p", { class: "good" }, texts.templates.saved({ uid })));
    } catch (error) {
      const keys = error instanceof EngineError ? error.keys : [];
      const elsewhere = this.#entered?.showProblems(keys) ?? keys;
      const lines =
        keys.length === 0
          ? reasonOf(error).split("\n")
          : elsewhere.map(({ key, message }) => `${key}: ${message}`);
      const marked = keys.length - elsewhere.length;
      const first =
        marked > 0 ? texts.templates.notSavedFields({ count: marked }) : texts.templates.notSaved;
      this.#outcome.replaceChildren(
        ...[first, ...lines].map((line) => h("p", { class: "bad" }, line)),
      );
    } finally {
      this.#saving.disabled = false;
      focusIfLost(this.#saving);
    }
  }
}
