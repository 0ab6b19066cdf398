// The script that the benchmark runs in workerd: the worker as it ships with a counting database,
// and an empty handler for comparison.
import aqlite from "../../dist/worker/index.js";

const NOTHING = { trips: 0, rows: 0, ms: 0, blobs: 0 };
let counted = { ...NOTHING, bytes: 0 };

/**
 * A D1 database that counts round trips and the rows that D1 reports. The runtime recognizes it by
 * the name of its class.
 */
class D1Database {
  constructor(inner) {
    this.inner = inner;
  }

  prepare(sql) {
    return this.inner.prepare(sql);
  }

  async batch(statements) {
    const results = await this.inner.batch(statements);
    counted.trips += 1;
    for (const { meta } of results) {
      counted.rows += meta.rows_written;
      counted.bytes = meta.size_after;
      counted.ms += meta.duration;
    }
    return results;
  }
}

/** A KV namespace that counts what is read from it. */
function countedKv(inner) {
  const same = (name) => [name, inner[name].bind(inner)];
  const get = (...args) => {
    counted.blobs += 1;
    return inner.get(...args);
  };
  return { ...Object.fromEntries(["put", "delete", "list", "getWithMetadata"].map(same)), get };
}

const empty = {
  /** The minimal handler that stores a body. */
  async write(request, { EMPTY }) {
    await EMPTY.prepare("INSERT INTO empty (body) VALUES (?1)")
      .bind(await request.text())
      .run();
    return new Response(null, { status: 201 });
  },
  /** The minimal handler that returns a stored body. */
  async read(request, { EMPTY }) {
    const row = await EMPTY.prepare("SELECT body FROM empty WHERE id = 1").first();
    return new Response(row.body, { headers: { "content-type": "application/json" } });
  },
  async table(request, { EMPTY }) {
    await EMPTY.prepare(
      "CREATE TABLE IF NOT EXISTS empty (id INTEGER PRIMARY KEY, body TEXT NOT NULL)",
    ).run();
    return new Response(null, { status: 204 });
  },
  /** Returns the bytes of all segments. */
  async segments(request, { DB }) {
    return Response.json(await DB.prepare("SELECT sum(bytes) AS bytes FROM segment").first());
  },
  /** Returns and resets the counters. */
  async counted() {
    const before = counted;
    counted = { ...before, ...NOTHING };
    return Response.json(before);
  },
};

let database, kv;

export default {
  async fetch(request, env, context) {
    const [, root, name] = new URL(request.url).pathname.split("/");
    if (root === "empty") return empty[name](request, env);
    database ??= new D1Database(env.DB);
    kv ??= countedKv(env.BLOBS);
    return aqlite.fetch(request, { ...env, DB: database, BLOBS: kv }, context);
  },
};
