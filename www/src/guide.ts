// The guide view: select or open a guide, run it on a patient or a form, read outcome and source,
// test it.
import { h, languageName, rove, save, type Change } from "./dom";
import { EngineError, type Engine } from "./engine";
import { drawAbout, drawProblems } from "./guide-about";
import { GuideForm } from "./guide-form";
import { drawOutcome } from "./guide-outcome";
import { list, members, text, type DescribedGuide, type GuideProblem } from "./guide-text";
import { Fixtures } from "./guide-tests";
import { dropped, texts, type TextFile } from "./intake";
import { parse, type Json } from "./json";
import type { Contents, Guide, Patient } from "./protocol";
import { destinationOf } from "./source";

/** The functions of the page that the view calls. */
export interface GuideHost {
  /** Runs a query in the query view. */
  ask(q: string): void;
  change: Change;
}

const PANES = { patient: "Patient", form: "Form", about: "About", tests: "Fixtures" } as const;
type Pane = keyof typeof PANES;

/** A guide in the list. The text is known for guides that were opened here. */
interface Choice extends Guide {
  text?: string;
}

/** The view. */
export class GuideView {
  readonly #engine: Engine;
  readonly #host: GuideHost;
  readonly #guides = h("div", { class: "choices", role: "radiogroup", "aria-label": "Guide" });
  readonly #patient = h("select", { id: "patient" });
  readonly #language = h("select", { id: "guide-language" });
  readonly #run = h("button", { id: "run-guide", class: "primary", type: "button" }, "Run guide");
  readonly #file = h("input", {
    id: "guide-file",
    type: "file",
    multiple: true,
    accept: ".gdl,.gdl2,.json,.yml,.yaml,.zip",
    class: "unseen",
  });
  readonly #messages = h("div", { id: "guide-messages", class: "messages", "aria-live": "polite" });
  readonly #outcome = h("div", { id: "guide-outcome", class: "outcome", "aria-live": "polite" });
  readonly #form = h("form", {
    id: "guide-form",
    class: "outcome",
    "aria-label": "Form of the guide",
  });
  readonly #formOutcome = h("div", {
    id: "guide-form-outcome",
    class: "outcome",
    "aria-live": "polite",
  });
  readonly #about = h("div", { id: "guide-about", class: "outcome" });
  readonly #tests: Fixtures;
  readonly #panes: Record<Pane, HTMLElement>;
  readonly #tabs: HTMLElement;
  readonly #card = h("section", { class: "card guide-result", "aria-label": "The guide" });
  /** The identity of the data, see `Contents`. */
  #of = "";
  readonly #destination = h("small", { id: "guide-destination" });
  #stored: Guide[] = [];
  #opened: Choice[] = [];
  #chosen = "";
  /** The guide that is shown. Empty for none. */
  #text = "";
  /** Counts the descriptions and the runs. Only the latest is shown. */
  #descriptions = 0;
  #runs = 0;
  /** The number of files that are being opened. Nothing runs meanwhile. */
  #opening = 0;
  /** The number of running changes of the screen. */
  #changes = 0;
  #described: DescribedGuide | undefined;
  #entered: GuideForm | undefined;

  constructor(root: HTMLElement, engine: Engine, host: GuideHost) {
    this.#engine = engine;
    this.#host = host;
    this.#tests = new Fixtures((fixture) =>
      engine.call("testGuide", { text: this.#text, fixture }),
    );
    this.#panes = {
      patient: h("div", {}, this.#outcome),
      form: h("div", {}, this.#form, this.#formOutcome),
      about: h("div", {}, this.#about),
      tests: h("div", {}, this.#tests.element),
    };
    this.#tabs = h(
      "div",
      { class: "segmented", role: "radiogroup", "aria-label": "What to see of the guide" },
      ...Object.entries(PANES).map(([name, label]) =>
        h("button", { role: "radio", id: `guide-${name}-tab`, type: "button" }, label),
      ),
    );
    this.#card.append(this.#tabs, ...Object.values(this.#panes));
    root.append(this.#drawChoice(), this.#card);
    this.#listen(root);
    this.#show("patient");
  }

  #drawChoice(): HTMLElement {
    return h(
      "form",
      { class: "card guide-form", onsubmit: (event: Event) => event.preventDefault() },
      h("h2", {}, "Guide"),
      this.#guides,
      h(
        "p",
        { class: "guide-open" },
        h("label", { for: "guide-file", class: "button" }, "Open guides or fixtures…"),
        this.#file,
        h("small", {}, "or drop them here: .gdl, .gdl2.json, .yml, .zip"),
      ),
      this.#messages,
      h("label", { for: "guide-language" }, "Language"),
      this.#language,
      h("label", { for: "patient" }, "Patient"),
      this.#patient,
      this.#run,
    );
  }

  #listen(root: HTMLElement): void {
    rove(this.#tabs, (tab) => this.#show(tab.id.slice("guide-".length, -"-tab".length) as Pane));
    this.#run.addEventListener("click", () => void this.run());
    this.#patient.addEventListener("change", () => void this.run());
    this.#language.addEventListener(
      "change",
      () =>
        void this.#changing(() =>
          this.#describe(this.#language.value).catch((error: unknown) =>
            this.#fail(this.#about, error),
          ),
        ),
    );
    this.#file.addEventListener(
      "change",
      () =>
        void this.#open(Promise.resolve([...(this.#file.files ?? [])])).finally(
          () => (this.#file.value = ""),
        ),
    );
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.#try();
    });
    root.addEventListener("dragover", (event) => event.preventDefault());
    root.addEventListener("drop", (event) => {
      event.preventDefault();
      if (event.dataTransfer) void this.#open(dropped(event.dataTransfer));
    });
  }

  #show(pane: Pane): void {
    for (const [name, element] of Object.entries(this.#panes)) element.hidden = name !== pane;
    for (const tab of this.#tabs.children as Iterable<HTMLElement> & HTMLCollection) {
      const isChosen = tab.id === `guide-${pane}-tab`;
      tab.setAttribute("aria-checked", String(isChosen));
      tab.tabIndex = isChosen ? 0 : -1;
    }
  }

  /**
   * Shows the content of the repository. Entered values and open parts stay, the
   * outcome of other data does not.
   */
  async load({ of, place }: Contents, patients: Patient[]): Promise<void> {
    if (this.#of !== of) this.#outcome.replaceChildren();
    this.#of = of;
    this.#destination.textContent = destinationOf(place);
    try {
      this.#stored = await this.#engine.call("guides", null);
      const before = this.#patient.value;
      this.#patient.replaceChildren(
        ...patients.map(({ ehr, label }) =>
          h("option", { value: ehr, selected: ehr === before }, label),
        ),
      );
      if (before !== this.#patient.value) this.#outcome.replaceChildren();
      this.#drawGuides();
      await this.#choose(this.#chosen);
    } catch (error) {
      this.#fail(this.#outcome, error);
    }
  }

  /**
   * Returns all guides: the opened ones, and those of the repository that no opened guide replaces.
   */
  get #choices(): Choice[] {
    return [
      ...this.#opened,
      ...this.#stored.filter(({ id }) => !this.#opened.some((opened) => opened.id === id)),
    ];
  }

  #drawGuides(): void {
    const choices = this.#choices;
    if (!choices.some(({ id }) => id === this.#chosen)) this.#chosen = choices[0]?.id ?? "";
    this.#guides.replaceChildren(...choices.map((guide) => this.#choice(guide)));
    this.#allow();
    if (!this.#runnable)
      say(
        this.#outcome,
        "Nothing to run",
        "There are no guides or no patients. Make sample patients in the Data view, or open a guide here.",
      );
    else if (!this.#outcome.hasChildNodes())
      say(
        this.#outcome,
        "Ready",
        "Choose a patient and run the guide: its rules read the record with AQL, and what they conclude appears here.",
      );
  }

  get #runnable(): boolean {
    return this.#choices.length > 0 && this.#patient.options.length > 0;
  }

  #allow(): void {
    this.#run.disabled = this.#opening > 0 || !this.#runnable;
  }

  #choice({ id, title, text }: Choice): HTMLElement {
    const input = h("input", {
      type: "radio",
      name: "guide",
      id: `guide-${id}`,
      value: id,
      checked: id === this.#chosen,
    });
    input.addEventListener("change", () => void this.#choose(id).then(() => this.#rerun()));
    return h(
      "label",
      { class: "choice", for: `guide-${id}` },
      input,
      h(
        "span",
        {},
        h("strong", {}, title),
        h("small", {}, text === undefined ? id : `${id} · opened here`),
      ),
    );
  }

  /** Repeats the run on a patient. */
  async #rerun(): Promise<void> {
    if (!this.#panes.patient.hidden) await this.run();
  }

  async #choose(id: string): Promise<void> {
    const choice = this.#choices.find((choice) => choice.id === id) ?? this.#choices[0];
    if (!choice) return this.#none();
    this.#chosen = choice.id;
    await this.#changing(() => this.#read(choice));
  }

  /** Dims the guide while another one is loaded, and disables the choice of languages. */
  async #changing(run: () => Promise<void>): Promise<void> {
    this.#changes += 1;
    this.#card.setAttribute("aria-busy", "true");
    this.#language.disabled = true;
    await run();
    this.#changes -= 1;
    if (this.#changes > 0) return;
    this.#card.removeAttribute("aria-busy");
    this.#language.disabled = false;
  }

  async #read(choice: Choice): Promise<void> {
    try {
      const text = choice.text ?? (await this.#engine.call("guideText", choice.id));
      if (this.#chosen !== choice.id || this.#text === text) return;
      this.#text = text;
      this.#tests.clear();
      await this.#describe("");
    } catch (error) {
      this.#text = "";
      this.#fail(this.#about, error);
    }
  }

  /** Shows that there is no guide. */
  #none(): void {
    this.#text = "";
    this.#described = undefined;
    this.#entered = undefined;
    this.#tests.clear();
    this.#formOutcome.replaceChildren();
    for (const where of [this.#form, this.#about])
      say(
        where,
        "No guide",
        "There is none in the repository. Open one here, or make sample patients in the Data view.",
      );
  }

  /** Draws the guide in a language. Empty selects its own. */
  async #describe(language: string): Promise<void> {
    const description = (this.#descriptions += 1);
    const described = await this.#engine.call("describeGuide", { text: this.#text, language });
    if (description !== this.#descriptions) return;
    this.#described = described;
    const chosen = language || described.language;
    if (!language)
      this.#language.replaceChildren(
        ...described.languages.map((one) =>
          h("option", { value: one, selected: one === chosen }, languageName(one)),
        ),
      );
    this.#about.replaceChildren(
      ...drawAbout(
        described,
        (q) => this.#ask(q),
        (syntax) => void this.#save(syntax),
      ),
    );
    if (this.#opened.some(({ id }) => id === this.#chosen))
      this.#about
        .querySelector(".actions")
        ?.append(
          h(
            "button",
            { id: "store-guide", type: "button", onclick: () => void this.#store() },
            "Store in the repository",
          ),
          this.#destination,
        );
    const before = language ? this.#entered : undefined;
    this.#entered = new GuideForm(described, chosen);
    if (before) this.#entered.take(before);
    const run = h("button", { id: "try-guide", class: "primary" }, "Run on the form");
    if (described.inputs.length === 0)
      say(this.#form, "No inputs", "This guide reads nothing: its rules fire without data.");
    else this.#form.replaceChildren(this.#entered.element);
    this.#form.append(h("p", { class: "actions" }, run));
    this.#formOutcome.replaceChildren();
  }

  /** Runs a query in the query view. A query for one EHR gets the selected patient. */
  #ask(q: string): void {
    this.#host.ask(q.replace("$ehr_id", `'${this.#patient.value}'`));
  }

  async #save(syntax: "json" | "odin"): Promise<void> {
    const printed = await this.#engine.call("printGuide", { text: this.#text, syntax });
    save(
      `${this.#chosen}.${syntax === "json" ? "gdl2.json" : "gdl"}`,
      syntax === "json" ? "application/json" : "text/plain",
      printed,
    );
  }

  /** Stores an opened guide in the repository. */
  async #store(): Promise<void> {
    try {
      const [id, guide] = [
        this.#chosen,
        { name: `${this.#chosen}.gdl`, text: this.#text, ehr: null },
      ];
      await this.#host.change("Storing", () => this.#engine.call("add", guide));
      this.#opened = this.#opened.filter((opened) => opened.id !== id);
      this.#drawGuides();
      this.#about.querySelector("#store-guide")?.remove();
      this.#messages.replaceChildren(h("p", { class: "good" }, `${id} is stored`));
    } catch (error) {
      this.#messages.replaceChildren(
        h("p", { class: "bad" }, error instanceof Error ? error.message : String(error)),
      );
    }
  }

  /** Opens files: guides for the list, fixtures to run on the selected guide. */
  async #open(files: Promise<File[]>): Promise<void> {
    this.#messages.replaceChildren();
    this.#opening += 1;
    this.#allow();
    try {
      await this.#openAll(await texts(await files));
    } catch (error) {
      this.#messages.append(
        h(
          "p",
          { class: "bad" },
          `Not opened: ${error instanceof Error ? error.message : String(error)}`,
        ),
      );
    } finally {
      this.#opening -= 1;
      this.#allow();
    }
  }

  async #openAll(files: TextFile[]): Promise<void> {
    const fixtures: { name: string; text: string }[] = [];
    for (const file of files) {
      const content = await file.text();
      if (/\.ya?ml$/i.test(file.name) || /^\s*guidelines:/m.test(content))
        fixtures.push({ name: file.name, text: content });
      else await this.#openGuide(file.name, content);
    }
    if (fixtures.length === 0) return;
    this.#show("tests");
    await this.#tests.run(fixtures);
  }

  async #openGuide(name: string, content: string): Promise<void> {
    try {
      const { id, concept } = await this.#engine.call("describeGuide", {
        text: content,
        language: "",
      });
      this.#opened = [
        { id, title: concept ?? id, text: content },
        ...this.#opened.filter((opened) => opened.id !== id),
      ];
      this.#chosen = id;
      this.#drawGuides();
      await this.#choose(id);
      this.#show("about");
    } catch (error) {
      const problems = error instanceof EngineError ? (error.diagnostics as GuideProblem[]) : [];
      const words =
        problems.length > 0
          ? drawProblems(problems)
          : h("span", {}, error instanceof Error ? error.message : String(error));
      this.#messages.append(h("div", { class: "bad" }, h("strong", {}, name), ": ", words));
    }
  }

  /** Runs the selected guide on the selected patient. */
  async run(): Promise<void> {
    const patient = this.#patient.selectedOptions[0];
    if (!patient || !this.#chosen) return;
    this.#show("patient");
    const mine = (this.#runs += 1);
    this.#outcome.setAttribute("aria-busy", "true");
    const draw = await this.#ran(patient.value, patient.textContent ?? "").catch(
      (error: unknown) => () => this.#fail(this.#outcome, error),
    );
    if (mine !== this.#runs) return;
    this.#outcome.removeAttribute("aria-busy");
    draw();
  }

  /** Runs the selected guide on an EHR. Returns the function that draws the outcome. */
  async #ran(ehr: string, whom: string): Promise<() => void> {
    const opened = this.#opened.find(({ id }) => id === this.#chosen)?.text;
    const language = this.#language.value;
    if (opened === undefined) {
      const { text: answer, milliseconds } = await this.#engine.call("runGuide", {
        guide: this.#chosen,
        ehr,
        language,
      });
      return () => this.#drawAnswer(answer, whom, milliseconds);
    }
    const { text: answer, milliseconds } = await this.#engine.call("runGuideText", {
      text: opened,
      ehr,
      language,
    });
    const queries = (this.#described?.bindings ?? []).flatMap(({ id, aql }) =>
      aql === null ? [] : [{ id, aql }],
    );
    return () => this.#drawRun(this.#outcome, answer, whom, milliseconds, queries);
  }

  #drawAnswer(answer: string, whom: string, milliseconds: number): void {
    const { execution_details, results, _cards, _trace } = members(parse(answer));
    const details = members(execution_details);
    const outputs = list(results)
      .map(members)
      .flatMap((result) =>
        list(result["rm_values"])
          .map(members)
          .map(({ path, value }) => ({
            name: this.#output(text(result["archetype_id"]), text(path)),
            model: text(result["archetype_id"]),
            path: text(path),
            value: value ?? null,
          })),
      );
    const queries = list(members(details["query_execution_details"])["queries"])
      .map(members)
      .map(({ id, aql }) => ({ id: text(id), aql: text(aql) }));
    const fired = list(details["rules_executed"]).length;
    const outcome = {
      whom,
      milliseconds,
      fired,
      outputs,
      cards: list(_cards).map(members),
      trace: members(list(_trace)[0]),
      queries,
    };
    this.#outcome.replaceChildren(...drawOutcome(outcome, (q) => this.#ask(q)));
  }

  /** Returns the name of an output. */
  #output(model: string, path: string): string {
    const models = new Map(this.#described?.bindings.map(({ id, model_id }) => [id, model_id]));
    return (
      this.#described?.outputs.find(
        (output) => models.get(output.binding) === model && output.path === path,
      )?.name ?? ""
    );
  }

  async #try(): Promise<void> {
    if (!this.#entered) return;
    try {
      const { text: answer, milliseconds } = await this.#engine.call("tryGuide", {
        text: this.#text,
        inputs: this.#entered.literals(),
        language: this.#language.value,
      });
      this.#drawRun(this.#formOutcome, answer, "this form", milliseconds, []);
    } catch (error) {
      this.#fail(this.#formOutcome, error);
    }
  }

  /** Draws a run that did not use the REST interface. */
  #drawRun(
    where: HTMLElement,
    answer: string,
    whom: string,
    milliseconds: number,
    queries: { id: string; aql: string }[],
  ): void {
    const { fired, results, cards, trace } = members(parse(answer));
    const outputs = list(results)
      .map(members)
      .flatMap((result) =>
        list(result["values"])
          .map(members)
          .map((value) => ({
            name: text(value["name"]),
            model: text(result["model_id"]),
            path: text(value["path"]),
            value: value["value"] ?? (null as Json),
          })),
      );
    const outcome = {
      whom,
      milliseconds,
      fired: list(fired).length,
      outputs,
      cards: list(cards).map(members),
      trace: members(trace),
      queries,
    };
    where.replaceChildren(...drawOutcome(outcome, (q) => this.#ask(q)));
  }

  #fail(where: HTMLElement, error: unknown): void {
    say(where, "The guide did not run", error instanceof Error ? error.message : String(error));
    where.firstElementChild?.classList.add("bad");
  }
}

function say(where: HTMLElement, title: string, about: string): void {
  where.replaceChildren(h("div", { class: "empty" }, h("h2", {}, title), h("p", {}, about)));
}
