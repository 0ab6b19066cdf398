// The guide view. The user selects, opens or writes a guide, runs the guide on a patient or on the
// values of a form, and edits and tests it.
import { debounced, h, languageName, rove, save, type Change } from "./dom";
import { EngineError, type Engine } from "./engine";
import { drawAbout, drawRefused, say } from "./guide-about";
import { storedOutcome, textOutcome, valuesRead } from "./guide-answer";
import { BLANK } from "./guide-blank";
import { Drafts, type Draft } from "./guide-drafts";
import { EditPane } from "./guide-edit";
import { GuideForm } from "./guide-form";
import { Hinting } from "./guide-hints";
import { drawOutcome, type Outcome } from "./guide-outcome";
import { GuideSteps } from "./guide-steps";
import { idOf, nextVersion } from "./guide-outline";
import type { DescribedGuide, GuideProblem } from "./guide-text";
import { Fixtures } from "./guide-tests";
import { dropped, textFiles, type TextFile } from "./input-files";
import type { Contents, Guide, Patient } from "./protocol";
import { destinationOf } from "./source";
import { texts, type Texts } from "./texts";
import { languageOf, reasonOf } from "./fault";

/** The functions of the page that the view calls. */
export interface GuideHost {
  /** Runs a query in the query view. */
  ask(q: string): void;
  change: Change;
}

type Pane = keyof Texts["guide"]["panes"];

/** The pauses in typing, in milliseconds, before the text is checked and the form is run. */
const CHECK_AFTER = 250;
const RUN_AFTER = 200;

/** The view. */
export class GuideView {
  readonly #engine: Engine;
  readonly #host: GuideHost;
  readonly #guides = h("div", {
    class: "choices",
    role: "radiogroup",
    "aria-label": texts.guide.one,
  });
  readonly #patient = h("select", { id: "patient" });
  readonly #language = h("select", { id: "guide-language" });
  readonly #run = h(
    "button",
    { id: "run-guide", class: "primary", type: "button" },
    texts.guide.run,
  );
  readonly #file = h("input", {
    id: "guide-file",
    type: "file",
    multiple: true,
    accept: ".gdl,.gdl2,.json,.yml,.yaml,.zip",
    class: "unseen",
  });
  readonly #steps: GuideSteps;
  readonly #new = h("button", { id: "guide-new", type: "button" }, texts.guide.new);
  readonly #outcome = h("div", { id: "guide-outcome", class: "outcome", "aria-live": "polite" });
  readonly #form = h("form", {
    id: "guide-form",
    class: "outcome",
    "aria-label": texts.guide.form,
  });
  /** The last form of each guide. They are dropped when another patient is selected. */
  readonly #formerForms = new Map<string, GuideForm>();
  readonly #formOutcome = h("div", {
    id: "guide-form-outcome",
    class: "outcome",
    "aria-live": "polite",
  });
  readonly #filled = h("p", { id: "guide-filled", class: "quiet", role: "status" });
  readonly #about = h("div", { id: "guide-about", class: "outcome" });
  readonly #edit: EditPane;
  readonly #tests: Fixtures;
  readonly #hinting: Hinting;
  readonly #drafts = new Drafts();
  readonly #panes: Record<Pane, HTMLElement>;
  readonly #tabs: HTMLElement;
  readonly #card = h("section", { class: "card guide-result", "aria-label": texts.guide.the });
  /** The identity of the data, see `Contents`. */
  #identity = "";
  readonly #destination = h("small", { id: "guide-destination" });
  /** The identity of the data and the number of own writes. */
  #state = "";
  #stored: Guide[] = [];
  #chosen = "";
  /** The text of the displayed guide; empty without a guide. */
  #text = "";
  /** The stored text of the selected guide; `null` if it is not stored. */
  #base: string | null = null;
  /** The numbers of the latest description and run. Answers to earlier ones are ignored. */
  #descriptions = 0;
  #runs = 0;
  /** The number of files that are being opened. No guide and no fixture runs until it is 0. */
  #opening = 0;
  /** The number of running changes of the display. */
  #changes = 0;
  /** The number of the latest run on the form. Answers to earlier runs are ignored. */
  #tries = 0;
  /** Whether the guide ran on the form. After that, it runs again at each change of form or text. */
  #isLive = false;
  readonly #checkSoon = debounced(CHECK_AFTER, () => void this.#check());
  readonly #trySoon = debounced(RUN_AFTER, () => void this.#try());
  #described: DescribedGuide | undefined;
  #entered: GuideForm | undefined;

  constructor(root: HTMLElement, engine: Engine, host: GuideHost) {
    this.#engine = engine;
    this.#host = host;
    this.#hinting = new Hinting(engine);
    this.#tests = new Fixtures({
      guide: (id) => this.#find(id),
      selected: () => this.#chosen,
      test: (text, fixture) => engine.call("testGuide", { text, fixture }),
      use: (id, literals, now) => void this.#use(id, literals, now),
    });
    this.#steps = this.#makeSteps();
    this.#edit = new EditPane({
      changed: (text) => this.#edited(text),
      run: () => void this.#try(),
      store: () => void this.#steps.store(),
      version: () => void this.#steps.storeVersion(),
      remove: () => void this.#steps.remove(),
      discard: () => void this.#steps.discard(),
    });
    this.#panes = {
      patient: h("div", {}, this.#outcome),
      edit: h("div", {}, this.#edit.element),
      form: h("div", {}, this.#form, this.#formOutcome),
      about: h("div", {}, this.#about),
      tests: h("div", {}, this.#tests.element),
    };
    this.#tabs = h(
      "div",
      { class: "segmented", role: "radiogroup", "aria-label": texts.guide.whatToSee },
      ...Object.entries(texts.guide.panes).map(([name, label]) =>
        h("button", { role: "radio", id: `guide-${name}-tab`, type: "button" }, label),
      ),
    );
    this.#card.append(this.#tabs, ...Object.values(this.#panes));
    root.append(
      h("div", { class: "guide-side" }, this.#drawChoice(), this.#edit.outline),
      this.#card,
    );
    this.#listen(root);
    this.#drafts.follow((id, former) => void this.#follow(id, former));
    this.#show("patient");
  }

  #makeSteps(): GuideSteps {
    return new GuideSteps(this.#engine, this.#host.change, {
      current: () => ({
        id: this.#chosen,
        title: this.#described?.concept ?? this.#chosen,
        text: this.#text,
        identity: this.#identity,
      }),
      isStored: (id) => this.#isStored(id),
      destination: () => this.#destination.textContent ?? "",
      draft: (id) => this.#drafts.find(id),
      keep: (id, title, text) => this.#keep(id, title, text),
      drop: (id) => this.#drafts.drop(id),
      restore: (id, title, text) => this.#restore(id, title, text),
      choose: (id) => (this.#chosen = id),
      select: (id) => this.#select(id),
      rename: (id) => this.#edit.rename(id),
    });
  }

  #isStored(id: string): boolean {
    return this.#stored.some((guide) => guide.id === id);
  }

  #drawChoice(): HTMLElement {
    return h(
      "form",
      { class: "card guide-form", onsubmit: (event: Event) => event.preventDefault() },
      h("h2", {}, texts.guide.one),
      this.#guides,
      h(
        "p",
        { class: "guide-open" },
        h("label", { for: "guide-file", class: "button" }, texts.guide.open),
        this.#file,
        h("small", {}, texts.guide.orDrop),
        this.#new,
      ),
      this.#steps.messages,
      h("label", { for: "guide-language" }, texts.frame.language),
      this.#language,
      h("label", { for: "patient" }, texts.guide.panes.patient),
      this.#patient,
      this.#run,
    );
  }

  #listen(root: HTMLElement): void {
    rove(this.#tabs, (tab) => this.#show(tab.id.slice("guide-".length, -"-tab".length) as Pane));
    this.#run.addEventListener("click", () => void this.run());
    this.#patient.addEventListener("change", () => {
      this.#formerForms.clear();
      void (this.#panes.form.hidden ? this.run() : this.#fill());
    });
    this.#new.addEventListener("click", () => void this.#write());
    this.#language.addEventListener(
      "change",
      () =>
        void this.#changing(async () => {
          await this.#describe(this.#language.value, this.#entered ?? null);
        }),
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
    // Without validation by the browser, because an author also tests values out of range.
    this.#form.noValidate = true;
    this.#form.addEventListener("input", () => {
      this.#isLive = true;
      this.#trySoon();
    });
    root.addEventListener("dragover", (event) => event.preventDefault());
    root.addEventListener("drop", (event) => {
      event.preventDefault();
      if (event.dataTransfer) void this.#open(dropped(event.dataTransfer));
    });
  }

  #show(pane: Pane): void {
    // While the text is edited, the form is visible as well, and shows the effect of each change.
    const isShown = (name: string) => name === pane || (pane === "edit" && name === "form");
    for (const [name, element] of Object.entries(this.#panes)) element.hidden = !isShown(name);
    this.#card.dataset["pane"] = pane;
    this.#edit.outline.hidden = pane !== "edit";
    if (pane === "edit") this.#edit.open();
    if (pane === "tests") void this.#tests.show();
    for (const tab of this.#tabs.children as Iterable<HTMLElement> & HTMLCollection) {
      const isChosen = tab.id === `guide-${pane}-tab`;
      tab.setAttribute("aria-checked", String(isChosen));
      tab.tabIndex = isChosen ? 0 : -1;
    }
  }

  /**
   * Shows the content of the repository. Entered values and open parts stay. The outcome of a run is
   * removed if the data were exchanged.
   */
  async load({ identity, place, added }: Contents, patients: Patient[]): Promise<void> {
    if (this.#identity !== identity) {
      this.#outcome.replaceChildren();
      // The undo buttons of the messages are about the former source, and must not change this one.
      this.#steps.messages.replaceChildren();
    }
    this.#identity = identity;
    const state = `${identity} ${added}`;
    this.#state = state;
    this.#drafts.open(place);
    this.#tests.open(place);
    this.#destination.textContent = destinationOf(place);
    try {
      const stored = await this.#engine.call("guides", null);
      // A later state was loaded meanwhile.
      if (this.#state !== state) return;
      this.#stored = stored;
      const before = this.#patient.value;
      this.#patient.replaceChildren(
        ...patients.map(({ ehr, label }) =>
          h("option", { value: ehr, selected: ehr === before }, label),
        ),
      );
      if (before !== this.#patient.value) {
        this.#outcome.replaceChildren();
        this.#formerForms.clear();
      }
      this.#drawGuides();
      await this.#choose(this.#chosen);
      if (!this.#panes.tests.hidden) await this.#tests.show();
    } catch (error) {
      this.#fail(this.#outcome, error);
    }
  }

  /** Returns all guides: the drafts, and the stored ones that no draft replaces. */
  get #choices(): Guide[] {
    const { all } = this.#drafts;
    return [...all, ...this.#stored.filter(({ id }) => !this.#drafts.find(id))];
  }

  /** Returns the id and text of a guide: its draft, or else as stored. */
  async #find(id: string): Promise<{ id: string; text: string } | null> {
    const plain = (one: string) => one.toLowerCase().replaceAll(/[^a-z0-9]/g, "");
    const all = this.#choices;
    const found =
      all.find((choice) => choice.id === id) ??
      all.find((choice) => plain(choice.id) === plain(id));
    if (!found || id === "") return null;
    const text = this.#drafts.find(found.id)?.text;
    return { id: found.id, text: text ?? (await this.#engine.call("guideText", found.id)) };
  }

  #drawGuides(): void {
    const choices = this.#choices;
    if (!choices.some(({ id }) => id === this.#chosen)) this.#chosen = choices[0]?.id ?? "";
    this.#guides.replaceChildren(...choices.map((guide) => this.#choice(guide)));
    this.#allow();
    if (!this.#runnable)
      say(this.#outcome, texts.guide.nothingToRun, texts.guide.nothingToRunAbout);
    else if (!this.#outcome.hasChildNodes())
      say(this.#outcome, texts.guide.ready, texts.guide.readyAbout);
  }

  get #runnable(): boolean {
    return this.#choices.length > 0 && this.#patient.options.length > 0;
  }

  #allow(): void {
    this.#run.disabled = this.#opening > 0 || !this.#runnable;
  }

  #choice({ id, title }: Guide): HTMLElement {
    const isStored = this.#isStored(id);
    const words = isStored ? texts.guide.draft : texts.guide.openedHere;
    const state = this.#drafts.find(id) ? ` · ${words}` : "";
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
      h("span", {}, h("strong", {}, title), h("small", {}, `${id}${state}`)),
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
    try {
      await run();
    } finally {
      this.#changes -= 1;
    }
    if (this.#changes > 0) return;
    this.#card.removeAttribute("aria-busy");
    this.#language.disabled = false;
  }

  async #read({ id }: Guide): Promise<void> {
    try {
      const base = this.#isStored(id) ? await this.#engine.call("guideText", id) : null;
      const text = this.#drafts.find(id)?.text ?? base ?? "";
      if (this.#chosen !== id) return;
      this.#base = base;
      if (this.#text === text) return this.#renew();
      this.#text = text;
      this.#edit.load(text);
      this.#allowSteps();
      this.#isLive = false;
      await this.#describe(texts.language, null);
    } catch (error) {
      if (this.#chosen !== id) return;
      this.#text = "";
      this.#fail(this.#about, error);
    }
  }

  /** Updates the buttons after a change of the stored guides: the text may be a stored one now. */
  #renew(): void {
    this.#allowSteps();
    const offered = this.#about.querySelector("#store-guide") !== null;
    if (this.#described && offered !== !!this.#drafts.find(this.#chosen))
      this.#drawAbout(this.#described);
  }

  /** Enables the buttons of the steps that the state of the text permits. */
  #allowSteps(): void {
    const id = idOf(this.#text)?.id ?? "";
    this.#edit.allow({
      id,
      isStored: this.#isStored(id),
      isDraft: this.#text !== this.#base,
      isRemovable: this.#isStored(this.#chosen),
    });
  }

  /** Shows that there is no guide. */
  #none(): void {
    this.#descriptions += 1;
    this.#text = "";
    this.#base = null;
    this.#described = undefined;
    this.#entered = undefined;
    this.#formOutcome.replaceChildren();
    this.#edit.load("");
    this.#edit.allow({ id: "", isStored: false, isDraft: false, isRemovable: false });
    for (const container of [this.#form, this.#about])
      say(container, texts.guide.none, texts.guide.noneAbout);
  }

  /**
   * Draws the guide in a language; empty selects the guide's own language. The values of `form`, if
   * present, are copied to the new form. Returns the description; `null` if the text is not a guide,
   * or another text is shown by now.
   */
  async #describe(language: string, before: GuideForm | null): Promise<DescribedGuide | null> {
    const description = (this.#descriptions += 1);
    const text = this.#text;
    try {
      const described = await this.#engine.call("describeGuide", { text, language });
      const chosen = described.languages.includes(language) ? language : described.language;
      const hints = await this.#hinting.hints(this.#state, described, chosen);
      if (description !== this.#descriptions) return null;
      this.#described = described;
      this.#drawLanguages(described, chosen);
      this.#drawAbout(described);
      this.#edit.described(described, chosen);
      this.#drawForm(new GuideForm(described, chosen, hints), before);
      return described;
    } catch (error) {
      if (description !== this.#descriptions) return null;
      const problems = error instanceof EngineError ? (error.diagnostics as GuideProblem[]) : [];
      this.#edit.refused(problems, reasonOf(error));
      this.#fail(this.#about, error);
      if (before === null) this.#drawUnreadable();
      return null;
    }
  }

  #drawLanguages({ languages }: DescribedGuide, chosen: string): void {
    this.#language.replaceChildren(
      ...languages.map((one) =>
        h("option", { value: one, selected: one === chosen }, languageName(one)),
      ),
    );
  }

  #drawAbout(described: DescribedGuide): void {
    this.#about.replaceChildren(
      ...drawAbout(
        described,
        (q) => this.#ask(q),
        (syntax) => void this.#save(syntax),
      ),
    );
    if (!this.#drafts.find(this.#chosen)) return;
    const store = h(
      "button",
      { id: "store-guide", type: "button", onclick: () => void this.#steps.store() },
      texts.guide.store,
    );
    this.#about.querySelector(".actions")?.append(store, this.#destination);
  }

  /** Draws the form with the values of another one. */
  #drawForm(form: GuideForm, before: GuideForm | null): void {
    this.#entered = form;
    // Values that were entered before another guide was shown are there again.
    const former = before ?? this.#formerForms.get(this.#chosen);
    if (former) form.take(former);
    this.#formerForms.set(this.#chosen, form);
    const isEmpty = this.#described?.inputs.length === 0;
    if (isEmpty) say(this.#form, texts.guide.noInputs, texts.guide.noInputsAbout);
    else this.#form.replaceChildren(form.element);
    const fill = h(
      "button",
      { id: "fill-guide", type: "button", onclick: () => void this.#fill() },
      texts.guide.fill,
    );
    this.#form.append(
      h(
        "p",
        { class: "actions" },
        h("button", { id: "try-guide", class: "primary" }, texts.guide.runForm),
        isEmpty || this.#patient.options.length === 0 ? null : fill,
      ),
      this.#filled,
    );
    if (!before) {
      this.#filled.textContent = "";
      this.#formOutcome.replaceChildren();
    }
    if (this.#isLive) this.#trySoon();
  }

  /** Shows that a text has no form yet. */
  #drawUnreadable(): void {
    this.#described = undefined;
    this.#entered = undefined;
    this.#formOutcome.replaceChildren();
    say(this.#form, texts.guide.noForm, texts.guide.noFormAbout);
  }

  // --- editing

  /** Keeps an edited text as a draft, and checks it after a pause. */
  #edited(text: string): void {
    this.#text = text;
    // If no guide is selected, the user is typing a new one.
    if (this.#chosen === "") this.#chosen = idOf(text)?.id || texts.guide.new;
    const was = this.#drafts.find(this.#chosen);
    this.#restore(this.#chosen, this.#described?.concept ?? was?.title ?? this.#chosen, text);
    this.#steps.edited();
    if (!!was !== !!this.#drafts.find(this.#chosen)) this.#drawGuides();
    this.#allowSteps();
    this.#checkSoon();
  }

  #keep(id: string, title: string, text: string): void {
    if (!this.#drafts.keep(id, title, text)) this.#steps.say(texts.guide.notKept, true);
  }

  /** Keeps a text as a draft, unless it is the stored text. */
  #restore(id: string, title: string, text: string): void {
    if (id === this.#chosen && text === this.#base) this.#drafts.drop(id);
    else this.#keep(id, title, text);
  }

  /** Shows a draft that another tab changed. */
  async #follow(id: string, former: Draft | undefined): Promise<void> {
    const [own, draft] = [this.#text, this.#drafts.find(id)];
    const isShown = id === this.#chosen;
    if (former?.title !== draft?.title) this.#drawGuides();
    if (!isShown || own === draft?.text) return;
    if (draft) {
      this.#text = draft.text;
      this.#edit.load(draft.text);
      this.#allowSteps();
      this.#checkSoon();
    } else await this.#choose(this.#chosen);
    // The other tab may have stored the text.
    if (this.#text !== own) this.#steps.follow(id, former?.title ?? id, own);
  }

  /** Checks the edited text, and shows its effect on form and fixtures. */
  async #check(): Promise<void> {
    const id = this.#chosen;
    const described = await this.#describe(this.#language.value, this.#entered ?? null);
    const [draft, title] = [this.#drafts.find(id), described?.concept];
    if (draft && title && draft.title !== title) {
      this.#keep(id, title, draft.text);
      this.#drawGuides();
    }
    await this.#tests.changed([id]);
  }

  /** Begins a new guide. */
  async #write(): Promise<void> {
    const taken = (id: string) => this.#choices.some((choice) => choice.id === id);
    const id = nextVersion("New_guide.v0", taken);
    this.#keep(id, texts.guide.new, BLANK.replace("New_guide.v1", id));
    await this.#select(id);
    this.#show("edit");
  }

  /** Selects a guide and shows it. */
  async #select(id: string): Promise<void> {
    this.#chosen = id;
    this.#drawGuides();
    await this.#choose(id);
  }

  // --- forms

  /** Shows the form of a guide with the input of a case. */
  async #use(id: string, literals: [string, string][], now: string | null): Promise<void> {
    if (id !== this.#chosen) await this.#select(id);
    if (!this.#entered) return;
    this.#entered.fill(literals, now);
    this.#filled.textContent = texts.guide.caseFilled;
    if (this.#panes.form.hidden) this.#show("form");
    await this.#try();
    this.#form.querySelector<HTMLElement>("input, select")?.focus();
  }

  /** Fills the form with the values that the guide reads of the selected patient. */
  async #fill(): Promise<void> {
    const patient = this.#patient.selectedOptions[0];
    const form = this.#entered;
    if (!patient || !form) return;
    try {
      const { text: answer } = await this.#engine.call("runGuideText", {
        text: this.#text,
        ehr: patient.value,
        language: this.#language.value,
      });
      if (form !== this.#entered) return;
      const values = valuesRead(answer);
      const odd = form.show(values);
      const name = patient.textContent ?? "";
      const words = [
        values.size === 0
          ? texts.guide.patientEmpty({ patient: name })
          : texts.guide.patientFilled({ patient: name }),
        odd.length > 0 ? texts.guide.notChoices({ names: odd.join(", ") }) : "",
      ];
      this.#filled.textContent = words.filter(Boolean).join(" ");
      await this.#try();
    } catch (error) {
      if (form === this.#entered) this.#fail(this.#formOutcome, error);
    }
  }

  /** Runs a query in the query view. A query for one EHR gets the selected patient. */
  #ask(q: string): void {
    this.#host.ask(q.replace("$ehr_id", `'${this.#patient.value}'`));
  }

  /** Saves the text of the guide as a file. */
  async #save(syntax: "json" | "odin"): Promise<void> {
    const id = this.#chosen;
    try {
      const printed = await this.#engine.call("printGuide", { text: this.#text, syntax });
      if (syntax === "json") save(`${id}.gdl2.json`, "application/json", printed);
      else save(`${id}.gdl`, "text/plain", printed);
    } catch (error) {
      this.#steps.say(texts.guide.notDone({ reason: reasonOf(error) }), true);
    }
  }

  /** Opens files: guides for the list, fixtures to run on the guides that they name. */
  async #open(files: Promise<File[]>): Promise<void> {
    this.#steps.messages.replaceChildren();
    this.#opening += 1;
    this.#allow();
    try {
      await this.#openAll(await textFiles(await files));
    } catch (error) {
      this.#steps.messages.append(
        h("p", { class: "bad" }, texts.guide.notOpened({ reason: reasonOf(error) })),
      );
    } finally {
      this.#opening -= 1;
      this.#allow();
    }
  }

  /** Returns the text of a file. Reports a file that cannot be read, and returns `null`. */
  async #textOf(file: TextFile): Promise<string | null> {
    try {
      return await file.text();
    } catch (error) {
      const reason = `${file.name}: ${reasonOf(error)}`;
      this.#steps.messages.append(h("p", { class: "bad" }, texts.guide.notOpened({ reason })));
      return null;
    }
  }

  async #openAll(files: TextFile[]): Promise<void> {
    const fixtures: { name: string; text: string }[] = [];
    const guides: string[] = [];
    const pane = this.#card.dataset["pane"];
    for (const file of files) {
      const content = await this.#textOf(file);
      if (content === null) continue;
      if (/\.ya?ml$/i.test(file.name) || /^\s*guidelines:/m.test(content))
        fixtures.push({ name: file.name, text: content });
      else {
        const id = await this.#openGuide(file.name, content);
        if (id !== null) guides.push(id);
      }
    }
    const last = guides.at(-1);
    if (last !== undefined) {
      await this.#select(last);
      await this.#tests.changed(guides);
      // A pane that the user chose meanwhile stays.
      const isSame = this.#card.dataset["pane"] === pane;
      if (isSame && this.#panes.edit.hidden) this.#show("about");
    }
    if (fixtures.length === 0) return;
    this.#show("tests");
    await this.#tests.run(fixtures);
  }

  /** Stores an opened guide as a draft. Returns its id, or `null` if the text is not a guide. */
  async #openGuide(name: string, content: string): Promise<string | null> {
    try {
      const { id, concept } = await this.#engine.call("describeGuide", {
        text: content,
        language: "",
      });
      this.#keep(id, concept ?? id, content);
      return id;
    } catch (error) {
      const edit = () => void this.#editRefused(name, content);
      this.#steps.messages.append(drawRefused(name, error, edit));
      return null;
    }
  }

  /** Opens a text that is not a guide in the editor. */
  async #editRefused(name: string, content: string): Promise<void> {
    this.#keep(name, name, content);
    await this.#select(name);
    this.#show("edit");
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
    const opened = this.#drafts.find(this.#chosen)?.text;
    const language = this.#language.value;
    if (opened === undefined) {
      const { text: answer, milliseconds } = await this.#engine.call("runGuide", {
        guide: this.#chosen,
        ehr,
        language,
      });
      const outcome = storedOutcome(answer, { whom, milliseconds }, this.#described);
      return () => this.#drawOutcome(this.#outcome, outcome);
    }
    const { text: answer, milliseconds } = await this.#engine.call("runGuideText", {
      text: opened,
      ehr,
      language,
    });
    const queries = (this.#described?.bindings ?? []).flatMap(({ id, aql }) =>
      aql === null ? [] : [{ id, aql }],
    );
    const outcome = textOutcome(answer, { whom, milliseconds, queries });
    return () => this.#drawOutcome(this.#outcome, outcome);
  }

  /** Runs the guide on the form. */
  async #try(): Promise<void> {
    const form = this.#entered;
    if (!form) return;
    this.#isLive = true;
    const mine = (this.#tries += 1);
    const draw = await this.#tried(form).catch(
      (error: unknown) => () => this.#fail(this.#formOutcome, error),
    );
    if (mine === this.#tries) draw();
  }

  async #tried(form: GuideForm): Promise<() => void> {
    const count = form.showUnreadable();
    if (count > 0) {
      const message = texts.templates.unreadable({ count });
      return () => this.#formOutcome.replaceChildren(h("p", { class: "bad" }, message));
    }
    const { text: answer, milliseconds } = await this.#engine.call("tryGuide", {
      text: this.#text,
      inputs: form.literals(),
      language: this.#language.value,
      now: form.now(),
    });
    const run = { whom: texts.guide.thisForm, milliseconds, queries: [] };
    return () => this.#drawOutcome(this.#formOutcome, textOutcome(answer, run));
  }

  #drawOutcome(container: HTMLElement, outcome: Outcome): void {
    container.replaceChildren(...drawOutcome(outcome, (q) => this.#ask(q)));
  }

  #fail(container: HTMLElement, error: unknown): void {
    say(container, texts.guide.failed, reasonOf(error));
    container.querySelector("p")?.setAttribute("lang", languageOf(error) ?? texts.language);
    container.firstElementChild?.classList.add("bad");
  }
}
