// The data view: content of the repository, sample patients, files of the user, and the offline
// REST interface.
import { confirmed } from "./confirm";
import { focusIfLost, h, quoted, type Change } from "./dom";
import { EngineError, type Engine } from "./engine";
import { dropped, textFiles, type TextFile } from "./input-files";
import { parse, print, type Json } from "./json";
import { drawRefused, type Refused } from "./refused-files";
import type { Contents, Patient, Progress, Replacement, Samples } from "./protocol";
import { SetsCard } from "./sets";
import { ASK, BY_FILE, BY_FOLDER, BY_SUBJECT, Target } from "./target";
import { askTarget, foldersOf } from "./target-question";
import { Work } from "./work";
import { count, texts, timeOf } from "./texts";
import { Fault, reasonOf } from "./fault";

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

/** Cuts an export into pieces, each with the number of its first line. */
function* pieces(text: string): Generator<{ text: string; first: number }> {
  for (let from = 0, first = 1; from < text.length;) {
    const end =
      from + AT_ONCE < text.length
        ? text.indexOf("\n", from + AT_ONCE) + 1 || text.length
        : text.length;
    const piece = text.slice(from, end);
    yield { text: piece, first };
    first += piece.split("\n").length - 1;
    from = end;
  }
}

function inWords({ ehrs, compositions, seed }: Samples): string {
  return texts.data.sampled({ compositions, ehrs, seed });
}

/** Describes what happens to the present patients when sample patients are generated. */
function effectOnPatients({ set, added, samples }: Contents): string {
  if (!set) return "";
  if (added > 0) return texts.data.fateBeside({ name: set.name, count: added });
  return samples ? texts.data.fateReplace({ samples: inWords(samples) }) : texts.data.fateAdd(set);
}

/** The choices for the patients of added files, besides the present patients, with their titles. */
const targets = (): [string, string][] => [
  ["", texts.data.targetNew],
  [BY_FOLDER, texts.data.targetFolder],
  [BY_FILE, texts.data.targetFile],
  [BY_SUBJECT, texts.data.targetSubject],
];

/** The outcome of adding files. */
interface Outcome {
  good: number;
  /** The number of all files. */
  of: number;
  /** Whether the user cancelled before all files were added. */
  ended: boolean;
  refused: Refused[];
  /** The numbers of added compositions by EHR. */
  patients: ReadonlyMap<string, number>;
}

/** The maximum number of patients that the report of added files names. */
const NAMED = 10;

/** Returns a file that was refused for a reason without a rule. */
function failedFor(file: TextFile, error: unknown): Refused {
  const message = reasonOf(error);
  return { file, problems: [{ rule: "", path: "", message }], ehr: null, renew: null, stored: 0 };
}

/** The refusals of a uid of another system or of a later version. A uid in use is not among them. */
const FOREIGN = /^the uid `.*` (?:is not that of a first version|does not begin with a UUID)/;

/** Returns a composition without its uid; `null` if it is not refused for it. */
function renewed(text: string, error: unknown): string | null {
  if (!isJson(text) || !FOREIGN.test(reasonOf(error))) return null;
  const { uid, ...rest } = parse(text) as Record<string, Json>;
  return uid === undefined ? null : print(rest);
}

/** Whether a document is canonical JSON, which can be added in spite of its findings. */
function isJson(text: string): boolean {
  return text.trimStart().startsWith("{");
}

/** Adds compositions without their uids. The other files are still refused. */
async function withoutUids(all: Refused[]): Promise<Outcome> {
  const refused = all.filter(({ renew }) => renew === null);
  const patients = new Map<string, number>();
  let good = 0;
  for (const { file, renew } of all) {
    if (!renew) continue;
    try {
      const ehr = await renew();
      patients.set(ehr, (patients.get(ehr) ?? 0) + 1);
      good += 1;
    } catch (error) {
      refused.push(failedFor(file, error));
    }
  }
  const of = all.filter(({ renew }) => renew !== null).length;
  return { good, of, ended: false, refused, patients };
}

/** The view. */
export class DataPanel {
  readonly #engine: Engine;
  readonly #change: Change;
  readonly #place = h("h2", { id: "contents-title" }, texts.data.repository);
  readonly #sampleForm: HTMLElement;
  readonly #sets: SetsCard;
  readonly #facts = h("dl", { class: "facts" });
  readonly #templates = h("ul", { class: "templates" });
  readonly #messages = h("div", { id: "added", class: "messages", "aria-live": "polite" });
  readonly #patient = h("select", { id: "target" });
  readonly #ehrs = number("ehrs", texts.data.patients, 36, 100_000);
  readonly #compositions = number("compositions", texts.data.compositions, 240, 1_000_000);
  readonly #seed = number("seed", texts.data.seed, 1, 4_294_967_295);
  readonly #generate = h("button", { id: "generate", class: "primary" }, texts.data.make);
  readonly #making = new Work();
  readonly #fate = h("p", { id: "fate", class: "quiet" });
  /** The message that patients were made, with a button to make the former ones. */
  readonly #replaced = h("p", { class: "messages", "aria-live": "polite" });
  /** The message that the data were replaced, with a button to restore them. */
  readonly #restorable = h("p", { class: "messages", "aria-live": "polite" });
  /** The replaced data set that the message is about; empty without a message. */
  #offered = "";
  #expiring = 0;
  readonly #adding = new Work();
  /** The content that was drawn last; `null` if it could not be read. */
  #contents: Contents | null = null;
  /** Whether this browser keeps the data; `null` while unknown. */
  #isKept: boolean | null = null;
  /** The address of the selected server, or `null` for this browser. */
  #where: string | null = null;
  readonly #forget = h("button", { id: "start-over", type: "button" }, texts.data.startOver);
  #patients: Patient[] = [];
  /** The destination of dropped files. */
  readonly #destination = h("p", { id: "destination", class: "destination", role: "status" });
  readonly #drop = h("p", {}, texts.data.drop);

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
      h("h3", {}, texts.data.templates),
      this.#templates,
    );
  }

  #drawSamples(): HTMLElement {
    const form = h(
      "form",
      { class: "card", "aria-labelledby": "samples-title" },
      h("h2", { id: "samples-title" }, texts.data.samples),
      h("p", { class: "quiet" }, texts.data.samplesAbout),
      h("div", { class: "fields" }, this.#ehrs.field, this.#compositions.field, this.#seed.field),
      this.#fate,
      h("div", { class: "actions" }, this.#generate, this.#forget),
      this.#making.element,
      this.#replaced,
      this.#restorable,
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
      h("h2", { id: "files-title" }, texts.data.files),
      h("p", { class: "quiet" }, texts.data.filesAbout),
      this.#destination,
      h("p", { class: "field" }, h("label", { for: "target" }, texts.data.target), this.#patient),
      h(
        "div",
        { class: "drop-zone" },
        this.#drop,
        h(
          "p",
          { class: "actions" },
          h("label", { for: "files", class: "button" }, texts.data.chooseFiles),
          files,
          h("label", { for: "folder", class: "button" }, texts.data.chooseFolder),
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
      h("h2", { id: "rest-title" }, texts.data.rest),
      h(
        "p",
        { class: "quiet" },
        ...quoted(texts.data.restAbout({ path: "/local/v1", header: "aqlite-answered-by" })),
      ),
      h("pre", { tabindex: 0 }, h("code", {}, sample)),
    );
  }

  /** Draws the content of the repository. */
  async show(contents: Contents, templates: string[], patients: Patient[]): Promise<void> {
    const local: [string, string][] = [
      [texts.data.ownWrites, count.format(contents.added)],
      [texts.data.memory, texts.data.megabytes({ megabytes: contents.memory / 1_048_576 })],
      [texts.data.readyIn, texts.data.milliseconds(contents)],
    ];
    const facts: [string, string][] = [
      [texts.data.patients, count.format(contents.ehrs)],
      [texts.data.compositions, count.format(contents.compositions)],
      ...(contents.place === null ? local : []),
    ];
    if (contents.place === null) this.#isKept = contents.isKept;
    this.#showPlace(contents.place);
    this.#contents = contents;
    this.#offerAgain(contents);
    this.#fate.textContent = effectOnPatients(contents);
    this.#facts.replaceChildren(
      ...facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
    );
    this.#templates.replaceChildren(
      ...(templates.length > 0
        ? templates.map((template) => h("li", {}, h("code", {}, template)))
        : [h("li", { class: "quiet" }, texts.data.noTemplates)]),
    );
    if (contents.samples) {
      this.#ehrs.input.value = String(contents.samples.ehrs);
      this.#compositions.input.value = String(contents.samples.compositions);
      this.#seed.input.value = String(contents.samples.seed);
    }
    // A patient is never chosen in advance, and a patient that is gone is not replaced by another.
    const before = this.#choice;
    this.#patient.replaceChildren(
      h("option", { value: ASK, selected: before === ASK }, texts.data.targetAsk),
      ...patients.map(({ ehr, label }) =>
        h("option", { value: ehr, selected: ehr === before }, label),
      ),
      ...targets().map(([value, title]) =>
        h("option", { value, selected: value === before }, title),
      ),
    );
    this.#patients = patients;
    await this.#sets.show(contents);
  }

  /** Shows the source: the address of a server, or `null` for this browser. */
  #showPlace(place: string | null): void {
    this.#place.textContent =
      place === null ? texts.data.repository : texts.data.repositoryAt({ place });
    this.#sampleForm.hidden = place !== null;
    // Messages about one source do not apply to another.
    if (this.#where !== place) {
      this.#messages.replaceChildren();
      this.#endOffers();
    }
    this.#where = place;
    this.#showDestination(place);
  }

  /** Shows the destination of files before they are dropped. */
  #showDestination(place: string | null): void {
    if (place === null) {
      const kept = this.#isKept ? texts.data.staysHere : texts.data.notKept;
      this.#destination.replaceChildren(this.#isKept === null ? "" : kept);
      this.#drop.textContent = texts.data.drop;
    } else {
      this.#destination.replaceChildren(...quoted(texts.data.sentTo({ place })));
      const host = URL.canParse(place) ? new URL(place).host : place;
      this.#drop.textContent = texts.data.dropTo({ host });
    }
    this.#destination.classList.toggle("away", place !== null || this.#isKept === false);
  }

  /** Shows that the source does not answer, so its content is unknown. */
  unknown(place: string | null): void {
    this.#showPlace(place);
    this.#contents = null;
    this.#fate.textContent = "";
    this.#facts.replaceChildren(
      h("div", {}, h("dt", {}, texts.data.patients), h("dd", {}, texts.data.notKnown)),
      h("div", {}, h("dt", {}, texts.data.compositions), h("dd", {}, texts.data.notKnown)),
    );
    this.#templates.replaceChildren(h("li", { class: "quiet" }, texts.data.templatesNotKnown));
  }

  /** Replaces all data by sample patients, after a confirmation. */
  async #startOver(): Promise<void> {
    const { added = 0, set = null } = this.#contents ?? {};
    const own = added === 0 ? texts.data.ownNone : texts.data.ownLost({ count: added });
    const about = texts.data.startOverAbout({ name: set?.name ?? texts.data.thisSet, own });
    if (
      !(await confirmed({
        title: texts.data.startOverTitle,
        about,
        yes: texts.data.startOverYes,
        no: texts.data.startOverNo,
      }))
    )
      return;
    const replaced = await this.#work(texts.data.making, () =>
      this.#engine.call("startOver", null),
    );
    if (replaced) this.#offerBack(texts.data.startedOver, replaced);
  }

  /** Offers to restore data that were replaced before this page was loaded, until they are erased. */
  #offerAgain({ set, replaced }: Contents): void {
    clearTimeout(this.#expiring);
    const left = (replaced?.until ?? 0) - Date.now();
    if (!set || !replaced || left <= 0) {
      this.#restorable.replaceChildren();
      this.#offered = "";
      return;
    }
    if (replaced.id !== this.#offered) {
      const words = texts.data.restorable({ time: timeOf(replaced.until) });
      this.#offerBack(words, { discarded: replaced.id, current: set.id });
    }
    this.#expiring = window.setTimeout(() => this.#restorable.replaceChildren(), left);
  }

  /** Removes the messages about replaced data. Data that can be restored are offered again. */
  #endOffers(): void {
    this.#replaced.replaceChildren();
    this.#restorable.replaceChildren();
    this.#offered = "";
  }

  /** Offers to restore the discarded data. After that, the restoration can be undone as well. */
  #offerBack(words: string, { discarded, current }: Replacement): void {
    this.#offered = discarded;
    const back = async () => {
      const done = await this.#work(texts.data.bringingBack, () =>
        this.#engine.call("bringBack", { discarded, current }),
      );
      if (done) this.#offerBack(texts.data.broughtBack, { discarded: current, current: discarded });
    };
    this.#offerUndo(this.#restorable, "bring-back", words, () => void back());
  }

  #offerUndo(box: HTMLElement, id: string, words: string, undo: () => void): void {
    const button = h("button", { id, type: "button", onclick: undo }, texts.frame.undo);
    box.replaceChildren(h("span", {}, `${words} `, button));
    focusIfLost(button);
  }

  /**
   * Generates sample patients. They replace the present sample patients, which can be generated again
   * from their parameters. If the data set contains writes of the user, the new patients get a data
   * set of their own.
   */
  async #make(samples: Samples): Promise<void> {
    const { set = null, samples: former = null } = this.#contents ?? {};
    const made = await this.#work(texts.data.making, () =>
      this.#making.run((progress, signal) =>
        this.#engine.call("generate", samples, { progress, signal }),
      ),
    );
    if (!made) return;
    if (made.set?.id !== set?.id)
      this.#replaced.replaceChildren(texts.data.madeBeside({ name: set?.name ?? "" }));
    else if (former)
      this.#offerUndo(
        this.#replaced,
        "make-former",
        texts.data.madeReplaced({ samples: inWords(former) }),
        () => void this.#make(former),
      );
  }

  /** Changes the data and shows errors. Returns the result of `run`, or `null` if it failed. */
  async #work<T>(what: string, run: () => Promise<T>): Promise<T | null> {
    this.#generate.disabled = true;
    this.#forget.disabled = true;
    try {
      const done = await this.#change(what, run);
      this.#messages.replaceChildren();
      this.#endOffers();
      return done;
    } catch (error) {
      if (error instanceof EngineError && error.fault?.key === "cancelled")
        this.#messages.replaceChildren(h("p", {}, texts.data.cancelled));
      else this.#showFault(texts.data.notDone, error);
      return null;
    } finally {
      this.#generate.disabled = false;
      this.#forget.disabled = false;
    }
  }

  async #add(files: Promise<File[]>): Promise<void> {
    this.#messages.replaceChildren();
    const [place, choice] = [this.#where, this.#choice];
    try {
      await this.#change(texts.data.adding, () => this.#addInTurn(files, place, choice));
    } catch (error) {
      this.#showFault(texts.data.notAdded, error);
    }
  }

  /**
   * Adds files to the source and the patient that the page showed when they were dropped. A later
   * choice does not redirect them.
   */
  async #addInTurn(files: Promise<File[]>, place: string | null, choice: string): Promise<void> {
    const all = await textFiles(await files);
    const before = await this.#engine.call("contents", null);
    if (before.place !== place)
      throw before.place === null
        ? new Fault("sourceChangedToBrowser")
        : new Fault("sourceChangedToServer", { place: before.place });
    const outcome = await this.#adding.run((tell, signal) =>
      this.#addAll(all, choice, tell, signal),
    );
    await this.#report(outcome, before);
  }

  /** Shows the number of added files with their undo, and the refused files with their problems. */
  async #report({ good, of, ended, refused, patients }: Outcome, before: Contents): Promise<void> {
    const stored = good + refused.filter(({ stored }) => stored > 0).length;
    this.#messages.prepend(
      h(
        "p",
        {},
        (ended ? texts.data.addedCancelled : texts.data.added)({ count: good, of }),
        " ",
        await this.#patientsOf(patients),
        " ",
        stored > 0 ? await this.#undo(before, stored) : null,
      ),
    );
    if (refused.length === 0) return;
    // A server decides itself what it accepts.
    const isHere = before.set !== null;
    const load = isHere ? () => void this.#loadAnyway(refused) : null;
    const renew = isHere ? () => void this.#addRenewed(refused) : null;
    this.#messages.append(drawRefused(refused, { load, renew }));
  }

  /** Names the patients of added compositions; `null` without any. */
  async #patientsOf(added: ReadonlyMap<string, number>): Promise<HTMLElement | null> {
    if (added.size === 0) return null;
    const ehrs = [...added.keys()].slice(0, NAMED);
    const found = await this.#engine.call("patientsOf", { ehrs }).catch(() => []);
    const labels = new Map(found.map(({ ehr, label }) => [ehr, label]));
    const list = ehrs.map(
      (ehr) => `${labels.get(ehr) ?? ehr} (${count.format(added.get(ehr) ?? 0)})`,
    );
    const more = added.size - ehrs.length;
    return h("span", { class: "added-to" }, texts.data.addedTo({ list: list.join(", "), more }));
  }

  async #addAll(
    files: TextFile[],
    choice: string,
    tell: (progress: Progress) => void,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const start = performance.now();
    const target = new Target(this.#engine, choice, this.#patients, () =>
      askTarget(foldersOf(files), this.#choices(), BY_FOLDER),
    );
    const counts = { good: 0, of: files.length, ended: false };
    const outcome: Outcome = { ...counts, refused: [], patients: target.added };
    for (const [at, file] of files.entries()) {
      if (signal.aborted) return { ...outcome, ended: true };
      const refused = await this.#addOne(file, target);
      if (refused) outcome.refused.push(refused);
      else {
        outcome.good += 1;
        if (outcome.good <= LISTED)
          this.#messages.append(h("p", { class: "good" }, texts.data.addedFile(file)));
      }
      tell({
        what: "addingFiles",
        done: at + 1,
        of: files.length,
        milliseconds: performance.now() - start,
      });
    }
    return outcome;
  }

  /** The choice for the patient of added files, also before the list is drawn. */
  get #choice(): string {
    return this.#patient.options.length > 0 ? this.#patient.value : ASK;
  }

  /** Returns the choices for the patients of added files, with their titles. */
  #choices(): [string, string][] {
    return [
      ...targets(),
      ...this.#patients.map(({ ehr, label }): [string, string] => [ehr, label]),
    ];
  }

  /** Adds a file. Returns its problems if it is refused. */
  async #addOne(file: TextFile, target: Target): Promise<Refused | null> {
    const { name } = file;
    let text = "";
    try {
      text = await file.text();
      if (/\.ndjson$/i.test(name)) return await this.#import(file, text);
      if (!(await this.#engine.call("add", { name, text, ehr: null }))) {
        const problems = await this.#engine.call("problems", { name, text });
        const ehr = () => target.ehr(name, text);
        if (problems.length > 0)
          return { file, problems, ehr: isJson(text) ? ehr : null, renew: null, stored: 0 };
        await target.add(name, text);
      }
      return null;
    } catch (error) {
      const sent = renewed(text, error);
      const renew = sent === null ? null : () => target.add(name, sent);
      return { ...failedFor(file, error), renew };
    }
  }

  /** Adds refused compositions without their uids, which the data set then chooses. */
  async #addRenewed(refused: Refused[]): Promise<void> {
    const add = async () => {
      const before = await this.#engine.call("contents", null);
      this.#messages.replaceChildren();
      await this.#report(await withoutUids(refused), before);
    };
    try {
      await this.#change(texts.data.adding, add);
    } catch (error) {
      this.#showFault(texts.data.notAdded, error);
    }
  }

  /** Adds refused compositions in spite of their problems. */
  async #loadAnyway(refused: Refused[]): Promise<void> {
    const loadable = refused.flatMap(({ file, ehr }) => (ehr ? [{ file, ehr }] : []));
    try {
      await this.#change(texts.data.adding, async () => {
        const before = await this.#engine.call("contents", null);
        this.#messages.replaceChildren();
        let [good, warnings] = [0, 0];
        const patients = new Map<string, number>();
        const failed: Refused[] = [];
        for (const { file, ehr } of loadable) {
          try {
            const text = await file.text();
            const id = await ehr();
            warnings += await this.#engine.call("load", { ehr: id, text });
            patients.set(id, (patients.get(id) ?? 0) + 1);
            good += 1;
          } catch (error) {
            failed.push(failedFor(file, error));
          }
        }
        this.#messages.append(
          h(
            "p",
            { class: "warned" },
            texts.data.addedWarned({ count: good, of: loadable.length, warnings }),
            " ",
            await this.#patientsOf(patients),
            " ",
            good > 0 ? await this.#undo(before, good) : null,
          ),
        );
        if (failed.length > 0)
          this.#messages.append(drawRefused(failed, { load: null, renew: null }));
      });
    } catch (error) {
      this.#showFault(texts.data.notAdded, error);
    }
  }

  /**
   * Imports an export in pieces of a few megabytes. All its errors become one problem. The pieces
   * before one that fails stay stored.
   */
  async #import(file: TextFile, text: string): Promise<Refused | null> {
    const wrong: string[] = [];
    let stored = 0;
    try {
      for (const piece of pieces(text)) {
        const done = await this.#engine.call("import", piece);
        stored += done.stored;
        wrong.push(...done.refused);
      }
    } catch (error) {
      wrong.push(reasonOf(error));
    }
    if (wrong.length === 0) return null;
    const lines = wrong.slice(0, LISTED).join("\n");
    const count = wrong.length - LISTED;
    const error = count > 0 ? new Fault("refusedLines", { lines, count }) : new Error(lines);
    return { ...failedFor(file, error), stored };
  }

  /** Returns the button that undoes later additions; `null` without any. A server has none. */
  async #undo({ set, added: to }: Contents, files: number): Promise<HTMLElement | null> {
    if (set === null) return null;
    const { added: from } = await this.#engine.call("contents", null);
    if (from === to) return null;
    const writes = { set: set.id, from, to };
    return h(
      "button",
      {
        id: "undo",
        type: "button",
        onclick: () => void this.#takeBack(writes, files),
      },
      texts.frame.undo,
    );
  }

  /** Undoes the addition of files, and reports that. */
  async #takeBack(writes: { set: string; from: number; to: number }, files: number): Promise<void> {
    const done = await this.#work(texts.data.takingBack, () => this.#engine.call("undo", writes));
    if (!done) return;
    const said = h("p", { tabindex: -1 }, texts.data.tookBack({ count: files }));
    this.#messages.replaceChildren(said);
    focusIfLost(said);
  }

  #showFault(say: typeof texts.data.notDone, error: unknown): void {
    this.#messages.append(h("p", { class: "bad" }, say({ reason: reasonOf(error) })));
  }
}
