// The first script of the page. It sets the chosen colors before the first paint, and starts to load
// the texts of the language and the engine, whose module is compiled while the page is parsed. It is
// a file of its own, because the content security policy allows no inline script.
import { selectedLanguage, textsUrl } from "./language";
import { remembered } from "./remember";

declare const WORKER_URL: string;

const chosen = remembered("localStorage", "aqlite-theme");
if (chosen === "light" || chosen === "dark") document.documentElement.dataset["theme"] = chosen;

const texts = textsUrl(selectedLanguage());
if (texts !== null) {
  // The English texts of index.html stay hidden until they are replaced.
  document.documentElement.classList.add("translating");
  const preload = document.createElement("link");
  [preload.rel, preload.href] = ["modulepreload", texts];
  document.head.append(preload);
}

const worker = new Worker(WORKER_URL, { name: "aqlite" });
const early: EarlyWorker = { worker, failed: false };
worker.onerror = (event) => {
  event.preventDefault();
  early.failed = true;
};
window.earlyWorker = early;
