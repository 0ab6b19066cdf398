// Foreign clients against the service in workerd, or against `aqlite serve` if AQLITE_PROGRAM names
// the program: `node tests/soak/clients.mjs oehrpy|schemathesis PYTHON [SPEC…]`, or
// `node tests/soak/clients.mjs conformance PROGRAM [ARGUMENT…]`.
//
// conformance: the program with `--via` and the address of the service.
// oehrpy: the client library runs its whole sequence of requests.
// schemathesis: requests derived from the standard's OpenAPI documents (SPEC), half of them about
// existing objects. None may be answered by 5xx.
import { spawn } from "node:child_process";
import { dirname, join, resolve } from "node:path";
import { ITS, V1, freshState, root, sample, start } from "../e2e/server.mjs";
import { uploadTemplates } from "../e2e/server.mjs";

const [, , what, python, ...specs] = process.argv;

function run(program, args, env = {}, cwd = root) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd, stdio: "inherit", env: { ...process.env, ...env } });
    child.once("error", reject);
    child.once("exit", resolve);
  });
}

async function oehrpy(server) {
  return run(python, [
    "tests/soak/oehrpy_round.py",
    `http://127.0.0.1:${server.port}`,
    "target/sample",
  ]);
}

/** Creates one object of every kind, so that requests find it. Returns the ids. */
async function furnish(server) {
  const data = sample();
  await uploadTemplates(server, data);
  const { ehr_id: ehr, composition } = data.compositions[0];
  const made = async (path, body) => {
    const answer = await server.send("POST", `${ITS}/${path}`, { body: JSON.stringify(body) });
    if (answer.status !== 201) throw new Error(`${path}: ${answer.status} ${answer.text}`);
    return answer.headers.get("etag").replaceAll('"', "");
  };
  await server.send("PUT", `${ITS}/ehr/${ehr}`);
  const name = { _type: "DV_TEXT", value: "it" };
  const folder = { _type: "FOLDER", archetype_node_id: "openEHR-EHR-FOLDER.generic.v1", name };
  const person = {
    _type: "PERSON",
    archetype_node_id: "openEHR-DEMOGRAPHIC-PERSON.person.v1",
    name,
    identities: [],
  };
  const q = "SELECT e/ehr_id/value FROM EHR e";
  await server.send("PUT", `${ITS}/definition/query/org.example::ids/1.0.0`, {
    body: q,
    type: "text/plain",
  });
  const party = await server.send("POST", `${ITS}/demographic/person`, {
    body: JSON.stringify(person),
  });
  return {
    ehr,
    composition: await made(`ehr/${ehr}/composition`, composition),
    folder: await made(`ehr/${ehr}/directory`, folder),
    party: party.headers.get("etag")?.replaceAll('"', "") ?? "",
    template: /<template_id>\s*<value>([^<]*)</.exec(data.templates[0])[1],
    query: "org.example::ids",
  };
}

async function schemathesis(server) {
  const known = await furnish(server);
  const env = {
    KNOWN: JSON.stringify(known),
    SCHEMATHESIS_HOOKS: "hooks",
    PYTHONPATH: join(root, "tests/soak"),
  };
  // It writes its notes about a run into the current folder.
  const [program, home] = [
    join(dirname(resolve(python)), "schemathesis"),
    join(root, "target/soak"),
  ];
  let worst = 0;
  for (const spec of specs) {
    const url = `http://127.0.0.1:${server.port}${ITS}`;
    const args = [
      "run",
      spec,
      "--url",
      url,
      "--checks",
      "not_a_server_error",
      "--phases",
      "fuzzing",
      "--max-examples",
      process.env.EXAMPLES ?? "20",
      "--seed",
      "1",
    ];
    const code = await run(
      program,
      [...args, "--continue-on-failure", "--suppress-health-check", "all", "--warnings", "off"],
      env,
      home,
    );
    worst = Math.max(worst, code ?? 1);
  }
  const { json: log } = await server.send(
    "GET",
    `${V1}/admin/access-log?ehr_id=${known.ehr}&fetch=1000`,
  );
  const reached = log.entries.filter(({ status }) => status < 300).length;
  console.log(`${reached} requests reached something in an EHR`);
  return reached > 0 ? worst : 1;
}

async function conformance(server) {
  return run(python, [...specs, "--via", `http://127.0.0.1:${server.port}`]);
}

const vars = { AUTH: "none", ADMIN: "true", ACCESS_LOG: "on", DEBUG: "true" };
const server = await start(freshState(what), vars);
try {
  process.exitCode = await { oehrpy, schemathesis, conformance }[what](server);
} finally {
  await server.stop();
}
