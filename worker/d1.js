/** Runs statements in one transaction: a JSON list of `[sql, ...values]`, with `[]` for each of the `long` texts. Gives the rows of each, as JSON. */
export async function batch(database, statements, long) {
  const value = (value) => (Array.isArray(value) ? long.shift() : value);
  const prepared = JSON.parse(statements).map(([sql, ...values]) =>
    database.prepare(sql).bind(...values.map(value)),
  );
  const outcomes = await database.batch(prepared);
  return JSON.stringify(outcomes.map(({ results }) => results.map(Object.values)));
}
