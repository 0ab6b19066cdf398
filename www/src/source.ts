// The source of answers: the data of this browser, the server of this page, or a named server.
import { byId, h } from "./dom";
import type { Engine } from "./engine";
import type { Contents, Server } from "./protocol";

const HERE = "here";
const OWN = "own";
/** The server that was named in the dialog. */
const NAMED = "named";
/** The choice that opens the dialog. */
const OTHER = "other";

/** The functions of the page that the choice calls. */
export interface SourceHost {
  /** Runs a connection, which returns whether it succeeded, after all earlier changes. */
  change(connect: () => Promise<boolean>): void;
  /** Another source was selected, and has this content. */
  connected(contents: Contents): void;
  /** Shows the reason of a failure. */
  failed(title: string, why: string): void;
}

/** The choice in the header, and the dialog that asks for an address. */
export class SourceChoice {
  readonly #engine: Engine;
  readonly #host: SourceHost;
  readonly #select = byId<HTMLSelectElement>("source");
  readonly #dialog = byId<HTMLDialogElement>("server");
  readonly #option = h("option", { value: NAMED, hidden: true });
  #chosen = HERE;
  #named: Server | null = null;

  constructor(engine: Engine, host: SourceHost) {
    this.#engine = engine;
    this.#host = host;
    this.#select.append(
      h("option", { value: HERE }, "This browser"),
      h("option", { value: OWN }, `Server at ${location.host}`),
      this.#option,
      h("option", { value: OTHER }, "Another server…"),
    );
    this.#select.addEventListener("change", () => this.#choose(this.#select.value));
    byId<HTMLFormElement>("server-form").addEventListener("submit", () => this.#submitted());
    byId("server-cancel").addEventListener("click", () => this.#dialog.close());
    this.#dialog.addEventListener("close", () => (this.#select.value = this.#chosen));
  }

  /** Whether the data of this browser answer. */
  get isLocal(): boolean {
    return this.#chosen === HERE;
  }

  /** The address of the selected server as `Contents` has it; `null` for this browser. */
  get place(): string | null {
    return this.isLocal ? null : this.base.replace(/\/+$/, "");
  }

  /** The address before `/query/aql` of the selected server, or else of the page's server. */
  get base(): string {
    return this.#server(this.#chosen)?.base ?? own();
  }

  /** Returns the label of a choice. */
  #title(choice: string): string {
    if (choice === HERE) return "The data of this browser";
    if (choice === OWN) return `The server at ${location.host}`;
    const asked = byId<HTMLInputElement>("server-base").value.trim();
    return `The server at ${this.#chosen === choice ? this.#option.textContent : URL.canParse(asked) ? new URL(asked).host : asked}`;
  }

  #server(choice: string): Server | null {
    if (choice === HERE) return null;
    return choice === OWN ? { base: own(), authorization: null } : this.#named;
  }

  #choose(choice: string): void {
    if (choice === OTHER) this.#dialog.showModal();
    else this.#connect(choice, this.#server(choice));
  }

  #submitted(): void {
    const field = (id: string) => byId<HTMLInputElement>(id).value.trim();
    const token = field("server-token");
    const given = /^(bearer|basic) /i.test(token) ? token : `Bearer ${token}`;
    this.#connect(NAMED, { base: field("server-base"), authorization: token ? given : null });
  }

  /** Keeps a named server in the list. */
  #name(server: Server | null): void {
    this.#named = server;
    this.#option.textContent =
      server && URL.canParse(server.base) ? new URL(server.base).host : "The named server";
    this.#option.hidden = false;
  }

  #connect(choice: string, server: Server | null): void {
    this.#select.disabled = true;
    this.#host.change(async () => {
      try {
        const contents = await this.#engine.connect(server);
        this.#chosen = choice;
        if (choice === NAMED) this.#name(server);
        this.#host.connected(contents);
        return true;
      } catch (error) {
        this.#host.failed(
          `${this.#title(choice)} was not reached. ${this.#title(this.#chosen)} still answers.`,
          error instanceof Error ? error.message : String(error),
        );
        return false;
      } finally {
        this.#select.disabled = false;
        this.#select.value = this.#chosen;
      }
    });
  }
}

function own(): string {
  return new URL("v1", document.baseURI).href;
}

/** Describes where something is stored with this server selected, `null` for this browser. */
export function destinationOf(place: string | null): string {
  return place === null
    ? "It stays in this browser."
    : `It is sent to the server ${place}, which stores it.`;
}
