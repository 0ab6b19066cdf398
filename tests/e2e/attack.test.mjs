// Attacks on the worker in workerd. Each attack is refused or bounded, and other clients (neighbors)
// are served meanwhile.
//
// `open` of an attack is the reason why it is not bounded yet. Such an attack is skipped, except in the
// full sizes. AQLITE_ATTACK=long executes all attacks in full size (`cargo xtask soak --only attack`).
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { V1, program, sample, uploadTemplates } from "./server.mjs";
import { LONG, bombs } from "./attack/bombs.mjs";
import { BUSY } from "./attack/busy.mjs";
import { contributions } from "./attack/contributions.mjs";
import { definitions } from "./attack/definitions.mjs";
import { large } from "./attack/large.mjs";
import { memory } from "./attack/memory.mjs";
import { sizes } from "./attack/sizes.mjs";
import { work } from "./attack/work.mjs";
import { CALM, Host, WIDE, assertCalm, megabytes } from "./attack/host.mjs";

/** The number of times that the sample is loaded, each time into EHRs of its own. */
const COPIES = 5;

/** Loads the sample several times. */
async function populate(host) {
  const data = sample();
  const typed = { send: (method, path, options) => host.send(method, path, options) };
  await uploadTemplates(typed, data);
  for (let copy = 0; copy < COPIES; copy += 1) {
    const ids = new Map(data.compositions.map(({ ehr_id }) => [ehr_id, crypto.randomUUID()]));
    const lines = [...ids.values()].map((ehr_id) => ({ ehr_id, ehr_status: null }));
    lines.push(
      ...data.compositions.map(({ ehr_id, composition }) => ({
        ehr_id: ids.get(ehr_id),
        composition,
      })),
    );
    for (const outcome of await host.lines(`${V1}/ehr/bulk`, lines))
      assert.equal(outcome.status, 201, JSON.stringify(outcome));
  }
}

/** Describes the measurements of an attack. */
const measured = ({ seen, releasedAfter, result }) =>
  `${Math.round(seen.milliseconds)} ms, neighbor ${Math.round(seen.worst)} ms with ${Math.round(seen.left * 100)} % of the processors, memory ${megabytes(seen.memory)}, given back after ${Math.round(releasedAfter)} ms, answers ${result?.map((answer) => answer.status).join(" ")}`;

/** Fails unless the answers have a status that the attack expects, and pass its further check. */
function assertAnswered({ expected, holds }, result) {
  for (const answer of result)
    assert.ok(
      expected.includes(answer.status),
      `${answer.status} instead of ${expected.join(" or ")}: ${answer.text.slice(0, 300)}`,
    );
  holds?.(result);
}

const all = [...bombs, ...large, ...definitions, ...sizes, ...contributions, ...work];

test("attacks with wide bounds exist", () => {
  const names = new Set(all.map(({ item, title }) => `${item}: ${title}`));
  assert.deepEqual(
    [...BUSY.keys()].filter((name) => !names.has(name)),
    [],
  );
});

describe("bombs", () => {
  let host;
  const start = async () => {
    host = await Host.start("bombs", { AUTH: "none", ADMIN: "true" });
    await populate(host);
  };
  before(start);
  after(() => host?.stop());

  for (const bomb of all) {
    const { item, title, open, prepare, attack } = bomb;
    const name = `${item}: ${title}`;
    const bounds = BUSY.has(name) ? WIDE : CALM;
    test(name, { skip: LONG ? false : (open ?? false) }, async (context) => {
      const state = await prepare?.(host);
      await host.settle();
      const { result, failure, seen } = await host.observe(() => attack(host, state));
      if (!(await host.isAlive())) {
        await host.stop();
        await start();
        throw failure ?? new Error("the attack stopped the server");
      }
      const releasedAfter = await host.waitForRelease(bounds.kept);
      context.diagnostic(measured({ seen, releasedAfter, result }));
      if (failure) throw failure;
      assertAnswered(bomb, result);
      assertCalm({ seen, releasedAfter }, bounds);
    });
  }
});

/**
 * The bounds of an attack on memory. The program has a gigabyte (`--memory`), of which long texts and queries may
 * take a quarter, beside the requests that make them. Its allocator keeps freed memory for the thread that had it.
 */
const memoryOf = ({ most, kept }) =>
  program ? { memory: 400_000_000, kept: 400_000_000 } : { memory: most, kept };

describe("memory", () => {
  for (const attack of memory)
    test(`${attack.item}: ${attack.title}`, async (context) => {
      const variables = { AUTH: "none", ...attack.variables };
      const host = await Host.start("memory", variables, { apart: true });
      try {
        const run = await attack.prepare(host);
        await host.restart();
        await host.settle();
        const { result, failure, seen } = await host.observe(run);
        const bounds = memoryOf(attack);
        const releasedAfter = await host.waitForRelease(bounds.kept);
        context.diagnostic(measured({ seen, releasedAfter, result }));
        if (failure) throw failure;
        assertAnswered(attack, result);
        assertCalm({ seen, releasedAfter }, { ...WIDE, ...bounds });
      } finally {
        await host.stop();
      }
    });
});
