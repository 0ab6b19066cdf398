// The chart of a result: the choice of axis, measures and groups, and the export. The module is
// loaded on first use.
import type uPlot from "uplot";
import { view } from "./cell";
import { h, save, saveBlob } from "./dom";
import { cellText, textField } from "./export";
import {
  drawDistribution,
  drawLines,
  ink,
  labelled,
  type Drawn,
  type Hit,
  type Layer,
} from "./plot";
import type { Result } from "./protocol";
import { groupings, lines, measures, numberOf, summary, type Line, type Measure } from "./series";
import { decimal, setTexts, texts, type Texts } from "./texts";

/** The maximum number of measures, and of groups with a color of their own. */
const SERIES = 4;
const INKS = ["--chart-1", "--chart-2", "--chart-3", "--chart-4"];
const DISTRIBUTION = "distribution";
const BY_PATIENT = "patient";
const UNGROUPED = "none";

/** The patients of the rows of a result. */
export interface RowPatients {
  /** The EHR id of each row; `null` if the patients are not known. */
  ehrs: (string | null)[] | null;
  /** Returns the name of a patient for people. */
  name(ehr: string): string;
}

/** A group in a list: its key and its name. */
interface Member {
  key: string;
  name: string;
}

function words(measure: Measure, values: (number | null)[]): string {
  const { count, missing, min, median, mean, max } = summary(values);
  // The values of a group are those that are there, without the rows of other units.
  const others = Math.min(measure.others, missing);
  const counts = [
    texts.chart.values({ count }),
    others > 0 ? texts.chart.otherUnits({ count: others }) : "",
    missing > others ? texts.chart.without({ count: missing - others }) : "",
  ];
  return texts.chart.measured({
    ...{ label: labelled(measure), counts: counts.filter(Boolean).join(", ") },
    ...{ min: decimal(min), max: decimal(max), median: decimal(median), mean: decimal(mean) },
  });
}

function choice(label: string, control: HTMLElement): HTMLElement {
  return h("label", { class: "chart-choice" }, h("span", {}, label), control);
}

/** A chart that is drawn. */
export interface DrawnChart {
  element: HTMLElement;
  /** Ends the chart. Otherwise the listeners of its drawing, on the window, keep it in memory. */
  destroy(): void;
}

/** The chart with its controls. */
class Chart implements DrawnChart {
  readonly element: HTMLElement;
  readonly #result: Result;
  readonly #patients: RowPatients;
  readonly #numbers: Measure[];
  readonly #axes: Measure[];
  readonly #groupings;
  readonly #x = h("select", { id: "chart-x" });
  readonly #group = h("select", { id: "chart-group" });
  readonly #member = h("select", { id: "chart-member" });
  readonly #grouped = choice(texts.chart.by, this.#group);
  readonly #bringOut = choice(texts.chart.bringOut, this.#member);
  readonly #boxes: HTMLInputElement[];
  readonly #legend = h("ul", { class: "chart-legend", "aria-hidden": "true" });
  readonly #words = h("p", { class: "chart-words", id: "chart-words", "aria-live": "polite" });
  readonly #tip = h("div", { class: "chart-tip", role: "status", hidden: true });
  readonly #frame = h("div", {
    class: "chart-frame",
    role: "group",
    tabindex: 0,
    "aria-label": texts.chart.title,
    "aria-describedby": "chart-words",
  });
  readonly #sizes = new ResizeObserver(() => this.#redraw());
  #plot: uPlot | undefined;
  #drawn: Drawn | undefined;
  /** The position of the keyboard among the points. */
  #at = -1;

  constructor(result: Result, patients: RowPatients, found: Measure[]) {
    this.#result = result;
    this.#patients = patients;
    this.#numbers = found.filter(({ kind }) => kind === "number");
    const times = found.filter(({ kind }) => kind === "time");
    this.#axes = [...times, ...(found.length > 1 ? this.#numbers : [])];
    this.#groupings = groupings(result);
    this.#boxes = this.#drawBoxes();
    this.#fillChoices(times.length > 0);
    this.element = this.#draw();
    this.#choose();
    this.#listen();
  }

  /** Draws a check box for each measure. Measures with the unit of the first one are checked. */
  #drawBoxes(): HTMLInputElement[] {
    const [first] = this.#numbers;
    let checked = 0;
    return this.#numbers.map(({ unit }, at) => {
      const shown = unit === first?.unit && checked < SERIES;
      if (shown) checked += 1;
      return h("input", { type: "checkbox", name: "chart-y", value: at, checked: shown });
    });
  }

  #fillChoices(timed: boolean): void {
    this.#x.append(
      ...this.#axes.map((measure, at) =>
        h(
          "option",
          { value: at },
          measure.kind === "time"
            ? texts.chart.over(measure)
            : texts.chart.against({ name: labelled(measure) }),
        ),
      ),
      h("option", { value: DISTRIBUTION, selected: !timed }, texts.chart.distribution),
    );
    this.#group.append(
      ...(this.#patients.ehrs ? [h("option", { value: BY_PATIENT }, texts.chart.patient)] : []),
      ...this.#groupings.map(({ name }, at) => h("option", { value: at }, name)),
      h("option", { value: UNGROUPED, selected: !this.#patients.ehrs }, texts.chart.nothing),
    );
  }

  #draw(): HTMLElement {
    const boxes = h(
      "fieldset",
      { class: "chart-measures" },
      h("legend", { class: "unseen" }, texts.chart.measures),
      ...this.#boxes.map((box, at) => {
        const measure = this.#numbers[at];
        return h("label", {}, box, measure ? labelled(measure) : "");
      }),
    );
    return h(
      "div",
      { class: "chart" },
      h(
        "div",
        { class: "chart-bar" },
        boxes,
        choice(texts.chart.drawn, this.#x),
        this.#grouped,
        this.#bringOut,
        h(
          "span",
          { class: "actions" },
          h(
            "button",
            { id: "chart-png", type: "button", onclick: () => this.#savePicture() },
            "PNG",
          ),
          h(
            "button",
            { id: "chart-csv", type: "button", onclick: () => this.#saveNumbers() },
            "CSV",
          ),
        ),
      ),
      this.#legend,
      this.#frame,
      this.#words,
    );
  }

  #listen(): void {
    for (const box of this.#boxes) box.addEventListener("change", () => this.#check(box));
    this.#x.addEventListener("change", () => this.#choose());
    this.#group.addEventListener("change", () => this.#choose());
    this.#member.addEventListener("change", () => this.#redraw());
    this.#frame.addEventListener("keydown", (event) => this.#key(event));
    this.#frame.addEventListener("blur", () => this.#hideTip());
    this.#sizes.observe(this.#frame);
  }

  destroy(): void {
    this.#sizes.disconnect();
    this.#plot?.destroy();
  }

  /** Allows as many measures as there are colors, and one in a distribution. */
  #check(box: HTMLInputElement): void {
    const most = this.#x.value === DISTRIBUTION ? 1 : SERIES;
    const others = this.#boxes.filter((other) => other.checked && other !== box);
    if (box.checked) for (const other of others.slice(most - 1)) other.checked = false;
    if (!this.#boxes.some(({ checked }) => checked)) box.checked = true;
    this.#redraw();
  }

  get #shown(): Measure[] {
    return this.#numbers.filter((_, at) => this.#boxes[at]?.checked);
  }

  /** The measure of the horizontal axis; `undefined` for a distribution. */
  get #axis(): Measure | undefined {
    return this.#x.value === DISTRIBUTION ? undefined : this.#axes[Number(this.#x.value)];
  }

  /** The text of each row by which rows are grouped; `null` without groups. */
  get #groups(): (string | null)[] | null {
    if (this.#group.value === UNGROUPED) return null;
    if (this.#group.value === BY_PATIENT) return this.#patients.ehrs;
    return this.#groupings[Number(this.#group.value)]?.keys ?? null;
  }

  #nameOf(key: string): string {
    return this.#group.value === BY_PATIENT ? this.#patients.name(key) : key;
  }

  /** Fills the list of groups for the chosen grouping, and draws. */
  #choose(): void {
    const axis = this.#axis;
    if (!axis) {
      const [first] = this.#boxes.filter(({ checked }) => checked);
      for (const box of this.#boxes) box.checked = box === first;
    }
    const members = this.#members();
    this.#grouped.hidden = !axis;
    this.#bringOut.hidden = !axis || members.length < 2;
    this.#member.replaceChildren(
      h("option", { value: "" }, texts.chart.all({ count: members.length })),
      ...members.map(({ key, name }) => h("option", { value: key }, name)),
    );
    this.#redraw();
  }

  #members(): Member[] {
    const keys = [...new Set((this.#groups ?? []).filter((key) => key !== null))];
    return keys
      .map((key) => ({ key, name: this.#nameOf(key) }))
      .sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }));
  }

  #redraw(): void {
    if (this.#frame.clientWidth === 0) return;
    this.#plot?.destroy();
    this.#hideTip();
    this.#at = -1;
    const [width, height] = [this.#frame.clientWidth, Math.max(220, this.#frame.clientHeight)];
    const [axis, shown] = [this.#axis, this.#shown];
    const [first] = shown;
    this.#drawn = undefined;
    if (axis) this.#drawLines(axis, shown, width, height);
    else if (first) this.#drawDistribution(first, width, height);
    if (this.#plot) this.#frame.replaceChildren(this.#plot.root, this.#tip);
  }

  #drawDistribution(measure: Measure, width: number, height: number): void {
    // 40 pixels for the line of values below the drawing.
    this.#plot = drawDistribution(measure, width, height - 40);
    this.#legend.replaceChildren();
    this.#color([]);
    this.#words.textContent = words(measure, measure.values);
  }

  #drawLines(axis: Measure, shown: Measure[], width: number, height: number): void {
    const all = lines(axis, shown, this.#groups, this.#patients.ehrs);
    const layers = this.#layers(all, shown);
    this.#drawn = drawLines(axis, shown, layers, width, height);
    this.#plot = this.#drawn.plot;
    this.#legend.replaceChildren(
      ...layers
        .filter(({ label }) => label)
        .map(({ label, ink }, at) => legendLine(label, ink, at)),
    );
    // If each measure has its color, the colored check boxes replace the legend.
    const byMeasure = layers.every(
      ({ label, lines: [line] }) => !line || label === "" || label === labelled(line.measure),
    );
    this.#legend.hidden = byMeasure;
    this.#color(byMeasure ? INKS : []);
    this.#follow(this.#drawn);
    this.#describe(axis, shown);
  }

  /** Sets the colors of the checked boxes to those of the lines. */
  #color(inks: string[]): void {
    const checked = this.#boxes.filter((box) => box.checked);
    checked.forEach((box, at) =>
      box.style.setProperty("accent-color", ink(inks[at] ?? "--accent")),
    );
  }

  /**
   * Divides lines into layers by color: by group with one measure and few groups, else by measure.
   * The chosen group is drawn above the others.
   */
  #layers(all: Line[], shown: Measure[]): Layer[] {
    const members = this.#members();
    const chosen = this.#member.value;
    const isChosen = ({ group }: Line) => chosen === "" || group === chosen;
    const layer = (label: string, at: number, lines: Line[], front = true): Layer => ({
      label: front ? label : "",
      ink: INKS[at] ?? "--accent",
      lines,
      width: front && chosen ? 2.5 : 1.25,
      alpha: front ? 1 : 0.25,
    });
    const byGroup = shown.length === 1 && members.length > 1 && members.length <= SERIES;
    const kinds = byGroup
      ? members.map(({ key, name }, at) => ({
          name,
          at,
          lines: all.filter((one) => one.group === key),
        }))
      : shown.map((measure, at) => ({
          name: labelled(measure),
          at,
          lines: all.filter((one) => one.measure === measure),
        }));
    const rest = byGroup ? all.filter(({ group }) => group === null) : [];
    const none = rest.length > 0 ? [{ name: "none", at: SERIES, lines: rest }] : [];
    const parts = [...kinds, ...none].flatMap(({ name, at, lines }) => [
      layer(
        name,
        at,
        lines.filter((one) => !isChosen(one)),
        false,
      ),
      layer(name, at, lines.filter(isChosen)),
    ]);
    return parts
      .filter((one) => one.lines.length > 0)
      .sort((a, b) => Number(a.label !== "") - Number(b.label !== ""));
  }

  #describe(axis: Measure, shown: Measure[]): void {
    const chosen = this.#member.value;
    const groups = this.#groups;
    const about = shown.map((measure) => {
      const values = chosen
        ? measure.values.filter((value, row) => value !== null && groups?.[row] === chosen)
        : measure.values;
      return words(measure, values);
    });
    const whose = chosen ? `${this.#nameOf(chosen)}: ` : "";
    const joined = this.#patients.ehrs ? texts.chart.joined : texts.chart.notJoined;
    this.#words.textContent = `${whose}${about.join(". ")}. ${axis.kind === "time" ? `${joined} ${texts.chart.utc}` : joined}`;
  }

  #follow({ plot, nearest }: Drawn): void {
    plot.over.addEventListener("mousemove", ({ offsetX, offsetY }) => {
      const hit = nearest(offsetX, offsetY);
      if (hit) this.#showTip(hit);
      else this.#hideTip();
    });
    plot.over.addEventListener("mouseleave", () => this.#hideTip());
  }

  /** Shows the values of a row with their units, its time and its patient. */
  #showTip({ line, point, left, top }: Hit): void {
    const { row } = point;
    const text = (column: number) => view(cellText(this.#result, row, column)).text;
    const values = this.#shown
      .filter((measure) => measure.values[row] !== null)
      .map((measure) =>
        h(
          "li",
          measure === line.measure ? { class: "near" } : {},
          `${measure.name} ${text(measure.column)}`,
        ),
      );
    const axis = this.#axis;
    const ehr = this.#patients.ehrs?.[row] ?? null;
    const group = this.#group.value === BY_PATIENT ? null : line.group;
    const about = [
      axis ? `${axis.kind === "time" ? "" : `${axis.name} `}${text(axis.column)}` : null,
      ehr === null ? null : texts.chart.ofPatient({ name: this.#patients.name(ehr) }),
      group,
    ];
    this.#tip.replaceChildren(
      h("ul", {}, ...values),
      ...about.filter((one) => one !== null).map((one) => h("p", {}, one)),
    );
    this.#tip.hidden = false;
    const over = this.#plot?.over;
    const [x, y] = [left + (over?.offsetLeft ?? 0), top + (over?.offsetTop ?? 0)];
    const { offsetWidth, offsetHeight } = this.#tip;
    const beside = x + 14 + offsetWidth > this.#frame.clientWidth ? x - 14 - offsetWidth : x + 14;
    const above = Math.min(y + 10, this.#frame.clientHeight - offsetHeight);
    this.#tip.style.left = `${Math.max(0, beside)}px`;
    this.#tip.style.top = `${Math.max(0, above)}px`;
  }

  #hideTip(): void {
    this.#tip.hidden = true;
  }

  /** Moves among the points with the arrow keys. */
  #key(event: KeyboardEvent): void {
    const steps: Record<string, number> = {
      ArrowRight: 1,
      ArrowDown: 1,
      ArrowLeft: -1,
      ArrowUp: -1,
    };
    const step = steps[event.key];
    if (event.key === "Escape") this.#hideTip();
    if (step === undefined || !this.#drawn) return;
    event.preventDefault();
    const hits = this.#drawn.hits();
    const from = this.#at < 0 && step < 0 ? hits.length : this.#at;
    this.#at = Math.max(0, Math.min(hits.length - 1, from + step));
    const hit = hits[this.#at];
    if (hit) this.#showTip(hit);
  }

  /** Saves the drawing with its legend as a picture. */
  #savePicture(): void {
    const drawing = this.#plot?.ctx.canvas;
    if (!drawing) return;
    const scale = devicePixelRatio;
    const labels = [...this.#legend.children].map((line) => ({
      text: line.textContent ?? "",
      color: ink((line as HTMLElement).dataset["ink"] ?? "--accent"),
    }));
    const top = labels.length > 0 ? 34 * scale : 0;
    const canvas = h("canvas", { width: drawing.width, height: drawing.height + top });
    const context = canvas.getContext("2d");
    if (!context) return;
    context.fillStyle = ink("--surface");
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.font = `${14 * scale}px sans-serif`;
    let left = 14 * scale;
    for (const { text, color } of labels) {
      context.fillStyle = color;
      context.fillRect(left, 12 * scale, 12 * scale, 12 * scale);
      context.fillStyle = ink("--ink");
      context.fillText(text, left + 18 * scale, 23 * scale);
      left += 40 * scale + context.measureText(text).width;
    }
    context.drawImage(drawing, 0, top);
    canvas.toBlob((blob) => blob && saveBlob("chart.png", blob), "image/png");
  }

  /** Saves the rows that are drawn: the axis, the patient, the group, and each measure. */
  #saveNumbers(): void {
    const [axis, shown, groups] = [this.#axis, this.#shown, this.#groups];
    const ehrs = this.#patients.ehrs;
    const byColumn = this.#group.value !== BY_PATIENT && groups;
    const group = byColumn ? this.#group.selectedOptions[0]?.textContent : null;
    const head = [
      ...(axis ? [axis.kind === "time" ? axis.name : labelled(axis)] : []),
      ...(ehrs ? ["ehr_id", "patient"] : []),
      ...(group ? [group] : []),
      ...shown.map(labelled),
    ];
    const written = [head.map(textField).join(",")];
    for (let row = 0; row < this.#result.rows; row += 1) {
      const isDrawn = shown.some(({ values }) => values[row] !== null);
      if (!isDrawn || (axis && axis.values[row] === null)) continue;
      const ehr = ehrs?.[row] ?? null;
      const texts = [
        ...(ehrs ? [ehr ?? "", ehr === null ? "" : this.#patients.name(ehr)] : []),
        ...(byColumn ? [byColumn[row] ?? ""] : []),
      ];
      const cells = [
        ...(axis ? [this.#field(axis, row)] : []),
        ...texts.map((text) => (text === "" ? "" : textField(text))),
        ...shown.map((measure) => this.#field(measure, row)),
      ];
      written.push(cells.join(","));
    }
    save("chart.csv", "text/csv;charset=utf-8", `${written.join("\r\n")}\r\n`);
  }

  #field(measure: Measure, row: number): string {
    if (measure.values[row] === null) return "";
    const json = cellText(this.#result, row, measure.column);
    return measure.kind === "time" ? textField(view(json).text) : (numberOf(json)?.digits ?? "");
  }
}

function legendLine(label: string, color: string, at: number): HTMLElement {
  return h(
    "li",
    { "data-ink": color },
    h("span", { class: `swatch swatch-${(INKS.indexOf(color) + 1 || at + 1) % 5}` }),
    label,
  );
}

/** Returns the chart of a result, or `null` if nothing can be drawn. */
export function chart(result: Result, patients: RowPatients, language: Texts): DrawnChart | null {
  setTexts(language);
  const found = measures(result);
  if (!found.some(({ kind }) => kind === "number")) return null;
  return new Chart(result, patients, found);
}
