// Work that must not wait for the code of the page: the chosen colours before the first paint, the
// texts of the language, and the engine, whose module is compiled while the page is parsed. It is a
// classic script in a file of its own, because the policy of the page allows no inline script.
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
