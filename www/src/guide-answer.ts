// The answers of the engine to runs of a guide, read as outcomes.
import type { Outcome } from "./guide-outcome";
import { list, members, text, type DescribedGuide, type Members } from "./guide-text";
import { parse, type Json } from "./json";

/** The facts of a run that its answer does not have. */
type Run = Pick<Outcome, "whom" | "milliseconds">;

/** Reads the answer of the REST interface, which runs a stored guide. */
export function storedOutcome(
  answer: string,
  run: Run,
  described: DescribedGuide | undefined,
): Outcome {
  const { execution_details, results, _cards, _trace } = members(parse(answer));
  const details = members(execution_details);
  const outputs = list(results)
    .map(members)
    .flatMap((result) =>
      list(result["rm_values"])
        .map(members)
        .map(({ path, value }) => ({
          name: outputName(described, text(result["archetype_id"]), text(path)),
          model: text(result["archetype_id"]),
          path: text(path),
          value: value ?? null,
        })),
    );
  const queries = list(members(details["query_execution_details"])["queries"])
    .map(members)
    .map(({ id, aql }) => ({ id: text(id), aql: text(aql) }));
  return {
    ...run,
    fired: list(details["rules_executed"]).length,
    outputs,
    cards: list(_cards).map(members),
    trace: members(list(_trace)[0]),
    queries,
  };
}

/** Reads the answer to a run of a text, on a patient or on a form. */
export function textOutcome(answer: string, run: Run & Pick<Outcome, "queries">): Outcome {
  const { fired, results, cards, trace } = members(parse(answer));
  const outputs = list(results)
    .map(members)
    .flatMap((result) =>
      list(result["values"])
        .map(members)
        .map((value) => ({
          name: text(value["name"]),
          model: text(result["model_id"]),
          path: text(value["path"]),
          value: value["value"] ?? (null as Json),
        })),
    );
  return {
    ...run,
    fired: list(fired).length,
    outputs,
    cards: list(cards).map(members),
    trace: members(trace),
  };
}

/** Returns the name of an output. */
function outputName(described: DescribedGuide | undefined, model: string, path: string): string {
  const models = new Map(described?.bindings.map(({ id, model_id }) => [id, model_id]));
  const found = described?.outputs.find(
    (output) => models.get(output.binding) === model && output.path === path,
  );
  return found?.name ?? "";
}

/** Returns the latest value of each variable that a run read, as its answer shows it. */
export function valuesRead(answer: string): Map<string, string> {
  const trace: Members = members(members(parse(answer))["trace"]);
  const used = list(trace["inputs"]).flatMap((input) => list(members(input)["used"]));
  const values = used.flatMap((source) => list(members(source)["values"])).map(members);
  return new Map(values.map((value) => [text(value["variable"]), text(value["value"])]));
}
