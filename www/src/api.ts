// The page about the REST interface. Each operation has a form that sends a request and shows the
// answer. The form is created when the reader opens the operation. Requests go to the server of the
// page, or to the data of this browser. The Service Worker answers the latter.
import { h } from "./dom";

interface Parameter {
  name: string;
  in: "path" | "query" | "header";
  required?: boolean;
}

type Content = Record<string, unknown> | undefined;

interface Operation {
  operationId: string;
  parameters: Parameter[];
  requestBody?: { required?: boolean; content: Record<string, unknown> };
  responses: Record<string, { content?: Content }>;
}

interface Described {
  paths: Record<string, Record<string, Operation>>;
}

/** An operation with its method and its path. */
interface Call {
  method: string;
  path: string;
  operation: Operation;
}

/** The mount to which the forms send requests. `/rest/openehr/v1` accepts the same requests. */
const MOUNT = "v1";
/** The maximum number of characters of an answer that are shown. */
const SHOWN = 100_000;
/** The initial values of parameters. They exist in the sample data. */
const EXAMPLES: Record<string, string> = {
  template_id: "sample.vital_signs.v1",
  q: "SELECT e/ehr_id/value AS ehr, count(*) AS documents FROM EHR e CONTAINS COMPOSITION c",
};
/** The initial bodies, by operation id. */
const BODIES: Record<string, string> = {
  post_query_aql: JSON.stringify({ q: EXAMPLES.q, fetch: 10 }, null, 2),
};

const target = h("select", { id: "target" });
const token = h("input", { id: "token", type: "password", autocomplete: "off" });

/** Returns the address before the path of an operation. */
function base(): URL {
  return new URL(`${target.value}${MOUNT}`, document.baseURI);
}

/** Waits until the Service Worker answers below `local/`, if requests go there. */
async function answering(): Promise<void> {
  if (target.value === "" || !("serviceWorker" in navigator)) return;
  await navigator.serviceWorker.register("sw.js", { updateViaCache: "none" });
  await navigator.serviceWorker.ready;
  if (navigator.serviceWorker.controller) return;
  await new Promise<void>((resolve) =>
    navigator.serviceWorker.addEventListener("controllerchange", () => resolve(), { once: true }),
  );
}

async function send(method: string, path: string, headers: Headers, body?: string) {
  await answering();
  if (target.value === "" && token.value !== "")
    headers.set("Authorization", `Bearer ${token.value}`);
  const started = performance.now();
  const answer = await fetch(`${base().href}${path}`, {
    method,
    headers,
    ...(body === undefined ? {} : { body }),
  });
  const text = await answer.text();
  return { answer, text, milliseconds: Math.round(performance.now() - started) };
}

/** Returns the id of an EHR of the data, for the initial value of a path parameter. */
async function anEhr(): Promise<string> {
  const q = encodeURIComponent("SELECT e/ehr_id/value FROM EHR e LIMIT 1");
  const { answer, text } = await send("GET", `/query/aql?q=${q}`, new Headers());
  if (!answer.ok) return "";
  const { rows } = JSON.parse(text) as { rows: string[][] };
  return rows[0]?.[0] ?? "";
}

/** Returns a field with its label. */
function field(id: string, name: string, control: HTMLElement): HTMLElement {
  control.id = id;
  return h("p", {}, h("label", { for: id }, name), control);
}

/** Returns the media types of the successful answers. */
function answerTypes({ responses }: Operation): string[] {
  return Object.keys(Object.values(responses).find((one) => one.content)?.content ?? {});
}

function choice(types: string[]): HTMLSelectElement {
  return h("select", {}, ...types.map((type) => h("option", { value: type }, type)));
}

/** A form that sends the request of one operation. */
class Form {
  readonly #call: Call;
  readonly #values = new Map<Parameter, HTMLInputElement>();
  readonly #accept: HTMLSelectElement;
  readonly #type: HTMLSelectElement;
  readonly #body = h("textarea", { rows: 6, spellcheck: "false" });
  readonly #answer = h("pre", { tabindex: 0, "aria-live": "polite", hidden: true });

  constructor(call: Call) {
    this.#call = call;
    this.#accept = choice(answerTypes(call.operation));
    this.#type = choice(Object.keys(call.operation.requestBody?.content ?? {}));
    this.#body.value = BODIES[call.operation.operationId] ?? "";
  }

  /** Returns the elements of the form. */
  elements(): HTMLElement {
    const { operation } = this.#call;
    const id = (name: string) => `${operation.operationId}-${name}`;
    const form = h("form", {
      onsubmit: (event: Event) => {
        event.preventDefault();
        void this.#submit();
      },
    });
    for (const parameter of operation.parameters) {
      const input = h("input", {
        required: parameter.in === "path",
        value: EXAMPLES[parameter.name] ?? "",
      });
      this.#values.set(parameter, input);
      form.append(field(id(parameter.name), `${parameter.name} (${parameter.in})`, input));
    }
    if (this.#accept.length > 0) form.append(field(id("accept"), "Accept", this.#accept));
    if (this.#type.length > 0) {
      form.append(field(id("type"), "Content-Type", this.#type));
      form.append(field(id("body"), "Body", this.#body));
    }
    form.append(h("button", { class: "primary" }, "Send"), this.#answer);
    return form;
  }

  /** Fills in the id of an EHR of the data if the path has this parameter. */
  async fill(): Promise<void> {
    for (const [parameter, input] of this.#values)
      if (parameter.name === "ehr_id" && parameter.in === "path" && input.value === "")
        input.value = await anEhr();
  }

  /** Returns the path with its query string, and the headers. */
  #request(): { path: string; headers: Headers } {
    let { path } = this.#call;
    const query = new URLSearchParams();
    const headers = new Headers();
    for (const [{ name, in: where }, { value }] of this.#values) {
      if (where === "path") path = path.replace(`{${name}}`, encodeURIComponent(value));
      else if (value === "") continue;
      else if (where === "query") query.set(name, value);
      else headers.set(name, value);
    }
    if (this.#accept.value !== "") headers.set("Accept", this.#accept.value);
    return { path: query.size > 0 ? `${path}?${query}` : path, headers };
  }

  async #submit(): Promise<void> {
    const { path, headers } = this.#request();
    const hasBody = this.#type.length > 0 && this.#body.value !== "";
    if (hasBody) headers.set("Content-Type", this.#type.value);
    this.#answer.hidden = false;
    this.#answer.textContent = "…";
    try {
      const body = hasBody ? this.#body.value : undefined;
      const { answer, text, milliseconds } = await send(this.#call.method, path, headers, body);
      const lines = [...answer.headers].map(([name, value]) => `${name}: ${value}`);
      const head = `${answer.status} ${answer.statusText} in ${milliseconds} ms`;
      this.#answer.textContent = [head, ...lines, "", pretty(text)].join("\n");
    } catch (error) {
      this.#answer.textContent = `The request failed: ${String(error)}`;
    }
  }
}

/** Indents JSON. A longer answer is cut. */
function pretty(text: string): string {
  if (text.length > SHOWN) return `${text.slice(0, SHOWN)}\n… (${text.length} characters)`;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** Creates the form of an operation when the reader opens the operation for the first time. */
function attach(call: Call): void {
  const details = document.getElementById(call.operation.operationId);
  details?.addEventListener("toggle", () => {
    if (details.querySelector("form")) return;
    const form = new Form(call);
    details.append(form.elements());
    void form.fill().catch(() => undefined);
  });
}

async function start(): Promise<void> {
  target.append(
    h("option", { value: "local/" }, "the data of this browser (sample patients, if it has none)"),
    h("option", { value: "" }, "the server of this page"),
  );
  const note = "Open an operation to send a request. Nothing is sent before.";
  document
    .querySelector("main > p")
    ?.after(
      h(
        "fieldset",
        {},
        h("legend", {}, "Requests"),
        h("p", {}, note),
        field("target", "to", target),
        field("token", "bearer token for the server", token),
      ),
    );
  const described = (await (await fetch("openapi.json")).json()) as Described;
  for (const [path, methods] of Object.entries(described.paths))
    for (const [method, operation] of Object.entries(methods))
      if (operation.operationId) attach({ method: method.toUpperCase(), path, operation });
}

void start();
