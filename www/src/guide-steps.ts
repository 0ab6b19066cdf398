// The steps that store, replace, remove and discard guides. Each can be undone.
import { confirmed } from "./confirm";
import { h, type Change } from "./dom";
import type { Engine } from "./engine";
import type { Draft } from "./guide-drafts";
import { idOf, nextVersion } from "./guide-outline";

/** The selected guide. */
export interface Current {
  /** The id under which it is listed. */
  id: string;
  title: string;
  text: string;
  /** The identity of the data, see `Contents`. */
  of: string;
}

/** The functions of the view that the steps call. */
export interface StepsHost {
  current(): Current;
  /** Whether a guide is stored under this id. */
  isStored(id: string): boolean;
  /** The destination of stored guides, in words. */
  destination(): string;
  draft(id: string): Draft | undefined;
  keep(id: string, title: string, text: string): void;
  drop(id: string): void;
  /** Selects a guide, which the view shows when the data are read again. */
  choose(id: string): void;
  /** Selects a guide and shows it. */
  select(id: string): Promise<void>;
  /** Writes another id into the text. */
  rename(id: string): void;
}

/** The steps of the guide view, with the place of their messages. */
export class GuideSteps {
  readonly messages = h("div", { id: "guide-messages", class: "messages", "aria-live": "polite" });
  readonly #engine: Engine;
  readonly #change: Change;
  readonly #host: StepsHost;

  constructor(engine: Engine, change: Change, host: StepsHost) {
    this.#engine = engine;
    this.#change = change;
    this.#host = host;
  }

  /**
   * Changes the stored guides, unless the source is no longer that of the step. Returns the former
   * text of the removed one; `undefined` if it failed.
   */
  async #exchange(
    what: string,
    { remove, add, of }: { remove: string | null; add: string | null; of: string },
    done: () => void,
  ): Promise<string | null | undefined> {
    try {
      return await this.#change(what, async () => {
        if (this.#host.current().of !== of)
          throw new Error("another source or data set was selected meanwhile");
        const former = await this.#engine.call("exchangeGuide", { remove, add });
        done();
        return former;
      });
    } catch (error) {
      this.say(`Not done: ${error instanceof Error ? error.message : String(error)}`, true);
      return undefined;
    }
  }

  /** Stores the text under its id. A stored guide with this id is replaced, after a confirmation. */
  async store(): Promise<void> {
    const { id: listed, text, title, of } = this.#host.current();
    const id = idOf(text)?.id;
    if (!id) return this.say("Not stored: the text has no id.", true);
    const isStored = this.#host.isStored(id);
    const question = {
      title: `Replace ${id}?`,
      about: `Its stored text is replaced by this one, and later runs use this one. ${this.#host.destination()} You can undo it.`,
      yes: "Replace",
      no: "Keep the stored one",
    };
    if (isStored && !(await confirmed(question))) return;
    const step = { remove: isStored ? id : null, add: text, of };
    const former = await this.#exchange("Storing", step, () => {
      const now = this.#host.current();
      this.#host.drop(listed);
      // Text that was typed meanwhile stays a draft.
      if (now.id === listed && now.text !== text) this.#host.keep(id, now.title, now.text);
      if (now.id === listed) this.#host.choose(id);
    });
    if (former === undefined) return;
    const words = former === null ? `${id} is stored.` : `${id} is replaced.`;
    this.say(words, false, () => void this.#unstore(id, former, { id, text, title, of }));
  }

  /** Undoes that a text was stored. The text is a draft then, so it is not lost. */
  async #unstore(id: string, former: string | null, { text, title, of }: Current): Promise<void> {
    const step = { remove: id, add: former, of };
    const done = await this.#exchange("Taking back", step, () => {
      if (!this.#host.draft(id)) this.#host.keep(id, title, text);
    });
    if (done === undefined) return;
    this.say(
      former === null
        ? `${id} is not stored any more. Its text is a draft.`
        : `The former text of ${id} is stored again. The newer one is a draft.`,
    );
  }

  /** Stores the text as the next free version. The id in the text changes. */
  async storeVersion(): Promise<void> {
    const { id: listed, text, title } = this.#host.current();
    const id = idOf(text)?.id;
    if (!id) return this.say("Not stored: the text has no id.", true);
    const next = nextVersion(id, (one) => this.#host.isStored(one));
    this.#host.rename(next);
    // The draft is now that of the new version.
    this.#host.drop(listed);
    this.#host.keep(next, title, this.#host.current().text);
    await this.#host.select(next);
    await this.store();
  }

  /** Removes the stored guide, after a confirmation. */
  async remove(): Promise<void> {
    const { id, of } = this.#host.current();
    const question = {
      title: `Remove ${id}?`,
      about: `It is not run any more. ${this.#host.draft(id) ? "Your draft of it stays." : ""} You can undo it.`,
      yes: "Remove",
      no: "Keep it",
    };
    if (!(await confirmed(question))) return;
    const step = { remove: id, add: null, of };
    const former = await this.#exchange("Removing", step, () => undefined);
    if (typeof former !== "string") return;
    const undo = async () => {
      const back = { remove: null, add: former, of };
      const done = await this.#exchange("Taking back", back, () => this.#host.choose(id));
      if (done !== undefined) this.say(`${id} is stored again.`);
    };
    this.say(`${id} is removed.`, false, () => void undo());
  }

  /** Forgets the draft, which can be undone. */
  async discard(): Promise<void> {
    const { of, id } = this.#host.current();
    const draft = this.#host.draft(id);
    if (!draft) return;
    this.#host.drop(id);
    await this.#host.select(id);
    const undo = async () => {
      if (this.#host.current().of !== of) return;
      this.#host.keep(draft.id, draft.title, draft.text);
      await this.#host.select(draft.id);
      this.say(`The draft of ${draft.id} is back.`);
    };
    this.say(`The draft of ${draft.id} is discarded.`, false, () => void undo());
  }

  /** Shows a message, with a button that undoes the step. */
  say(words: string, isBad = false, undo?: () => void): void {
    const button = undo
      ? h("button", { id: "guide-undo", type: "button", onclick: undo }, "Undo")
      : null;
    this.messages.replaceChildren(h("p", { class: isBad ? "bad" : "good" }, words, " ", button));
    // The pressed button may be disabled or gone.
    const active = document.activeElement;
    if (button && (active === document.body || active?.matches(":disabled"))) button.focus();
  }
}
