// Helpers for DOM elements.
import { texts } from "./texts";

type Child = Node | string | null | undefined;

/** Returns the name of a language in the language of the page, with its code. */
export function languageName(code: string): string {
  try {
    const languages = new Intl.DisplayNames(texts.language, { type: "language", fallback: "code" });
    const name = languages.of(code);
    return name && name !== code ? `${name} (${code})` : code;
  } catch {
    return code;
  }
}

/**
 * Creates an element from attributes and children. Attributes `on…` are listeners. `false` and
 * `null` omit an attribute.
 */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, string | number | boolean | null | EventListener> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value !== false && value !== null)
      element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) if (child !== null && child !== undefined) element.append(child);
  return element;
}

/** Formats a message: source words in back-ticks become code. */
export function quoted(text: string): Node[] {
  return text
    .split("`")
    .map((part, at) => (at % 2 === 1 ? h("code", {}, part) : document.createTextNode(part)));
}

/** Returns the element with this id. index.html must contain it. */
export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const element = document.getElementById(id);
  if (!element) throw new Error(`no element #${id}`);
  return element as T;
}

/**
 * A function that changes the data of the page. `what` describes the change. The page is busy until
 * the new data are drawn.
 */
export type Change = <T>(what: string, run: () => Promise<T>) => Promise<T>;

/** Returns a function that calls `run` once, `wait` milliseconds after its last call. */
export function debounced(wait: number, run: () => void): () => void {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = window.setTimeout(run, wait);
  };
}

/**
 * Moves the focus to an element if no element has it. A browser moves it to the body when the pressed
 * button is disabled or removed.
 */
export function focusIfLost(element: HTMLElement | null): void {
  const { activeElement } = document;
  if (activeElement === null || activeElement === document.body) element?.focus();
}

/** Offers a text as a file for download. */
export function save(name: string, type: string, text: string): void {
  saveBlob(name, new Blob([text], { type }));
}

/** Offers bytes as a file for download. */
export function saveBlob(name: string, blob: Blob): void {
  const url = URL.createObjectURL(blob);
  const link = h("a", { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/**
 * Copies a text to the clipboard, and confirms it on the button (or the first entry of a menu) for
 * a moment.
 */
export async function copy(button: HTMLElement, text: string): Promise<void> {
  // A second press during the confirmation must not make the confirmation permanent.
  const own = (button.dataset["own"] ??= button.textContent ?? "");
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = texts.frame.copied;
  } catch {
    button.textContent = texts.frame.notAllowed;
  }
  setTimeout(() => (button.textContent = own), 1500);
}

/** Moves focus among the buttons of a tab list or radio group with the arrow keys, Home and End. */
export function rove(group: HTMLElement, chosen: (button: HTMLElement) => void): void {
  const buttons = () => [...group.querySelectorAll<HTMLElement>("[role=tab],[role=radio]")];
  group.addEventListener("click", (event) => {
    const button = (event.target as HTMLElement).closest<HTMLElement>("[role=tab],[role=radio]");
    if (button) chosen(button);
  });
  group.addEventListener("keydown", (event) => {
    const list = buttons();
    const at = list.indexOf(document.activeElement as HTMLElement);
    const steps: Record<string, number> = {
      ArrowRight: at + 1,
      ArrowDown: at + 1,
      ArrowLeft: at - 1,
      ArrowUp: at - 1,
      Home: 0,
      End: list.length - 1,
    };
    const to = steps[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    const button = list[(to + list.length) % list.length];
    button?.focus();
    if (button) chosen(button);
  });
}
