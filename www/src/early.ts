// The first script of the page. It sets the chosen colors before the first paint, and starts to load
// the texts of the language and the engine, which gets the first query before the page is parsed. It is
// a file of its own, because the content security policy allows no inline script.
import { firstQuery } from "./first-query";
import { keptServer } from "./kept-server";
import { EARLY, type Reply, type Request } from "./protocol";
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

/**
 * Returns the query that the page will run first. Returns `null` if its parameters or its source are
 * known only to the code of the page, and on a first visit.
 */
function knownQuery(): string | null {
  const q = firstQuery() ?? "";
  return q.trim() === "" || q.includes("$") || keptServer() !== null ? null : q;
}

const worker = new Worker(WORKER_URL, { name: "aqlite" });
const early: EarlyWorker = { worker, failed: false, asked: knownQuery(), replies: [] };
worker.onmessage = ({ data }: MessageEvent<Reply>) => early.replies.push(data);
worker.onerror = (event) => {
  event.preventDefault();
  early.failed = true;
};
if (early.asked !== null) {
  const argument = { q: early.asked, parameters: {}, from: null };
  worker.postMessage({ id: EARLY, call: "query", argument } satisfies Request);
}
window.earlyWorker = early;
