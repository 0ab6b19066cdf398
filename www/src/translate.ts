// The texts of index.html. The build inserts the English ones. This module replaces them by those of
// another language.
import { byId, quoted } from "./dom";
import { languageCodes, ownName, selectLanguage, selectedLanguage, textsUrl } from "./language";
import { setTexts, texts, type Texts } from "./texts";
import { texts as english } from "./texts/en";

/** The attributes of index.html that name a text, and the attributes that receive it. */
const RECEIVERS = { label: "aria-label", hint: "placeholder", title: "title" } as const;

/** Returns the text with a path such as `query.run`. */
function find(path: string): string {
  const found = path
    .split(".")
    .reduce<unknown>((part, name) => (part as Record<string, unknown>)[name], texts);
  if (typeof found !== "string") throw new Error(path);
  return found;
}

/** Writes the texts of index.html. */
function translate(): void {
  for (const element of document.querySelectorAll<HTMLElement>("[data-text]"))
    element.replaceChildren(...quoted(find(element.dataset["text"] ?? "")));
  for (const [name, attribute] of Object.entries(RECEIVERS))
    for (const element of document.querySelectorAll<HTMLElement>(`[data-${name}]`))
      element.setAttribute(attribute, find(element.dataset[name] ?? ""));
  document.title = texts.frame.title;
}

/** Loads the texts of the selected language, and translates index.html. */
export async function loadTexts(): Promise<void> {
  const code = selectedLanguage();
  const url = textsUrl(code);
  setTexts(english);
  if (url !== null) {
    try {
      setTexts(((await import(url)) as { texts: Texts }).texts);
      translate();
    } catch {
      // Without network and without a stored file, the page is in English.
    }
  }
  document.documentElement.lang = texts.language;
  document.documentElement.classList.remove("translating");
}

/** Fills the choice of languages. `change` is called with another choice once it is stored. */
export function listenLanguage(
  select: HTMLSelectElement,
  allowed: () => Promise<boolean>,
  change: () => void,
): void {
  byId("language-code").textContent = texts.language.toUpperCase();
  for (const code of languageCodes()) {
    const option = new Option(ownName(code), code, false, code === texts.language);
    option.lang = code;
    select.append(option);
  }
  select.addEventListener("change", () => {
    const chosen = select.value;
    void allowed().then((isAllowed) => {
      if (!isAllowed) {
        select.value = texts.language;
        return;
      }
      selectLanguage(chosen);
      change();
    });
  });
}
