/** The worker that was started before the code of the page was loaded. */
interface EarlyWorker {
  worker: Worker;
  failed: boolean;
}

interface Window {
  earlyWorker?: EarlyWorker;
}

declare module "*.aql" {
  const text: string;
  export default text;
}
