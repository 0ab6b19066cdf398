/** Runs statements, a JSON list of `[sql, ...values]`, in one transaction; the rows of each as JSON, a row as the list of its cells. */
export async function batch(database, statements) {
  const prepared = JSON.parse(statements).map(([sql, ...values]) => database.prepare(sql).bind(...values));
  const outcomes = await database.batch(prepared);
  return JSON.stringify(outcomes.map(({ results }) => results.map(Object.values)));
}
