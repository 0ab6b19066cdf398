// The data view: content of the repository, sample patients, files of the user, and the offline
// REST interface.
import { confirmed } from "./confirm";
import { count, h, type Change } from "./dom";
import { EngineError, type Engine } from "./engine";
import { dropped, texts, type TextFile } from "./intake";
import { drawRefused, type Refused } from "./refused";
import type { Contents, Patient, Progress, Replacement, Samples } from "./protocol";
import { SetsCard } from "./sets";
import { BY_FILE, BY_FOLDER, BY_SUBJECT, Target } from "./target";
import { Work } from "./work";

/** The maximum number of added files that are listed. Refused files are always listed. */
const LISTED = 20;

function number(
  id: string,
  label: string,
  value: number,
  max: number,
): { field: HTMLElement; input: HTMLInputElement } {
  const input = h("input", {
    id,
    type: "number",
    min: id === "seed" ? 0 : 1,
    max,
    value,
    required: true,
    inputmode: "numeric",
  });
  return { field: h("p", { class: "field" }, h("label", { for: id }, label), input), input };
}

/** The size in characters of the pieces of an imported export. A piece consists of whole lines. */
const AT_ONCE = 4_000_000;

function* pieces(text: string): Generator<string> {
  for (let from = 0; from < text.length;) {
    const end =
      from + AT_ONCE < text.length
        ? text.indexOf("\n", from + AT_ONCE) + 1 || text.length
        : text.length;
    yield text.slice(from, end);
    from = end;
  }
}

function inWords({ ehrs, compositions, seed }: Samples): string {
  return `${count.format(compositions)} compositions of ${count.format(ehrs)} patients, seed ${seed}`;
}

/** Describes the effect of making patients on the present ones. */
function fate({ set, added, samples }: Contents): string {
  if (!set) return "";
  if (added > 0)
    return `“${set.name}” has ${count.format(added)} ${added === 1 ? "write" : "writes"} of your own, so new patients get a data set beside it.`;
  return samples
    ? `New patients replace the present ones (${inWords(samples)}), which can be made again.`
    : `New patients are added to “${set.name}”, which is empty.`;
}

/** The choices beside the present patients, with their titles. */
const NEW: [string, string][] = [
  ["", "A new patient"],
  [BY_FOLDER, "A patient for each folder"],
  [BY_FILE, "A patient for each file name, up to _ or ."],
  [BY_SUBJECT, "The patient whom the document names as subject"],
];

/** The outcome of adding files. */
interface Outcome {
  good: number;
  /** The number of all files. */
  of: number;
  /** Whether it was cancelled. */
  ended: boolean;
  refused: Refused[];
}

/** Returns a file that was refused for a reason without a rule. */
function failedFor(file: TextFile, error: unknown): Refused {
  const message = error instanceof Error ? error.message : String(error);
  return { file, problems: [{ rule: "", path: "", message }], ehr: null };
}

/** Whether a document is canonical JSON, which can be added in spite of its findings. */
function isJson(text: string): boolean {
  return text.trimStart().startsWith("{");
}

/** The view. */
export class DataPanel {
  readonly #engine: Engine;
  readonly #change: Change;
  readonly #place = h("h2", { id: "contents-title" }, "In the repository");
  readonly #sampleForm: HTMLElement;
  readonly #sets: SetsCard;
  readonly #facts = h("dl", { class: "facts" });
  readonly #templates = h("ul", { class: "templates" });
  readonly #messages = h("div", { id: "added", class: "messages", "aria-live": "polite" });
  readonly #patient = h("select", { id: "target" });
  readonly #ehrs = number("ehrs", "Patients", 36, 100_000);
  readonly #compositions = number("compositions", "Compositions", 240, 1_000_000);
  readonly #seed = number("seed", "Seed", 1, 4_294_967_295);
  readonly #generate = h("button", { id: "generate", class: "primary" }, "Make patients");
  readonly #making = new Work();
  readonly #fate = h("p", { id: "fate", class: "quiet" });
  /** The message that the data were replaced, with a button to undo it. */
  readonly #replaced = h("p", { class: "messages", "aria-live": "polite" });
  readonly #adding = new Work();
  /** The content that was drawn last; `null` if it is not known. */
  #contents: Contents | null = null;
  /** The address of the selected server, or `null` for this browser. */
  #where: string | null = null;
  readonly #forget = h("button", { id: "start-over", type: "button" }, "Start over…");
  #patients: Patient[] = [];
  /** The destination of dropped files. */
  readonly #destination = h("p", { id: "destination", class: "destination", role: "status" });
  readonly #drop = h("p", {}, "Drop files or folders here");

  constructor(root: HTMLElement, engine: Engine, change: Change) {
    this.#engine = engine;
    this.#change = change;
    this.#sampleForm = this.#drawSamples();
    this.#sets = new SetsCard(engine, change);
    root.append(
      h("div", { class: "column" }, this.#drawContents(), this.#sampleForm, this.#drawInterface()),
      h("div", { class: "column" }, this.#sets.element, this.#drawFiles()),
    );
  }

  #drawContents(): HTMLElement {
    return h(
      "section",
      { class: "card", "aria-labelledby": "contents-title" },
      this.#place,
      this.#facts,
      h("h3", {}, "Templates"),
      this.#templates,
    );
  }

  #drawSamples(): HTMLElement {
    const form = h(
      "form",
      { class: "card", "aria-labelledby": "samples-title" },
      h("h2", { id: "samples-title" }, "Sample patients"),
      h(
        "p",
        { class: "quiet" },
        "Made up from a seed: the same three numbers always give the same patients, with missing values, repeated events and odd spellings as real records have. A few are closed to queries, and are not counted.",
      ),
      h("div", { class: "fields" }, this.#ehrs.field, this.#compositions.field, this.#seed.field),
      this.#fate,
      h("div", { class: "actions" }, this.#generate, this.#forget),
      this.#making.element,
      this.#replaced,
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const samples = {
        ehrs: this.#ehrs.input.valueAsNumber,
        compositions: this.#compositions.input.valueAsNumber,
        seed: this.#seed.input.valueAsNumber,
      };
      void this.#make(samples);
    });
    this.#forget.addEventListener("click", () => void this.#startOver());
    return form;
  }

  #drawFiles(): HTMLElement {
    const files = h("input", {
      id: "files",
      type: "file",
      multiple: true,
      accept: ".opt,.xml,.json,.gdl,.gdl2,.zip,.ndjson",
      class: "unseen",
    });
    const folder = h("input", {
      id: "folder",
      type: "file",
      multiple: true,
      webkitdirectory: true,
      class: "unseen",
    });
    for (const input of [files, folder]) {
      input.addEventListener("change", () => {
        void this.#add(Promise.resolve([...(input.files ?? [])])).then(() => (input.value = ""));
      });
    }
    const card = h(
      "section",
      { class: "card drop", "aria-labelledby": "files-title" },
      h("h2", { id: "files-title" }, "Your own files"),
      h(
        "p",
        { class: "quiet" },
        "Templates (OPT 1.4), compositions (canonical JSON or XML, FLAT, STRUCTURED), guides (GDL2) and exports (.ndjson), also in folders and .zip archives.",
      ),
      this.#destination,
      h(
        "p",
        { class: "field" },
        h("label", { for: "target" }, "Compositions go to"),
        this.#patient,
      ),
      h(
        "div",
        { class: "drop-zone" },
        this.#drop,
        h(
          "p",
          { class: "actions" },
          h("label", { for: "files", class: "button" }, "Choose files…"),
          files,
          h("label", { for: "folder", class: "button" }, "Choose a folder…"),
          folder,
        ),
      ),
      this.#adding.element,
      this.#messages,
    );
    card.addEventListener("dragover", (event) => {
      event.preventDefault();
      card.classList.add("over");
    });
    card.addEventListener("dragleave", () => card.classList.remove("over"));
    card.addEventListener("drop", (event) => {
      event.preventDefault();
      card.classList.remove("over");
      if (event.dataTransfer) void this.#add(dropped(event.dataTransfer));
    });
    return card;
  }

  #drawInterface(): HTMLElement {
    const sample = `const answer = await fetch("${new URL("local/v1/query/aql", document.baseURI).pathname}", {
  method: "POST",
  headers: { "content-type": "application/json" },
  body: JSON.stringify({ q: "SELECT e/ehr_id/value FROM EHR e" }),
});
console.table((await answer.json()).rows);`;
    return h(
      "section",
      { class: "card", "aria-labelledby": "rest-title" },
      h("h2", { id: "rest-title" }, "REST without a server"),
      h(
        "p",
        { class: "quiet" },
        "The data of this browser have a base address of their own, ",
        h("code", {}, "/local/v1"),
        ": any page of this origin can use it, without a network too. The Service Worker answers there, and says so in the header ",
        h("code", {}, "aqlite-answered-by"),
        ". At every other address only a server answers.",
      ),
      h("pre", { tabindex: 0 }, h("code", {}, sample)),
    );
  }

  /** Draws the content of the repository. */
  async show(contents: Contents, templates: string[], patients: Patient[]): Promise<void> {
    const local: [string, string][] = [
      ["Own writes", count.format(contents.added)],
      ["Memory", `${(contents.memory / 1_048_576).toFixed(1)} MB`],
      ["Ready in", `${contents.milliseconds.toFixed(0)} ms`],
    ];
    const facts: [string, string][] = [
      ["Patients", count.format(contents.ehrs)],
      ["Compositions", count.format(contents.compositions)],
      ...(contents.place === null ? local : []),
    ];
    this.#showPlace(contents.place);
    this.#contents = contents;
    this.#fate.textContent = fate(contents);
    this.#facts.replaceChildren(
      ...facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
    );
    this.#templates.replaceChildren(
      ...(templates.length > 0
        ? templates.map((template) => h("li", {}, h("code", {}, template)))
        : [h("li", { class: "quiet" }, "None yet: drop an operational template (.opt) below.")]),
    );
    if (contents.samples) {
      this.#ehrs.input.value = String(contents.samples.ehrs);
      this.#compositions.input.value = String(contents.samples.compositions);
      this.#seed.input.value = String(contents.samples.seed);
    }
    // Before the first patients are known, nothing is chosen.
    const before = this.#patient.options.length > 0 ? this.#patient.value : null;
    this.#patient.replaceChildren(
      ...patients.map(({ ehr, label }) =>
        h("option", { value: ehr, selected: ehr === before }, label),
      ),
      ...NEW.map(([value, title]) => h("option", { value, selected: value === before }, title)),
    );
    this.#patients = patients;
    await this.#sets.show(contents);
  }

  /** Shows the source: the address of a server, or `null` for this browser. */
  #showPlace(place: string | null): void {
    this.#place.textContent =
      place === null ? "In the repository" : `In the repository at ${place}`;
    this.#sampleForm.hidden = place !== null;
    // Messages about one source do not apply to another.
    if (this.#where !== place)
      for (const box of [this.#messages, this.#replaced]) box.replaceChildren();
    this.#where = place;
    this.#showDestination(place);
  }

  /** Shows the destination of files before they are dropped. */
  #showDestination(place: string | null): void {
    if (place === null) {
      this.#destination.replaceChildren(
        "They stay in this browser, and are there again after a reload.",
      );
      this.#drop.textContent = "Drop files or folders here";
    } else {
      this.#destination.replaceChildren(
        "They are sent to the server ",
        h("strong", {}, place),
        ", which stores them. Others may read them there.",
      );
      this.#drop.textContent = `Drop files or folders here to send them to ${URL.canParse(place) ? new URL(place).host : place}`;
    }
    this.#destination.classList.toggle("away", place !== null);
  }

  /** Shows that the source does not answer, so its content is unknown. */
  unknown(place: string | null): void {
    this.#showPlace(place);
    this.#contents = null;
    this.#fate.textContent = "";
    this.#facts.replaceChildren(
      h("div", {}, h("dt", {}, "Patients"), h("dd", {}, "not known")),
      h("div", {}, h("dt", {}, "Compositions"), h("dd", {}, "not known")),
    );
    this.#templates.replaceChildren(
      h("li", { class: "quiet" }, "Not known: the source does not answer."),
    );
  }

  /** Replaces all data by sample patients, after a confirmation. */
  async #startOver(): Promise<void> {
    const { added = 0, set = null } = this.#contents ?? {};
    const own =
      added === 0
        ? "Nothing of your own was written to it."
        : `${count.format(added)} ${added === 1 ? "write" : "writes"} of your own (files, forms, requests) in it ${added === 1 ? "goes" : "go"} with them.`;
    const about = `The patients of “${set?.name ?? "this data set"}” are replaced by the 36 sample patients of the first visit. ${own} You can undo it for ten minutes.`;
    if (
      !(await confirmed({ title: "Start over?", about, yes: "Start over", no: "Keep everything" }))
    )
      return;
    const replaced = await this.#work("Making patients", () =>
      this.#engine.call("startOver", null),
    );
    if (replaced) this.#offerBack("Started over with sample patients.", replaced);
  }

  /** Offers to bring the discarded data back, and afterwards to undo that in turn. */
  #offerBack(words: string, { discarded, current }: Replacement): void {
    const back = async () => {
      const done = await this.#work("Bringing back", () =>
        this.#engine.call("bringBack", { discarded, current }),
      );
      if (done)
        this.#offerBack("The former data are back.", { discarded: current, current: discarded });
    };
    this.#offerUndo("bring-back", words, () => void back());
  }

  #offerUndo(id: string, words: string, undo: () => void): void {
    const button = h("button", { id, type: "button", onclick: undo }, "Undo");
    this.#replaced.replaceChildren(h("span", {}, `${words} `, button));
    // The pressed button was disabled or removed meanwhile: the next step is here.
    if (document.activeElement === document.body) button.focus();
  }

  /**
   * Makes sample patients. The former ones are replaced, and can be made again from their numbers.
   * With writes of the user, the new ones get a data set of their own.
   */
  async #make(samples: Samples): Promise<void> {
    const { set = null, samples: former = null } = this.#contents ?? {};
    const made = await this.#work("Making patients", () =>
      this.#making.run((progress, signal) =>
        this.#engine.call("generate", samples, { progress, signal }),
      ),
    );
    if (!made) return;
    if (made.set?.id !== set?.id)
      this.#replaced.replaceChildren(
        `The new patients are in a data set of their own. “${set?.name ?? ""}” is kept as it was.`,
      );
    else if (former)
      this.#offerUndo("make-former", `Replaced ${inWords(former)}.`, () => void this.#make(former));
  }

  /** Changes the data and shows errors. Returns the result of `run`, or `null` if it failed. */
  async #work<T>(what: string, run: () => Promise<T>): Promise<T | null> {
    this.#generate.disabled = true;
    this.#forget.disabled = true;
    try {
      const done = await this.#change(what, run);
      this.#messages.replaceChildren();
      this.#replaced.replaceChildren();
      return done;
    } catch (error) {
      if (error instanceof EngineError && error.message === "cancelled")
        this.#messages.replaceChildren(h("p", {}, "Cancelled: everything is as it was before."));
      else this.#tell("Not done", error);
      return null;
    } finally {
      this.#generate.disabled = false;
      this.#forget.disabled = false;
    }
  }

  async #add(files: Promise<File[]>): Promise<void> {
    this.#messages.replaceChildren();
    const place = this.#where;
    try {
      await this.#change("Adding files", () => this.#addInTurn(files, place));
    } catch (error) {
      this.#tell("Not added", error);
    }
  }

  /**
   * Adds files to the destination that the page showed when they were dropped. A later choice does
   * not redirect them.
   */
  async #addInTurn(files: Promise<File[]>, place: string | null): Promise<void> {
    const all = await texts(await files);
    const before = await this.#engine.call("contents", null);
    if (before.place !== place)
      throw new Error(
        `the source changed meanwhile. Add the files again to put them ${before.place === null ? "into this browser" : `on ${before.place}`}.`,
      );
    const outcome = await this.#adding.run((tell, signal) => this.#addAll(all, tell, signal));
    await this.#report(outcome, before);
  }

  /** Shows the number of added files with their undo, and the refused files with their problems. */
  async #report({ good, of, ended, refused }: Outcome, before: Contents): Promise<void> {
    this.#messages.prepend(
      h(
        "p",
        {},
        `${count.format(good)} of ${count.format(of)} files added${ended ? ", then cancelled" : ""} `,
        good > 0 ? await this.#undo(before) : null,
      ),
    );
    if (refused.length === 0) return;
    // A server decides itself what it accepts.
    const load = before.set === null ? null : () => void this.#loadAnyway(refused);
    this.#messages.append(drawRefused(refused, load));
  }

  async #addAll(
    files: TextFile[],
    tell: (progress: Progress) => void,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const start = performance.now();
    const outcome: Outcome = { good: 0, of: files.length, ended: false, refused: [] };
    const target = new Target(this.#engine, this.#patient.value, this.#patients);
    for (const [at, file] of files.entries()) {
      if (signal.aborted) return { ...outcome, ended: true };
      const refused = await this.#addOne(file, target);
      if (refused) outcome.refused.push(refused);
      else {
        outcome.good += 1;
        if (outcome.good <= LISTED)
          this.#messages.append(h("p", { class: "good" }, `${file.name}: added`));
      }
      tell({
        what: "Adding files",
        done: at + 1,
        of: files.length,
        milliseconds: performance.now() - start,
      });
    }
    return outcome;
  }

  /** Adds a file. Returns its problems if it is refused. */
  async #addOne(file: TextFile, target: Target): Promise<Refused | null> {
    const { name } = file;
    try {
      const text = await file.text();
      if (/\.ndjson$/i.test(name)) await this.#import(text);
      else if (!(await this.#engine.call("add", { name, text, ehr: null }))) {
        const problems = await this.#engine.call("problems", { name, text });
        const ehr = () => target.ehr(name, text);
        if (problems.length > 0) return { file, problems, ehr: isJson(text) ? ehr : null };
        await target.add(name, text);
      }
      return null;
    } catch (error) {
      return failedFor(file, error);
    }
  }

  /** Adds refused compositions in spite of their problems. */
  async #loadAnyway(refused: Refused[]): Promise<void> {
    const loadable = refused.flatMap(({ file, ehr }) => (ehr ? [{ file, ehr }] : []));
    try {
      await this.#change("Adding files", async () => {
        const before = await this.#engine.call("contents", null);
        this.#messages.replaceChildren();
        let [good, warnings] = [0, 0];
        const failed: Refused[] = [];
        for (const { file, ehr } of loadable) {
          try {
            const text = await file.text();
            warnings += await this.#engine.call("load", { ehr: await ehr(), text });
            good += 1;
          } catch (error) {
            failed.push(failedFor(file, error));
          }
        }
        this.#messages.append(
          h(
            "p",
            { class: "warned" },
            `${count.format(good)} of ${count.format(loadable.length)} compositions added with ${count.format(warnings)} ${warnings === 1 ? "warning" : "warnings"} `,
            good > 0 ? await this.#undo(before) : null,
          ),
        );
        if (failed.length > 0) this.#messages.append(drawRefused(failed, null));
      });
    } catch (error) {
      this.#tell("Not added", error);
    }
  }

  /** Imports an export in pieces of a few megabytes. All its errors become one error. */
  async #import(text: string): Promise<void> {
    const wrong: string[] = [];
    for (const piece of pieces(text)) wrong.push(...(await this.#engine.call("import", piece)));
    if (wrong.length > 0)
      throw new Error(
        `${wrong.slice(0, LISTED).join("\n")}${wrong.length > LISTED ? `\nand ${wrong.length - LISTED} more lines` : ""}`,
      );
  }

  /** Returns the button that undoes later additions. A server has none. */
  async #undo({ set, added }: Contents): Promise<HTMLElement | null> {
    if (set === null) return null;
    const writes = {
      set: set.id,
      from: (await this.#engine.call("contents", null)).added,
      to: added,
    };
    return h(
      "button",
      {
        id: "undo",
        type: "button",
        onclick: () => void this.#work("Taking back", () => this.#engine.call("undo", writes)),
      },
      "Undo",
    );
  }

  #tell(what: string, error: unknown): void {
    this.#messages.append(
      h(
        "p",
        { class: "bad" },
        `${what}: ${error instanceof Error ? error.message : String(error)}`,
      ),
    );
  }
}
