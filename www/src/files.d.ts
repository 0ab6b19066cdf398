/** The worker that was started before the code of the page was loaded. */
interface EarlyWorker {
  worker: Worker;
  failed: boolean;
  /** The text of the query that it was asked under the id `EARLY`; `null` without one. */
  asked: string | null;
  /** The messages of the worker until the code of the page listens. */
  replies: import("./protocol").Reply[];
}

interface Window {
  earlyWorker?: EarlyWorker;
}

declare module "*.aql" {
  const text: string;
  export default text;
}
