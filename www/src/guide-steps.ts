// The steps that store, replace, remove and discard guides. Each can be undone.
import { confirmed } from "./confirm";
import { h, type Change } from "./dom";
import type { Engine } from "./engine";
import type { Draft } from "./guide-drafts";
import { idOf, nextVersion } from "./guide-outline";
import { texts } from "./texts";
import { Fault, reasonOf } from "./fault";

/** Returns the text of a guide that a failed step removed and could not store again. */
function lostText(error: unknown): string | null {
  const { key, values } = (error as Partial<Fault>).fault ?? {};
  return key === "guideLost" ? String(values?.["former"]) : null;
}

/** The selected guide. */
export interface Current {
  /** The id in the list of guides. */
  id: string;
  title: string;
  text: string;
  /** The identity of the data, see `Contents`. */
  identity: string;
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
  /** Makes a text that this tab had before the text of a guide again. */
  restore(id: string, title: string, text: string): void;
  /** Selects a guide, which the view shows when the data are read again. */
  choose(id: string): void;
  /** Selects a guide and shows it. */
  select(id: string): Promise<void>;
  /** Writes another id into the text. */
  rename(id: string): void;
}

/** The buttons of the steps, in the editor, in the description of a guide, and in the messages. */
const STEP_BUTTONS = ":is(.guide-edit>.actions *,#store-guide,#guide-undo):is(button)";

/** The steps of the guide view, and the element with their messages. */
export class GuideSteps {
  readonly messages = h("div", { id: "guide-messages", class: "messages", "aria-live": "polite" });
  readonly #engine: Engine;
  readonly #change: Change;
  readonly #host: StepsHost;
  /** The id of the guide whose draft another tab changed, while the message about it is shown. */
  #followed: string | null = null;

  constructor(engine: Engine, change: Change, host: StepsHost) {
    this.#engine = engine;
    this.#change = change;
    this.#host = host;
  }

  /**
   * Removes and stores a guide, unless the user has selected another source since the step started.
   * Returns the text of the removed guide, `null` without one, and `undefined` if the step failed.
   */
  async #exchange(
    what: string,
    { remove, add, identity }: { remove: string | null; add: string | null; identity: string },
    done: () => void,
  ): Promise<string | null | undefined> {
    try {
      return await this.#change(what, async () => {
        if (this.#host.current().identity !== identity) throw new Fault("sourceChanged");
        const former = await this.#engine.call("exchangeGuide", { remove, add });
        done();
        return former;
      });
    } catch (error) {
      const words = texts.guide.notDone({ reason: reasonOf(error) });
      const lost = lostText(error);
      if (remove === null || add === null || lost === null) this.say(words, true);
      else {
        // Neither text is stored now. One becomes the draft, and the button has the other.
        if (!this.#host.draft(remove)) this.#host.keep(remove, remove, add);
        this.say(words, true, () => void this.#swapDraft(remove, lost));
      }
      return undefined;
    }
  }

  /** Replaces the text of a draft. Undo makes the replaced text the draft again. */
  async #swapDraft(id: string, text: string): Promise<void> {
    const own = this.#host.draft(id);
    this.#host.keep(id, own?.title ?? id, text);
    await this.#host.select(id);
    const undo = own && (() => void this.#swapDraft(id, own.text));
    this.say(texts.guide.draftRestored({ id }), false, undo);
  }

  /** Stores the text under its id. A stored guide with this id is replaced, after a confirmation. */
  async store(): Promise<void> {
    const { id: listed, text, title, identity } = this.#host.current();
    const id = idOf(text)?.id;
    if (!id) return this.say(texts.guide.noId, true);
    const isStored = this.#host.isStored(id);
    const question = {
      title: texts.guide.replaceTitle({ id }),
      about: texts.guide.replaceAbout({ destination: this.#host.destination() }),
      yes: texts.guide.replaceYes,
      no: texts.guide.replaceNo,
    };
    if (isStored && !(await confirmed(question))) return;
    const step = { remove: isStored ? id : null, add: text, identity };
    const former = await this.#exchange(texts.guide.storing, step, () => {
      const now = this.#host.current();
      this.#host.drop(listed);
      // Text that was typed meanwhile stays a draft.
      if (now.id === listed && now.text !== text) this.#host.keep(id, now.title, now.text);
      if (now.id === listed) this.#host.choose(id);
    });
    if (former === undefined) return;
    const words = former === null ? texts.guide.stored({ id }) : texts.guide.replaced({ id });
    this.say(words, false, () => void this.#unstore(id, former, { id, text, title, identity }));
  }

  /** Undoes the storing of a text. The text becomes a draft, so it is not lost. */
  async #unstore(
    id: string,
    former: string | null,
    { text, title, identity }: Current,
  ): Promise<void> {
    const step = { remove: id, add: former, identity };
    const done = await this.#exchange(texts.guide.takingBack, step, () => {
      if (!this.#host.draft(id)) this.#host.keep(id, title, text);
    });
    if (done === undefined) return;
    this.say(former === null ? texts.guide.unstored({ id }) : texts.guide.formerStored({ id }));
  }

  /** Stores the text as the next free version. The id in the text changes. */
  async storeVersion(): Promise<void> {
    const { id: listed, text, title } = this.#host.current();
    const id = idOf(text)?.id;
    if (!id) return this.say(texts.guide.noId, true);
    const next = nextVersion(id, (one) => this.#host.isStored(one));
    this.#host.rename(next);
    // The draft moves to the id of the new version.
    this.#host.drop(listed);
    this.#host.keep(next, title, this.#host.current().text);
    await this.#host.select(next);
    await this.store();
  }

  /** Removes the stored guide, after a confirmation. */
  async remove(): Promise<void> {
    const { id, identity } = this.#host.current();
    const question = {
      title: texts.guide.removeTitle({ id }),
      about: this.#host.draft(id) ? texts.guide.removeAboutDraft : texts.guide.removeAbout,
      yes: texts.guide.removeYes,
      no: texts.guide.removeNo,
    };
    if (!(await confirmed(question))) return;
    const step = { remove: id, add: null, identity };
    const former = await this.#exchange(texts.guide.removing, step, () => undefined);
    if (typeof former !== "string") return;
    const undo = async () => {
      const back = { remove: null, add: former, identity };
      const done = await this.#exchange(texts.guide.takingBack, back, () => this.#host.choose(id));
      if (done !== undefined) this.say(texts.guide.storedAgain({ id }));
    };
    this.say(texts.guide.removed({ id }), false, () => void undo());
  }

  /** Discards the draft. This can be undone. */
  async discard(): Promise<void> {
    const { identity, id } = this.#host.current();
    const draft = this.#host.draft(id);
    if (!draft) return;
    this.#host.drop(id);
    await this.#host.select(id);
    const undo = async () => {
      if (this.#host.current().identity !== identity) return;
      this.#host.keep(draft.id, draft.title, draft.text);
      await this.#host.select(draft.id);
      this.say(texts.guide.draftBack(draft));
    };
    this.say(texts.guide.draftDiscarded(draft), false, () => void undo());
  }

  /**
   * Shows that another tab changed the displayed draft. `own` is the text that this tab displayed,
   * which the user can restore. Further changes by the other tab keep this text.
   */
  follow(id: string, title: string, own: string): void {
    if (this.#followed === id && this.messages.hasChildNodes()) return;
    const undo = async () => {
      this.#host.restore(id, title, own);
      await this.#host.select(id);
      this.say(texts.guide.draftRestored({ id }));
    };
    this.say(texts.guide.draftFollowed({ id }), false, () => void undo());
    this.#followed = id;
  }

  /** Removes the message about another tab: undoing its change would now undo the user's edit, too. */
  edited(): void {
    if (this.#followed !== null) this.messages.replaceChildren();
    this.#followed = null;
  }

  /**
   * Shows a message, with a button that undoes the step. The focus moves there from the button of the
   * step, which is disabled or removed as soon as the data are drawn.
   */
  say(words: string, isBad = false, undo?: () => void): void {
    const button = undo
      ? h("button", { id: "guide-undo", type: "button", onclick: undo }, texts.frame.undo)
      : null;
    const said = h("p", { class: isBad ? "bad" : "good", tabindex: -1 }, words, " ", button);
    // After a failure, the button stays, and can be pressed again.
    const isLeaving = !isBad && document.activeElement?.matches(STEP_BUTTONS);
    this.messages.replaceChildren(said);
    this.#followed = null;
    const { activeElement } = document;
    if (isLeaving || activeElement === document.body || activeElement?.matches(":disabled"))
      (button ?? said).focus();
  }
}
