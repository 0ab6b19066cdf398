// The worker in workerd on this machine.
import { join } from "node:path";
import { Miniflare } from "miniflare";
import { freshState, root } from "../../tests/e2e/server.mjs";
import { expect, server } from "../http.mjs";

const state = freshState("bench");
let worker;

export const tell = (key, value) => console.log(`worker.${key} = ${value}`);

export async function start() {
  const modules = ["benches/worker/entry.mjs", "dist/worker/index.js"].map((path) => ({
    type: "ESModule",
    path: join(root, path),
  }));
  modules.push({ type: "CompiledWasm", path: join(root, "dist/worker/aqlite_worker_bg.wasm") });
  worker = new Miniflare({
    modules,
    modulesRoot: root,
    compatibilityDate: "2026-04-01",
    host: "127.0.0.1",
    port: 0,
    bindings: { AUTH: "none", SYSTEM_ID: "aqlite.bench" },
    d1Databases: { DB: "DB", EMPTY: "empty" },
    d1Persist: join(state, "v3/d1"),
    kvNamespaces: ["BLOBS"],
    kvPersist: join(state, "v3/kv"),
    handleRuntimeStdio: (out, err) => [out, err].forEach((stream) => stream.resume()),
  });
  server.port = Number((await worker.ready).port);
}

/** Restarts the worker with empty memory and unchanged databases. */
export async function restart() {
  await stop();
  await start();
}

export async function stop() {
  await worker?.dispose();
}

export const counted = async () => JSON.parse((await expect(200, "GET", "/empty/counted")).text);
