// The patients of added compositions: a chosen one, a new one, or one for each folder, file name or
// subject. Without a choice, the user is asked at the first composition.
import type { Engine } from "./engine";
import type { Patient } from "./protocol";
import { Fault } from "./fault";

/** The choices that create a patient for each folder, file name or subject. */
export const BY_FOLDER = "by folder";
export const BY_FILE = "by file";
export const BY_SUBJECT = "by subject";
/** The choice that asks at the first composition. */
export const ASK = "ask";

/** Returns the id of the first subject in a document, or `null`. */
function subjectOf(text: string): string | null {
  const json = /"subject"\s*:\s*\{[^{}]*"external_ref"\s*:\s*\{/.exec(text);
  const part = json ? text.slice(json.index, json.index + 2000) : "";
  const id = /"id"\s*:\s*\{[^{}]*"value"\s*:\s*("(?:[^"\\]|\\.)*")/.exec(part)?.[1];
  return id === undefined ? null : (JSON.parse(id) as string);
}

/** The destination of the compositions of one drop. */
export class Target {
  readonly #engine: Engine;
  readonly #ask: () => Promise<string | null>;
  /** The choice; `ASK` before the question, `null` if the user cancelled the question. */
  #choice: string | null;
  /** The number of added documents by EHR. */
  readonly #added = new Map<string, number>();
  /** The ids of EHRs: of existing ones by label, of those created for this drop by key. */
  readonly #ehrs: Map<string, string>;

  /**
   * `choice` is the id of an EHR, empty for a new EHR, or one of the choices above. `ask` returns
   * such a choice other than `ASK`, or `null` if the user cancels.
   */
  constructor(
    engine: Engine,
    choice: string,
    patients: Patient[],
    ask: () => Promise<string | null>,
  ) {
    this.#engine = engine;
    this.#choice = choice;
    this.#ask = ask;
    this.#ehrs = new Map(patients.map(({ ehr, label }) => [label, ehr]));
  }

  /** Returns the subject of the patient of a document; `null` for a patient without one. */
  #key(name: string, text: string): string | null {
    const parts = name.split("/");
    const file = parts.at(-1) ?? name;
    const keys: Record<string, () => string | null | undefined> = {
      [BY_FOLDER]: () => parts.at(-2),
      [BY_FILE]: () => /^[^_.]+/.exec(file)?.[0],
      [BY_SUBJECT]: () => subjectOf(text),
    };
    const key = keys[this.#choice ?? ""];
    if (!key) return null;
    const found = key();
    if (found) return found;
    if (this.#choice === BY_FOLDER) throw new Fault("noFolder");
    throw new Fault(this.#choice === BY_FILE ? "noFileName" : "noSubject");
  }

  /** Returns the EHR of a document, which is created if there is none yet. */
  async ehr(name: string, text: string): Promise<string> {
    const choice = await this.#chosen();
    if (this.#isEhr(choice)) return choice;
    const key = this.#key(name, text);
    const found = this.#ehrs.get(key ?? "");
    if (found !== undefined) return found;
    const made = await this.#engine.call("newEhr", key);
    this.#ehrs.set(key ?? "", made);
    return made;
  }

  #isEhr(choice: string): boolean {
    return !["", BY_FOLDER, BY_FILE, BY_SUBJECT].includes(choice);
  }

  /** Returns the choice, after the question at the first document. */
  async #chosen(): Promise<string> {
    if (this.#choice === ASK) this.#choice = await this.#ask();
    if (this.#choice === null) throw new Fault("noPatient");
    return this.#choice;
  }

  /** Returns the numbers of added documents by EHR. */
  get added(): ReadonlyMap<string, number> {
    return this.#added;
  }

  /**
   * Adds a document. Returns the id of its EHR. If the document is refused, no empty patient is left
   * in this browser.
   */
  async add(name: string, text: string): Promise<string> {
    const isEhr = this.#isEhr(await this.#chosen());
    const key = isEhr ? "" : (this.#key(name, text) ?? "");
    const isNew = !isEhr && !this.#ehrs.has(key);
    const before = isNew ? await this.#engine.call("contents", null) : null;
    const ehr = await this.ehr(name, text);
    try {
      await this.#engine.call("add", { name, text, ehr });
      this.#added.set(ehr, (this.#added.get(ehr) ?? 0) + 1);
      return ehr;
    } catch (error) {
      // A server cannot remove the new EHR. The next document of this drop uses it.
      if (before?.set) {
        this.#ehrs.delete(key);
        const [set, to] = [before.set.id, before.added];
        await this.#engine.call("undo", { set, from: to + 1, to });
      }
      throw error;
    }
  }
}
