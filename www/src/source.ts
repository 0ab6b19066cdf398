// Where queries are answered: by the data of this browser, by the server of this page, or by one that is named.
import { byId, h } from "./dom";
import type { Engine } from "./engine";
import type { Server } from "./protocol";

const HERE = "here";
const OWN = "own";
const OTHER = "other";

/** The choice in the header, and the dialog that asks for an address. */
export class SourceChoice {
  readonly #engine: Engine;
  readonly #changed: () => void;
  readonly #told: (why: string) => void;
  readonly #select = byId<HTMLSelectElement>("source");
  readonly #dialog = byId<HTMLDialogElement>("server");
  #chosen = HERE;
  #named: Server | null = null;

  /** `changed` hears that another place answers now, `told` why one does not. */
  constructor(engine: Engine, changed: () => void, told: (why: string) => void) {
    this.#engine = engine;
    this.#changed = changed;
    this.#told = told;
    this.#select.append(h("option", { value: HERE }, "This browser"), h("option", { value: OWN }, `Server at ${location.host}`), h("option", { value: OTHER }, "Another server…"));
    this.#select.addEventListener("change", () => void this.#choose(this.#select.value));
    byId<HTMLFormElement>("server-form").addEventListener("submit", () => this.#submitted());
    byId("server-cancel").addEventListener("click", () => this.#dialog.close());
    this.#dialog.addEventListener("close", () => (this.#select.value = this.#chosen));
  }

  /** What stands in front of `/query/aql` where queries are answered now. */
  get base(): string {
    return this.#server(this.#chosen)?.base ?? own();
  }

  #server(choice: string): Server | null {
    if (choice === HERE) return null;
    return choice === OWN ? { base: own(), authorization: null } : this.#named;
  }

  async #choose(choice: string): Promise<void> {
    if (choice === OTHER) {
      this.#dialog.showModal();
      return;
    }
    await this.#connect(choice, this.#server(choice));
  }

  #submitted(): void {
    const field = (id: string) => byId<HTMLInputElement>(id).value.trim();
    const token = field("server-token");
    const given = /^(bearer|basic) /i.test(token) ? token : `Bearer ${token}`;
    this.#named = { base: field("server-base"), authorization: token ? given : null };
    void this.#connect(OTHER, this.#named);
  }

  async #connect(choice: string, server: Server | null): Promise<void> {
    this.#select.disabled = true;
    try {
      await this.#engine.connect(server);
      this.#chosen = choice;
      this.#changed();
    } catch (error) {
      this.#told(error instanceof Error ? error.message : String(error));
    } finally {
      this.#select.disabled = false;
      this.#select.value = this.#chosen;
    }
  }
}

function own(): string {
  return new URL("v1", document.baseURI).href;
}
