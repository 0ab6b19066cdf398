// Charts of a result: measures over time, or the distribution of one measure. Loaded on first use.
import uPlot from "uplot";
import { h } from "./dom";
import type { Result } from "./protocol";
import { groupings, histogram, measures, summary, type Grouping, type Measure } from "./series";

/** The maximum number of series with a colour of their own. */
const SERIES = 4;
/**
 * The maximum number of patients with a line of their own. All have one colour, and one of them can
 * be highlighted.
 */
const LINES = 100;
/** The maximum number of points of a line. With more points, they are not connected. */
const JOINED = 120;
/** The maximum distance in pixels between the pointer and the line that it selects. */
const NEAR = 24;
const INKS = ["--chart-1", "--chart-2", "--chart-3", "--chart-4"];

/** A chart of a result. */
interface Drawing {
  title: string;
  /** The lines that can be highlighted, such as patients. Empty if there are none. */
  members: string[];
  /**
   * Draws the chart. `chosen` is a member or empty. `near` is called with a description of the line
   * under the pointer.
   */
  draw(width: number, height: number, chosen: string, near: (words: string) => void): uPlot;
  /** Describes the numbers of the chart, or of one member, in words. */
  words(chosen: string): string;
}

const digits = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });

function ink(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function axis(label: string, more: uPlot.Axis = {}): uPlot.Axis {
  return {
    label,
    labelSize: 22,
    stroke: ink("--ink-soft"),
    grid: { stroke: ink("--line"), width: 1 },
    ticks: { stroke: ink("--line"), width: 1 },
    ...more,
  };
}

function labelled({ name, unit }: Measure): string {
  return unit ? `${name} (${unit})` : name;
}

function words(measure: Measure): string {
  const { count, missing, min, median, mean, max } = summary(measure.values);
  const number = (value: number) => digits.format(value);
  const absent = missing > 0 ? `, ${number(missing)} without` : "";
  return `${labelled(measure)}: ${number(count)} value${count === 1 ? "" : "s"}${absent}; ${number(min)} to ${number(max)}, median ${number(median)}, mean ${number(mean)}`;
}

/** Returns the rows of each group as a measure of their own. */
function apart(measure: Measure, { of, groups }: Grouping): Measure[] {
  return groups.map((group) => ({
    ...measure,
    name: group || "none",
    values: measure.values.map((value, row) => (of[row] === group ? value : null)),
  }));
}

/** Returns the rows with a time, sorted by time. */
function inOrder(time: Measure): number[] {
  const at = (row: number) => time.values[row] ?? 0;
  return time.values
    .flatMap((value, row) => (value === null ? [] : [row]))
    .sort((a, b) => at(a) - at(b));
}

function plotOverTime(
  width: number,
  height: number,
  time: Measure,
  shown: Measure[],
  styles: Partial<uPlot.Series>[],
  more: Partial<uPlot.Options> = {},
): uPlot {
  const order = inOrder(time);
  const data = [time, ...shown].map(({ values }) =>
    order.map((row) => values[row] ?? null),
  ) as uPlot.AlignedData;
  const series = shown.map((one, at): uPlot.Series => ({
    label: labelled(one),
    width: 1.5,
    spanGaps: true,
    ...styles[at],
  }));
  const units = [...new Set(shown.map(({ unit, name }) => unit || name))];
  const axes = [
    axis("", { size: 44 }),
    axis(units.length === 1 ? (units[0] ?? "") : "", { size: 60 }),
  ];
  return new uPlot(
    {
      width,
      height,
      tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "UTC"),
      series: [{ label: time.name, value: "{YYYY}-{MM}-{DD} {HH}:{mm}" }, ...series],
      axes,
      ...more,
    },
    data,
    document.createElement("div"),
  );
}

function inked(name: string, more: Partial<uPlot.Series> = {}): Partial<uPlot.Series> {
  const stroke = ink(name);
  return { stroke, points: { show: true, size: 5, fill: stroke }, ...more };
}

/**
 * Draws numbers over time. A line connects the points of one patient. With a few patients each has
 * its own colour, with more its own line, and with many only points are drawn.
 */
function overTime(time: Measure, numbers: Measure[], groups: Grouping[]): Drawing {
  const [grouping] = groups;
  const [first] = numbers;
  const areJoined = time.values.length <= JOINED * (grouping?.groups.length ?? 1);
  if (
    grouping &&
    first &&
    areJoined &&
    grouping.groups.length > SERIES &&
    grouping.groups.length <= LINES
  )
    return linesOverTime(time, first, grouping);
  const few = grouping && first && grouping.groups.length <= SERIES ? grouping : undefined;
  const shown = few && first ? apart(first, few) : numbers.slice(0, SERIES);
  const joined = areJoined && (few || !grouping) ? {} : { paths: () => null };
  const draw = (width: number, height: number) =>
    plotOverTime(
      width,
      height,
      time,
      shown,
      shown.map((_, at) => inked(INKS[at] ?? "--accent", joined)),
    );
  const drawn = few && first ? [first] : shown;
  return {
    title: `${drawn.map(({ name }) => name).join(", ")} over ${time.name}${few ? `, by ${few.name}` : ""}`,
    members: [],
    draw,
    words: () => drawn.map(words).join(". "),
  };
}

/**
 * Draws one line per patient. The chosen one is highlighted, the one under the pointer is named.
 */
function linesOverTime(time: Measure, measure: Measure, grouping: Grouping): Drawing {
  const lines = apart(measure, grouping).sort((a, b) =>
    a.name.localeCompare(b.name, "en", { numeric: true }),
  );
  const draw = (width: number, height: number, chosen: string, near: (words: string) => void) => {
    // The last line is drawn above the others.
    const shown = [...lines].sort((a, b) => Number(a.name === chosen) - Number(b.name === chosen));
    const styles = shown.map(({ name }) =>
      name === chosen
        ? inked("--chart-2", { width: 2.5 })
        : inked("--chart-1", chosen ? { width: 1, alpha: 0.35 } : { width: 1 }),
    );
    const focused = (_: uPlot, at: number | null) =>
      near(at === null ? "" : (shown[at - 1]?.name ?? ""));
    return plotOverTime(width, height, time, shown, styles, {
      legend: { show: false },
      focus: { alpha: 0.25 },
      cursor: { focus: { prox: NEAR } },
      hooks: { setSeries: [focused] },
    });
  };
  const describe = (chosen: string) => {
    const line = lines.find(({ name }) => name === chosen);
    return words(
      line ? { ...line, values: line.values.filter((value) => value !== null) } : measure,
    );
  };
  return {
    title: `${measure.name} over ${time.name}, by ${grouping.name}`,
    members: lines.map(({ name }) => name),
    draw,
    words: describe,
  };
}

/** Draws a histogram of the values. */
function distribution(measure: Measure): Drawing {
  const { starts, counts, width: part } = histogram(measure.values);
  const data = [starts.map((start) => start + part / 2), counts] as uPlot.AlignedData;
  const stroke = ink("--chart-1");
  const paths = uPlot.paths.bars?.({ size: [0.94, Infinity] });
  const range = (at: number | null) =>
    at === null ? "" : `${digits.format(at - part / 2)} to ${digits.format(at + part / 2)}`;
  const draw = (width: number, height: number) =>
    new uPlot(
      {
        width,
        height,
        scales: {
          x: {
            time: false,
            range: () => [(starts[0] ?? 0) - part / 2, (starts.at(-1) ?? 0) + part * 1.5],
          },
          y: { range: (_, __, max) => [0, Math.max(1, max * 1.05)] },
        },
        series: [
          { label: labelled(measure), value: (_, at) => range(at) },
          {
            label: "rows",
            stroke,
            fill: `${stroke}99`,
            width: 1,
            points: { show: false },
            ...(paths ? { paths } : {}),
          },
        ],
        axes: [axis(labelled(measure), { size: 44 }), axis("rows", { size: 60 })],
      },
      data,
      document.createElement("div"),
    );
  return {
    title: `Distribution of ${measure.name}`,
    members: [],
    draw,
    words: () => words(measure),
  };
}

function drawings(result: Result): Drawing[] {
  const found = measures(result);
  const time = found.find(({ kind }) => kind === "time");
  const numbers = found.filter(({ kind }) => kind === "number");
  const timed = time && numbers.length > 0 ? [overTime(time, numbers, groupings(result))] : [];
  const several = (one: Measure) => numbers.filter(({ name }) => name === one.name).length > 1;
  return [
    ...timed,
    ...numbers.map((one) =>
      several(one)
        ? { ...distribution(one), title: `Distribution of ${labelled(one)}` }
        : distribution(one),
    ),
  ];
}

/**
 * Returns the chart of a result, with a choice if there are several, or `null` if nothing can be
 * drawn.
 */
export function chart(result: Result): HTMLElement | null {
  const choices = drawings(result);
  if (choices.length === 0) return null;
  const select = h(
    "select",
    { id: "chart-of", "aria-label": "What is drawn" },
    ...choices.map(({ title }, at) => h("option", { value: at }, title)),
  );
  const member = h("select", { id: "chart-member", "aria-label": "What is brought out" });
  const near = h("span", { class: "chart-near", "aria-hidden": "true" });
  const description = h("p", { class: "chart-words", id: "chart-words", "aria-live": "polite" });
  const frame = h("div", { class: "chart-frame", role: "img", "aria-labelledby": "chart-words" });
  let drawn: uPlot | undefined;
  const draw = () => {
    const chosen = choices[Number(select.value)];
    if (!chosen || frame.clientWidth === 0) return;
    drawn?.destroy();
    near.textContent = "";
    drawn = chosen.draw(
      frame.clientWidth,
      Math.max(220, frame.clientHeight) - 40,
      member.value,
      (words) => (near.textContent = words),
    );
    frame.replaceChildren(drawn.root);
    description.textContent = chosen.words(member.value);
  };
  const choose = () => {
    const members = choices[Number(select.value)]?.members ?? [];
    member.hidden = members.length === 0;
    member.replaceChildren(
      h("option", { value: "" }, `all ${members.length}`),
      ...members.map((name) => h("option", { value: name }, name)),
    );
    draw();
  };
  choose();
  select.addEventListener("change", choose);
  member.addEventListener("change", draw);
  new ResizeObserver(() => draw()).observe(frame);
  return h(
    "div",
    { class: "chart" },
    h("div", { class: "chart-bar" }, select, member, near),
    frame,
    description,
  );
}
