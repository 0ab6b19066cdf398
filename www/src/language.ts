// The language of the page: the stored choice, or else the first preferred language of the browser
// for which the page has texts. English is part of the page, other languages are loaded.
import { remember, remembered } from "./remember";

/** The files with the texts of the other languages, by code. */
declare const LANGUAGES: Record<string, string>;

const KEY = "aqlite-language";

/** Returns the codes of all languages, English first. */
export function languageCodes(): string[] {
  return ["en", ...Object.keys(LANGUAGES)];
}

/** Returns the code of the selected language. */
export function selectedLanguage(): string {
  const known = languageCodes();
  const stored = remembered("localStorage", KEY);
  const wanted = [stored ?? "", ...navigator.languages].map((one) => one.split("-")[0] ?? "");
  return wanted.find((one) => known.includes(one)) ?? "en";
}

/** Stores the choice of a language for the next load. */
export function selectLanguage(code: string): void {
  remember("localStorage", KEY, code);
}

/** Returns the address of the texts of a language; `null` for English. */
export function textsUrl(code: string): string | null {
  const name = LANGUAGES[code];
  return name === undefined ? null : new URL(name, document.baseURI).href;
}

/** Returns the name of a language in this language: Deutsch. */
export function ownName(code: string): string {
  const name = new Intl.DisplayNames(code, { type: "language" }).of(code) ?? code;
  return name.slice(0, 1).toLocaleUpperCase(code) + name.slice(1);
}
