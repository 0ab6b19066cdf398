// The source of answers: the data of this browser, the server of this page, or a named server.
import { byId, focusIfLost, h } from "./dom";
import type { Engine } from "./engine";
import { keepServer, keptServer } from "./kept-server";
import type { Contents, Server } from "./protocol";
import { texts } from "./texts";
import { reasonOf } from "./fault";

const HERE = "here";
const OWN = "own";
/** The server that was named in the dialog. */
const NAMED = "named";
/** The choice that opens the dialog. */
const OTHER = "other";

/** The functions of the page that the choice calls. */
export interface SourceHost {
  /** Runs `connect` after all earlier changes of the data. Returns whether `connect` succeeded. */
  change(connect: () => Promise<boolean>): Promise<unknown>;
  /** Called when another source was selected, with its content. */
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
  /** The address of the former server while the dialog asks for its token after a reload. */
  #awaited: string | null = null;

  constructor(engine: Engine, host: SourceHost) {
    this.#engine = engine;
    this.#host = host;
    this.#select.append(
      h("option", { value: HERE }, texts.frame.sourceBrowser),
      h("option", { value: OWN }, texts.frame.sourceOwn(location)),
      this.#option,
      h("option", { value: OTHER }, texts.frame.sourceOther),
    );
    this.#select.addEventListener("change", () => this.#choose(this.#select.value));
    byId<HTMLFormElement>("server-form").addEventListener("submit", () => this.#submitted());
    byId("server-cancel").addEventListener("click", () => this.#dialog.close());
    this.#dialog.addEventListener("close", () => this.#closed());
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

  /** Describes that a source does not answer, so that the former source stays selected. */
  #notReached(server: Server | null): string {
    const [host, former] = [hostOf(server), hostOf(this.#server(this.#chosen))];
    const { frame } = texts;
    return [
      host === null ? frame.browserNotReached : frame.notReached({ host }),
      former === null ? frame.browserStays : frame.serverStays({ host: former }),
    ].join(" ");
  }

  /** Stores the selected server for a reload of this tab of the browser. */
  #keep(): void {
    const server = this.#server(this.#chosen);
    if (server === null) return keepServer(null);
    const isOwn = this.#chosen === OWN;
    const hadToken = server.authorization !== null;
    keepServer({ base: server.base, isOwn, hadToken });
  }

  /**
   * Selects the server again that was selected before a reload. If it needs a token, the dialog asks
   * for it, because the page has forgotten it. If the server is not selected, a notice says so.
   */
  async resume(): Promise<void> {
    const kept = keptServer();
    if (kept === null) return;
    const { base, isOwn, hadToken } = kept;
    if (isOwn) await this.#connect(OWN, this.#server(OWN));
    else {
      byId<HTMLInputElement>("server-base").value = base;
      if (hadToken) {
        this.#awaited = base;
        this.#dialog.showModal();
      } else await this.#connect(NAMED, { base, authorization: null });
    }
  }

  /** Reports that a server was not selected again because the user entered no token. */
  #closed(): void {
    this.#select.value = this.#chosen;
    const base = this.#awaited;
    if (base === null) return;
    this.#awaited = null;
    this.#keep();
    const host = URL.canParse(base) ? new URL(base).host : base;
    this.#host.failed(texts.frame.notSelectedAgain({ host }), texts.frame.browserStays);
  }

  #server(choice: string): Server | null {
    if (choice === HERE) return null;
    return choice === OWN ? { base: own(), authorization: null } : this.#named;
  }

  #choose(choice: string): void {
    if (choice === OTHER) this.#dialog.showModal();
    else void this.#connect(choice, this.#server(choice));
  }

  #submitted(): void {
    this.#awaited = null;
    const field = (id: string) => byId<HTMLInputElement>(id).value.trim();
    const token = field("server-token");
    const given = /^(bearer|basic) /i.test(token) ? token : `Bearer ${token}`;
    const authorization = token ? given : null;
    void this.#connect(NAMED, { base: field("server-base"), authorization });
  }

  /** Adds a server to the choices. */
  #name(server: Server | null): void {
    this.#named = server;
    this.#option.textContent =
      server && URL.canParse(server.base) ? hostOf(server) : texts.frame.sourceNamed;
    this.#option.hidden = false;
  }

  async #connect(choice: string, server: Server | null): Promise<void> {
    const hadFocus = document.activeElement !== document.body;
    this.#select.disabled = true;
    await this.#host.change(async () => {
      try {
        const contents = await this.#engine.connect(server);
        this.#chosen = choice;
        if (choice === NAMED) this.#name(server);
        this.#keep();
        this.#host.connected(contents);
        return true;
      } catch (error) {
        this.#keep();
        this.#host.failed(this.#notReached(server), reasonOf(error));
        return false;
      } finally {
        this.#select.disabled = false;
        this.#select.value = this.#chosen;
        // A disabled list loses the focus.
        if (hadFocus) focusIfLost(this.#select);
      }
    });
  }
}

/** Returns the host of a server; `null` for this browser. */
function hostOf(server: Server | null): string | null {
  if (server === null) return null;
  return URL.canParse(server.base) ? new URL(server.base).host : server.base;
}

function own(): string {
  return new URL("v1", document.baseURI).href;
}

/** Describes where something is stored with this server selected, `null` for this browser. */
export function destinationOf(place: string | null): string {
  return place === null ? texts.frame.staysHere : texts.frame.sentTo({ place });
}
