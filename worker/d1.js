/**
 * Executes statements in one transaction. Returns the rows of each statement, as JSON text.
 *
 * `statements` is a JSON list of `[sql, ...values]`. An empty array among the values is a placeholder
 * for the next text of `long`: long texts are passed on their own, without JSON around them.
 */
export async function batch(database, statements, long) {
  const value = (value) => (Array.isArray(value) ? long.shift() : value);
  const prepared = JSON.parse(statements).map(([sql, ...values]) =>
    database.prepare(sql).bind(...values.map(value)),
  );
  const outcomes = await database.batch(prepared);
  return JSON.stringify(outcomes.map(({ results }) => results.map(Object.values)));
}
