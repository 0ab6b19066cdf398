// The patients view: the compositions of a patient as a timeline, one of them as a document, and
// the differences between its versions.
import { h, rove, save } from "./dom";
import type { Engine } from "./engine";
import { parse, print } from "./json";
import { facts, Paper } from "./composition-view";
import {
  LISTED,
  TIMELINE,
  type Contents,
  type Listed,
  type Patient,
  type Version,
} from "./protocol";
import { tree } from "./tree";
import { texts } from "./texts";
import { languageOf, reasonOf } from "./fault";

const FORMS = ["document", "changes", "tree"] as const;
type Form = (typeof FORMS)[number];

/** An opened composition, with the texts of those versions that were read. */
interface Opened {
  ehr: string;
  listed: Listed;
  versions: Version[];
  texts: Map<string, string>;
}

function empty(title: string, about: string): HTMLElement {
  return h("div", { class: "empty" }, h("h3", {}, title), h("p", {}, about));
}

/** Draws the reason why something cannot be read. */
function failed(title: string, error: unknown): HTMLElement {
  const why = h("p", { lang: languageOf(error) }, reasonOf(error));
  return h("div", { class: "empty bad" }, h("h3", {}, title), why);
}

/** Formats a date-time for people, in the zone in which it was written. */
function readable(time: string): string {
  return time.replace("T", " ").replace(/^(.{16}):\d\d(?:[.,]\d+)?/, "$1");
}

/** Marks the chosen radio button of a group. Only this button is reached by the Tab key. */
function mark(group: HTMLElement, chosen: string): void {
  const buttons = [...group.querySelectorAll<HTMLElement>("[role=radio]")];
  const at = Math.max(
    0,
    buttons.findIndex(({ dataset }) => dataset["id"] === chosen),
  );
  buttons.forEach((button, index) => {
    button.setAttribute("aria-checked", String(button.dataset["id"] === chosen));
    button.tabIndex = index === at ? 0 : -1;
  });
}

/** The view. */
export class PatientView {
  readonly #engine: Engine;
  readonly #find = h("input", {
    id: "patient-find",
    type: "search",
    placeholder: texts.patients.findExample,
    autocomplete: "off",
  });
  readonly #list = h("div", {
    id: "patient-list",
    class: "people",
    role: "radiogroup",
    "aria-label": texts.patients.one,
  });
  readonly #about = h("p", { id: "patient-about", class: "quiet", role: "status" });
  readonly #kind = h("select", { id: "timeline-kind", "aria-label": texts.patients.kind });
  readonly #timeline = h("div", {
    id: "timeline",
    class: "timeline",
    role: "radiogroup",
    "aria-label": texts.patients.latestFirst,
  });
  readonly #more = h(
    "button",
    { id: "timeline-more", type: "button", hidden: true },
    texts.patients.more,
  );
  readonly #forms: HTMLElement;
  readonly #title = h("h2", { id: "document-title" }, texts.patients.document);
  readonly #bar = h("div", { class: "bar document-bar", hidden: true });
  readonly #body = h("div", {
    id: "document",
    class: "document-body",
    tabindex: 0,
    role: "region",
    "aria-label": texts.patients.content,
  });
  #patients: Patient[] = [];
  /** The identity of the data, and the number of own writes or, of a server, of loads. */
  #state = "";
  #loads = 0;
  /** The state whose timeline is shown. */
  #shown = "";
  #isOpen = false;
  #ehr = "";
  #listed: Listed[] = [];
  #opened: Opened | null = null;
  #form: Form = "document";
  /**
   * The numbers of the latest readings of a timeline and of a document. Earlier ones are ignored.
   */
  #readings = 0;
  #openings = 0;

  constructor(root: HTMLElement, engine: Engine) {
    this.#engine = engine;
    this.#forms = h(
      "div",
      { class: "segmented", role: "radiogroup", "aria-label": texts.patients.showAs },
      ...FORMS.map((id) =>
        h(
          "button",
          { role: "radio", type: "button", id: `document-${id}`, "data-id": id },
          texts.patients[id],
        ),
      ),
    );
    root.append(this.#drawPeople(), this.#drawTimeline(), this.#drawDocument());
    this.#find.addEventListener("input", () => this.#drawList());
    rove(this.#list, (button) => void this.#choose(button.dataset["id"] ?? ""));
    rove(this.#timeline, (button) => void this.#open(button.dataset["id"] ?? ""));
    rove(this.#forms, (button) => this.#show(button.dataset["id"] as Form));
    this.#kind.addEventListener("change", () => this.#drawEntries());
    this.#more.addEventListener("click", () => {
      // The next compositions follow those of the list, which is being read anew while it is busy.
      if (!this.#timeline.hasAttribute("aria-busy")) void this.#read(this.#listed.length);
    });
    this.#say();
  }

  #drawPeople(): HTMLElement {
    return h(
      "section",
      { class: "card patients-card", "aria-labelledby": "patients-title" },
      h("h2", { id: "patients-title" }, texts.frame.patients),
      h(
        "p",
        { class: "field" },
        h("label", { for: "patient-find" }, texts.patients.find),
        this.#find,
      ),
      this.#list,
    );
  }

  #drawTimeline(): HTMLElement {
    return h(
      "section",
      { class: "card timeline-card", "aria-labelledby": "timeline-title" },
      h("h2", { id: "timeline-title" }, texts.patients.timeline),
      this.#about,
      this.#kind,
      this.#timeline,
      this.#more,
    );
  }

  #drawDocument(): HTMLElement {
    return h(
      "section",
      { class: "card document-card", "aria-labelledby": "document-title" },
      this.#title,
      this.#bar,
      this.#body,
    );
  }

  /** Shows that nothing is selected. */
  #say(): void {
    this.#title.textContent = texts.patients.document;
    this.#bar.hidden = true;
    this.#body.replaceChildren(empty(texts.patients.noDocument, texts.patients.noDocumentAbout));
  }

  /** Receives the content of the repository. It is read when the view is open. */
  async load({ place, identity, added }: Contents, patients: Patient[]): Promise<void> {
    const isSame = this.#state.startsWith(`${identity}\n`);
    this.#loads += 1;
    // A server does not report the number of its writes.
    this.#state = `${identity}\n${place === null ? added : this.#loads}`;
    this.#patients = patients;
    if (!isSame) this.#forget();
    this.#drawList();
    if (this.#isOpen) await this.#refresh();
  }

  /** Opens or leaves the view. Nothing is read while it is hidden. */
  set open(isOpen: boolean) {
    this.#isOpen = isOpen;
    if (isOpen) void this.#refresh();
  }

  #forget(): void {
    this.#readings += 1;
    this.#openings += 1;
    this.#ehr = "";
    this.#opened = null;
    this.#clear();
  }

  /**
   * Removes the compositions of the former patient, which must not be drawn as those of another.
   */
  #clear(): void {
    this.#listed = [];
    this.#more.hidden = true;
    this.#about.textContent = "";
    this.#kind.value = "";
    this.#drawKinds();
    this.#timeline.replaceChildren();
    this.#timeline.removeAttribute("aria-busy");
    this.#say();
  }

  /** Reads the timeline again if the data have changed. */
  async #refresh(): Promise<void> {
    if (this.#ehr === "" && this.#patients[0]) return this.#choose(this.#patients[0].ehr);
    if (this.#ehr === "" || this.#shown === this.#state) return;
    await this.#read(0);
    const opened = this.#opened?.listed.uid.split("::")[0];
    const again = this.#listed.find(({ uid }) => uid.split("::")[0] === opened);
    if (again) await this.#open(again.uid);
    else if (this.#opened) {
      this.#opened = null;
      this.#say();
    }
  }

  /** Draws the patients that fit the search. The id of an EHR that is not listed can be opened. */
  #drawList(): void {
    const asked = this.#find.value.trim().toLowerCase();
    const fitting = this.#patients.filter(
      ({ ehr, label }) => label.toLowerCase().includes(asked) || ehr.startsWith(asked),
    );
    const isId = /^[0-9a-f]{8}-[0-9a-f-]{27}$/.test(asked);
    const all =
      fitting.length === 0 && isId
        ? [{ ehr: asked, label: texts.patients.ehr({ id: asked }) }]
        : fitting;
    const cut =
      this.#patients.length >= LISTED
        ? h("p", { class: "quiet" }, texts.patients.cut({ count: LISTED }))
        : null;
    const none = this.#patients.length === 0 ? texts.patients.none : texts.patients.noneFits;
    this.#list.replaceChildren(
      ...all.map(({ ehr, label }) =>
        h(
          "button",
          { type: "button", role: "radio", class: "person", "data-id": ehr },
          h("strong", {}, label),
          label === ehr ? null : h("small", {}, ehr),
        ),
      ),
      ...(all.length === 0 ? [h("p", { class: "quiet" }, none)] : []),
      ...(cut ? [cut] : []),
    );
    mark(this.#list, this.#ehr);
  }

  async #choose(ehr: string): Promise<void> {
    if (ehr === "" || (ehr === this.#ehr && this.#shown === this.#state)) return;
    this.#ehr = ehr;
    mark(this.#list, ehr);
    this.#opened = null;
    this.#openings += 1;
    this.#clear();
    await this.#read(0);
  }

  /** Reads compositions from a position on. */
  async #read(offset: number): Promise<void> {
    const mine = (this.#readings += 1);
    const [ehr, state] = [this.#ehr, this.#state];
    this.#timeline.setAttribute("aria-busy", "true");
    try {
      const found = await this.#engine.call("compositions", { ehr, offset });
      if (mine !== this.#readings) return;
      this.#shown = state;
      this.#listed = offset === 0 ? found : [...this.#listed, ...found];
      this.#more.hidden = found.length < TIMELINE;
      this.#drawKinds();
      this.#drawEntries();
      const label = this.#patients.find((patient) => patient.ehr === ehr)?.label ?? ehr;
      const words = this.#more.hidden ? texts.patients.listed : texts.patients.listedMore;
      this.#about.textContent = words({ label, count: this.#listed.length });
    } catch (error) {
      if (mine !== this.#readings) return;
      this.#listed = [];
      this.#more.hidden = true;
      this.#drawKinds();
      this.#about.textContent = "";
      this.#timeline.replaceChildren(failed(texts.patients.timelineFailed, error));
    } finally {
      if (mine === this.#readings) this.#timeline.removeAttribute("aria-busy");
    }
  }

  #drawKinds(): void {
    const before = this.#kind.value;
    const kinds = [...new Set(this.#listed.map(({ name }) => name))].sort();
    this.#kind.replaceChildren(
      h("option", { value: "" }, texts.patients.allKinds),
      ...kinds.map((kind) => h("option", { value: kind, selected: kind === before }, kind)),
    );
    this.#kind.hidden = kinds.length < 2;
  }

  #drawEntries(): void {
    const kind = this.#kind.value;
    const entries = this.#listed.filter(({ name }) => kind === "" || name === kind);
    const parts: HTMLElement[] = [];
    let year = "";
    for (const entry of entries) {
      const own = entry.time?.slice(0, 4) ?? texts.patients.withoutTime;
      if (own !== year) parts.push(h("p", { class: "timeline-year" }, own));
      year = own;
      parts.push(
        h(
          "button",
          { type: "button", role: "radio", class: "timeline-entry", "data-id": entry.uid },
          h("strong", {}, entry.name || texts.patients.withoutName),
          h(
            "small",
            {},
            [entry.time ? readable(entry.time) : "", entry.composer].filter(Boolean).join(" · "),
          ),
        ),
      );
    }
    if (parts.length === 0 && this.#ehr !== "")
      parts.push(empty(texts.patients.noCompositions, texts.patients.noCompositionsAbout));
    this.#timeline.replaceChildren(...parts);
    mark(this.#timeline, this.#opened?.listed.uid ?? "");
  }

  /** Opens a composition. */
  async #open(uid: string): Promise<void> {
    const listed = this.#listed.find((one) => one.uid === uid);
    if (!listed) return;
    const mine = (this.#openings += 1);
    const ehr = this.#ehr;
    mark(this.#timeline, uid);
    this.#body.setAttribute("aria-busy", "true");
    try {
      const [versions, text] = await Promise.all([
        this.#engine.call("versions", { ehr, uid }),
        this.#engine.call("version", { ehr, uid }),
      ]);
      if (mine !== this.#openings) return;
      this.#opened = { ehr, listed, versions, texts: new Map([[uid, text]]) };
      this.#title.textContent = listed.name || texts.patients.document;
      this.#drawBar();
      this.#show(this.#form);
      if (matchMedia("(max-width: 1100px)").matches)
        this.#title.scrollIntoView({ block: "nearest" });
    } catch (error) {
      if (mine !== this.#openings) return;
      this.#opened = null;
      this.#title.textContent = listed.name || texts.patients.document;
      this.#bar.hidden = true;
      this.#body.replaceChildren(failed(texts.patients.documentFailed, error));
    } finally {
      if (mine === this.#openings) this.#body.removeAttribute("aria-busy");
    }
  }

  #drawBar(): void {
    const opened = this.#opened;
    if (!opened) return;
    const { uid } = opened.listed;
    const download = () =>
      save(`${uid.split("::")[0]}.json`, "application/json", opened.texts.get(uid) ?? "");
    this.#bar.hidden = false;
    this.#bar.replaceChildren(
      this.#forms,
      h(
        "button",
        { id: "document-download", type: "button", onclick: download },
        texts.patients.download,
      ),
      h("p", { class: "summary" }, versionsInWords(opened.versions)),
    );
  }

  #show(form: Form): void {
    this.#form = form;
    mark(this.#forms, form);
    const opened = this.#opened;
    if (!opened) return;
    const document = parse(opened.texts.get(opened.listed.uid) ?? "null");
    if (form === "document") this.#body.replaceChildren(new Paper(document).element);
    else if (form === "tree") this.#body.replaceChildren(tree("composition", document));
    else this.#drawChanges(opened);
  }

  /** Draws the choice of two versions, and their differences. */
  #drawChanges(opened: Opened): void {
    const readableVersions = opened.versions.filter(({ change }) => change !== "deleted");
    if (readableVersions.length < 2) {
      this.#body.replaceChildren(empty(texts.patients.oneVersion, texts.patients.oneVersionAbout));
      return;
    }
    const [from, to] = (["from", "to"] as const).map((end, at) => {
      const chosen = readableVersions.at(at - 2)?.uid;
      const [id, label] = [`version-${end}`, texts.patients[end]];
      const select = h(
        "select",
        { id },
        ...readableVersions.map((version) =>
          h(
            "option",
            { value: version.uid, selected: version.uid === chosen },
            versionName(version),
          ),
        ),
      );
      return { select, field: h("p", { class: "field" }, h("label", { for: id }, label), select) };
    });
    if (!from || !to) return;
    const outcome = h("div", { class: "changes", "aria-live": "polite" });
    const compare = () =>
      void this.#compare(opened, from.select.value, to.select.value).then(
        (drawn) => outcome.replaceChildren(drawn),
        (error: unknown) => outcome.replaceChildren(failed(texts.patients.versionsFailed, error)),
      );
    for (const { select } of [from, to]) select.addEventListener("change", compare);
    this.#body.replaceChildren(h("div", { class: "fields" }, from.field, to.field), outcome);
    compare();
  }

  async #compare(opened: Opened, from: string, to: string): Promise<HTMLElement> {
    const [before, after] = await Promise.all([this.#text(opened, from), this.#text(opened, to)]);
    return drawDifferences(before, after);
  }

  /** Returns the text of a version. */
  async #text({ ehr, texts }: Opened, uid: string): Promise<string> {
    const known = texts.get(uid);
    if (known !== undefined) return known;
    const text = await this.#engine.call("version", { ehr, uid });
    texts.set(uid, text);
    return text;
  }
}

function versionName({ uid, committed, committer, change }: Version): string {
  const number = texts.patients.version({ number: uid.split("::").at(-1) ?? "" });
  return [number, readable(committed), committer, change].filter(Boolean).join(" · ");
}

function versionsInWords(versions: Version[]): string {
  const last = versions.at(-1);
  const count = versions.length;
  return last
    ? texts.patients.versionsUntil({ count, time: readable(last.committed) })
    : texts.patients.versions({ count });
}

/** Draws the values that differ between two texts of a document. */
function drawDifferences(before: string, after: string): HTMLElement {
  const [old, fresh] = [facts(parse(before)), facts(parse(after))];
  const former = new Map(old.map(({ key, text }) => [key, text]));
  const kept = new Set(fresh.map(({ key }) => key));
  const changes = [
    ...fresh
      .filter(({ key, text }) => former.get(key) !== text)
      .map(({ key, names, text }) => ({ names, from: former.get(key) ?? null, to: text })),
    ...old
      .filter(({ key }) => !kept.has(key))
      .map(({ names, text }) => ({ names, from: text, to: null })),
  ];
  if (changes.length === 0) {
    const isSame = print(parse(before)) === print(parse(after));
    return empty(
      texts.patients.equal,
      isSame ? texts.patients.equalAbout : texts.patients.unseenAbout,
    );
  }
  const cell = (text: string | null, kind: "ins" | "del") =>
    h(
      "td",
      {},
      text === null
        ? h("span", { class: "quiet" }, texts.patients.nothing)
        : h(
            kind,
            { "data-mark": kind === "ins" ? texts.patients.after : texts.patients.before },
            text,
          ),
    );
  const table = h(
    "table",
    { class: "cases changes-table" },
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        ...[texts.patients.value, texts.patients.before, texts.patients.after].map((head) =>
          h("th", { scope: "col" }, head),
        ),
      ),
    ),
    h(
      "tbody",
      {},
      ...changes.map(({ names, from, to }) =>
        h(
          "tr",
          {},
          h(
            "td",
            {},
            h("small", {}, names.slice(1, -1).join(" › ")),
            h("strong", {}, names.at(-1) ?? ""),
          ),
          cell(from, "del"),
          cell(to, "ins"),
        ),
      ),
    ),
  );
  const number = texts.patients.differences({ count: changes.length });
  return h("div", {}, h("h3", {}, number), table);
}
