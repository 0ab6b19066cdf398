// The words of AQL, for the highlighting of the editor. `AQLITE_BLESS=1 cargo test -p aqlite --test it
// vocabulary` writes this file from the tables of the engine.

export const KEYWORDS = [
  "select",
  "distinct",
  "top",
  "forward",
  "backward",
  "as",
  "from",
  "where",
  "order",
  "by",
  "asc",
  "ascending",
  "desc",
  "descending",
  "limit",
  "offset",
  "contains",
  "and",
  "or",
  "not",
  "exists",
  "like",
  "matches",
  "latest_version",
  "all_versions",
];

export const LITERALS = ["null", "true", "false"];

export const FUNCTIONS = [
  "terminology",
  "count",
  "min",
  "max",
  "sum",
  "avg",
  "length",
  "position",
  "substring",
  "concat",
  "concat_ws",
  "abs",
  "mod",
  "ceil",
  "floor",
  "round",
  "current_date",
  "current_time",
  "current_date_time",
  "now",
  "current_timezone",
  "contains",
];

export const AGGREGATES = ["count", "min", "max", "sum", "avg"];
