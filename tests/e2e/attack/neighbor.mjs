// A client beside an attack, in its own thread. It requests `/health` and samples the memory of the
// server until it receives the message to stop.
import { readFileSync } from "node:fs";
import { request } from "node:http";
import { parentPort, workerData } from "node:worker_threads";

const { port, pid } = workerData;
/** The milliseconds between two requests, and the timeout of a request. */
const [PAUSE, LOST] = [75, 20_000];
const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const latencies = [];
const refused = [];
let peak = 0;
let goesOn = true;

/** Sends one request on a new connection. Resolves to the status, or to the code of the error. */
function ask() {
  return new Promise((resolve) => {
    const sent = request(
      { host: "127.0.0.1", port, path: "/health", agent: false, timeout: LOST },
      (answer) => {
        answer.resume();
        answer
          .on("end", () => resolve(answer.statusCode))
          .on("error", (error) => resolve(error.code));
      },
    );
    sent
      .on("error", (error) => resolve(error.code ?? error.message))
      .on("timeout", () => sent.destroy(new Error("timeout")))
      .end();
  });
}

const sampler = setInterval(() => {
  try {
    const resident = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
    peak = Math.max(peak, Number(resident ?? 0) * 1024);
  } catch {
    // The process has ended. The failing requests report this.
  }
}, 25);
parentPort.once("message", () => (goesOn = false));
while (goesOn) {
  const started = performance.now();
  const status = await ask();
  latencies.push(performance.now() - started);
  if (status !== 200) refused.push(status);
  await pause(PAUSE);
}
clearInterval(sampler);
parentPort.postMessage({
  asked: latencies.length,
  worst: Math.max(...latencies),
  refused: refused.slice(0, 5),
  peak,
});
