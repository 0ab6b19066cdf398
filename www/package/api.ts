// The exports of the package, the same in every host.
export type { DiagnosticCode, StatusCode } from "./codes";
export { AqliteError, type ErrorCode, type HostCode, type LimitCode } from "./errors";
export {
  complete,
  convert,
  describeGuide,
  diagnose,
  explain,
  format,
  hover,
  parse,
  printGuide,
  runGuide,
  testGuide,
} from "./language";
export { Repository, type OpenOptions } from "./repository";
export { QueryResult } from "./result";
export { start, startTables } from "./start";
export type {
  CompiledModule,
  HostResponse,
  ModuleSource,
  RequestLike,
  ResponseLike,
  SignalLike,
} from "./host";
export type {
  Completions,
  DataSet,
  Diagnostic,
  Explanation,
  Follow,
  Format,
  GuideDescription,
  GuideRun,
  GuideTest,
  Hover,
  Json,
  PageOptions,
  Parameter,
  Parsed,
  Part,
  Progress,
  QueryOptions,
  RestAnswer,
  RestRequest,
  TableOptions,
  TemplateDescription,
  TemplateNode,
  Token,
} from "./types";
