// The progress of a long operation, as a bar and in words, with a button that cancels the operation.
import { h } from "./dom";
import type { Progress } from "./protocol";
import { texts } from "./texts";

/** Describes progress in words: subject, amount, speed. */
export function describeProgress({ what, done, of, milliseconds }: Progress): string {
  const speed = Math.round((done / milliseconds) * 1000);
  return texts.frame.progressed({ what: texts.frame.working[what], done, of, speed });
}

/** A bar that is visible while an operation runs. */
export class Work {
  readonly #bar = h("progress", { max: 1, "aria-label": texts.frame.progress });
  readonly #words = h("span", { class: "work-words", role: "status" });
  readonly #cancel = h("button", { type: "button" }, texts.frame.cancel);
  readonly element = h(
    "div",
    { class: "work-bar", hidden: true },
    this.#bar,
    this.#words,
    this.#cancel,
  );

  /** Runs an operation that reports progress and can be cancelled. */
  async run<T>(
    what: (report: (progress: Progress) => void, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const ending = new AbortController();
    this.#cancel.onclick = () => ending.abort();
    this.#bar.removeAttribute("value");
    this.#words.textContent = "";
    this.element.hidden = false;
    try {
      return await what((progress) => this.#show(progress), ending.signal);
    } finally {
      this.element.hidden = true;
    }
  }

  #show(progress: Progress): void {
    this.#bar.value = Math.min(1, progress.done / progress.of);
    this.#words.textContent = describeProgress(progress);
  }
}
