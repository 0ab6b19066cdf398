// Work that must not wait for the code of the page: the chosen colours before the first paint, and
// the engine, whose module is compiled while the page is parsed. It is a classic script in a file
// of its own, because the policy of the page allows no inline script.
import { remembered } from "./remember";

declare const WORKER_URL: string;

const chosen = remembered("localStorage", "aqlite-theme");
if (chosen === "light" || chosen === "dark") document.documentElement.dataset["theme"] = chosen;

const worker = new Worker(WORKER_URL, { name: "aqlite" });
const early: EarlyWorker = { worker, failed: false };
worker.onerror = (event) => {
  event.preventDefault();
  early.failed = true;
};
window.earlyWorker = early;
