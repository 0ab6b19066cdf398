// The guide view: choose a guide and a patient, run, read what it says and why.
import { view } from "./cell";
import { h } from "./dom";
import type { Engine } from "./engine";
import { NumberText, parse, print, type Json } from "./json";
import type { Guide, Patient } from "./protocol";
import { tree } from "./tree";

type Members = { [name: string]: Json };

function members(value: Json | undefined): Members {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof NumberText) ? value : {};
}

function list(value: Json | undefined): Json[] {
  return Array.isArray(value) ? value : [];
}

function text(value: Json | undefined): string {
  if (typeof value === "string") return value;
  return value instanceof NumberText ? value.text : "";
}

/** The view. */
export class GuideView {
  readonly #engine: Engine;
  readonly #root: HTMLElement;
  readonly #guides = h("div", { class: "choices", role: "radiogroup", "aria-label": "Guide" });
  readonly #patient = h("select", { id: "patient" });
  readonly #run = h("button", { id: "run-guide", class: "primary", type: "button" }, "Run guide");
  readonly #outcome = h("div", { id: "guide-outcome", class: "outcome", "aria-live": "polite" });
  #chosen = "";
  #outputs: Record<string, string> = {};

  constructor(root: HTMLElement, engine: Engine) {
    this.#engine = engine;
    this.#root = root;
    this.#run.addEventListener("click", () => void this.run());
    this.#patient.addEventListener("change", () => void this.run());
    this.#root.append(
      h(
        "form",
        { class: "card guide-form", onsubmit: (event: Event) => event.preventDefault() },
        h("h2", {}, "Guide"),
        this.#guides,
        h("label", { for: "patient" }, "Patient"),
        this.#patient,
        this.#run,
      ),
      h("section", { class: "card guide-result", "aria-label": "What the guide says" }, this.#outcome),
    );
  }

  /** Asks for guides and patients. */
  async load(): Promise<void> {
    try {
      const [guides, patients] = await Promise.all([this.#engine.call("guides", null), this.#engine.call("patients", null)]);
      this.#fill(guides, patients);
    } catch (error) {
      this.#fail(error);
    }
  }

  #fill(guides: Guide[], patients: Patient[]): void {
    const before = this.#patient.value;
    this.#patient.replaceChildren(...patients.map(({ ehr, label }) => h("option", { value: ehr, selected: ehr === before }, label)));
    if (!guides.some(({ id }) => id === this.#chosen)) this.#chosen = guides[0]?.id ?? "";
    this.#outputs = Object.assign({}, ...guides.map(({ outputs }) => outputs)) as Record<string, string>;
    this.#guides.replaceChildren(...guides.map((guide) => this.#choice(guide)));
    this.#run.disabled = guides.length === 0 || patients.length === 0;
    if (this.#run.disabled) this.#say("Nothing to run", "There are no guides or no patients. Make sample patients in the Data view, or add a guide there.");
    else if (!this.#outcome.hasChildNodes()) this.#say("Ready", "Choose a patient and run the guide: its rules read the record with AQL, and what they conclude appears here.");
  }

  #choice(guide: Guide): HTMLElement {
    const id = `guide-${guide.id}`;
    const input = h("input", { type: "radio", name: "guide", id, value: guide.id, checked: guide.id === this.#chosen });
    input.addEventListener("change", () => {
      this.#chosen = guide.id;
      void this.run();
    });
    return h("label", { class: "choice", for: id }, input, h("span", {}, h("strong", {}, guide.title), guide.description ? h("small", {}, guide.description) : null));
  }

  /** Runs the chosen guide on the chosen patient. */
  async run(): Promise<void> {
    const patient = this.#patient.selectedOptions[0];
    if (!patient || !this.#chosen) return;
    this.#run.disabled = true;
    try {
      const { text: answer, milliseconds } = await this.#engine.call("runGuide", { guide: this.#chosen, ehr: patient.value });
      this.#show(members(parse(answer)), patient.textContent ?? "", milliseconds);
    } catch (error) {
      this.#fail(error);
    } finally {
      this.#run.disabled = false;
    }
  }

  #say(title: string, about: string): void {
    this.#outcome.replaceChildren(h("div", { class: "empty" }, h("h2", {}, title), h("p", {}, about)));
  }

  #fail(error: unknown): void {
    this.#say("The guide did not run", error instanceof Error ? error.message : String(error));
    this.#outcome.firstElementChild?.classList.add("bad");
  }

  #show(answer: Members, patient: string, milliseconds: number): void {
    const details = members(answer["execution_details"]);
    const fired = list(details["rules_executed"]).length;
    const trace = members(list(answer["_trace"])[0]);
    const outputs = list(answer["results"]).map(members).flatMap((result) => list(result["rm_values"]).map((value) => this.#drawOutput(text(result["archetype_id"]), members(value))));
    const queries = list(members(details["query_execution_details"])["queries"]).map(members);
    const missing = list(trace["missing"]).map((variable) => text(members(variable)["name"]) || text(members(variable)["variable"]));
    const parts = [
      h(
        "div",
        { class: "bar" },
        h("h2", {}, outputs.length > 0 ? `What it says about ${patient}` : `Nothing to say about ${patient}`),
        h("p", { class: "summary" }, `${fired} ${fired === 1 ? "rule" : "rules"} fired · ${milliseconds.toFixed(1)} ms`),
      ),
      missing.length > 0 ? h("p", { class: "missing" }, h("strong", {}, "Not in the record: "), missing.join(", ")) : null,
      ...list(answer["_cards"]).map((card) => this.#drawCard(members(card))),
      outputs.length > 0 ? h("dl", { class: "outputs" }, ...outputs) : h("p", { class: "quiet" }, "No rule changed an output element for this patient."),
      h("h3", {}, "Rules, in the order of their evaluation"),
      h("ol", { class: "rules" }, ...list(trace["rules"]).map((rule) => this.#drawRule(members(rule)))),
      h("h3", {}, "What it asked the record"),
      ...queries.map((query) => this.#drawQuery(query)),
    ];
    this.#outcome.replaceChildren(...parts.filter((part) => part !== null));
  }

  /** A card of CDS Hooks. */
  #drawCard(card: Members): HTMLElement {
    const indicator = text(card["indicator"]) || "info";
    const source = text(members(card["source"])["label"]);
    return h(
      "article",
      { class: `advice ${indicator}` },
      h("p", {}, h("span", { class: "indicator" }, indicator), h("strong", {}, text(card["summary"]))),
      card["detail"] ? h("p", {}, text(card["detail"])) : null,
      source ? h("small", {}, source) : null,
    );
  }

  #drawOutput(archetype: string, value: Members): HTMLElement {
    const json = value["value"] ?? null;
    const path = text(value["path"]);
    const object = typeof json === "object" && json !== null && !(json instanceof NumberText);
    return h(
      "div",
      { class: "output" },
      h("dt", {}, h("strong", {}, this.#outputs[`${archetype} ${path}`] ?? ""), h("code", { class: "path" }, archetype), h("code", { class: "path" }, path)),
      h("dd", {}, h("span", { class: "value" }, view(print(json)).text || "no value"), object ? tree("value", json, false) : null),
    );
  }

  /** A rule with its conditions: those of a rule that did not fire say why. */
  #drawRule(rule: Members): HTMLElement {
    const fired = rule["fired"] === true;
    const conditions = list(rule["conditions"]).map(members);
    const mark = h("span", { class: fired ? "mark fired" : "mark" }, fired ? "fired" : "not fired");
    return h(
      "li",
      {},
      h("details", {}, h("summary", {}, mark, " ", text(rule["name"]) || text(rule["rule"])), h("ul", {}, ...conditions.map((condition) => this.#drawCondition(condition)))),
    );
  }

  #drawCondition(condition: Members): HTMLElement {
    const result = condition["result"] === true ? "true" : condition["result"] === false ? "false" : "unknown";
    const read = list(condition["variables"]).map(members).map((variable) => `${text(variable["name"]) || text(variable["variable"])}: ${text(variable["value"]) || "no value"}`);
    return h("li", { class: `condition ${result}` }, h("span", { class: "verdict" }, result), h("code", {}, text(condition["text"])), read.length > 0 ? h("small", {}, read.join(", ")) : null);
  }

  #drawQuery(query: Members): HTMLElement {
    return h("details", { class: "asked" }, h("summary", {}, text(query["id"]) || "query"), h("pre", { tabindex: 0 }, h("code", {}, text(query["aql"]))));
  }
}
