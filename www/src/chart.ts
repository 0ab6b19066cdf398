// Charts of a result: measures over time, or the distribution of one. Loaded when first asked for.
import uPlot from "uplot";
import { h } from "./dom";
import type { Result } from "./protocol";
import { groupings, histogram, measures, summary, type Grouping, type Measure } from "./series";

/** More series than this are not told apart. */
const SERIES = 4;
/** Up to here points are joined: more are a cloud. */
const JOINED = 120;
const INKS = ["--chart-1", "--chart-2", "--chart-3", "--chart-4"];

/** Something that can be drawn of a result. */
interface Drawing {
  title: string;
  draw(width: number, height: number): uPlot;
  /** The numbers of it in words. */
  words: string;
}

const digits = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });

function ink(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function axis(label: string, more: uPlot.Axis = {}): uPlot.Axis {
  return { label, labelSize: 22, stroke: ink("--ink-soft"), grid: { stroke: ink("--line"), width: 1 }, ticks: { stroke: ink("--line"), width: 1 }, ...more };
}

function labelled({ name, unit }: Measure): string {
  return unit ? `${name} (${unit})` : name;
}

function words(measure: Measure): string {
  const { count, missing, min, median, mean, max } = summary(measure.values);
  const number = (value: number) => digits.format(value);
  const absent = missing > 0 ? `, ${number(missing)} without` : "";
  return `${labelled(measure)}: ${number(count)} values${absent}; ${number(min)} to ${number(max)}, median ${number(median)}, mean ${number(mean)}`;
}

/** The rows of each group as a measure of their own. */
function apart(measure: Measure, { of, groups }: Grouping): Measure[] {
  return groups.map((group) => ({ ...measure, name: group || "none", values: measure.values.map((value, row) => (of[row] === group ? value : null)) }));
}

/**
 * Numbers over a time, in the order of the time. A line goes through what belongs together: with a few patients each has its own, with many there
 * are points only.
 */
function overTime(time: Measure, numbers: Measure[], groups: Grouping[]): Drawing {
  const [grouping] = groups;
  const [first] = numbers;
  const few = grouping && first && grouping.groups.length <= SERIES ? grouping : undefined;
  const shown = few && first ? apart(first, few) : numbers.slice(0, SERIES);
  const order = time.values.flatMap((value, row) => (value === null ? [] : [row])).sort((a, b) => (time.values[a] ?? 0) - (time.values[b] ?? 0));
  const data = [time, ...shown].map(({ values }) => order.map((row) => values[row] ?? null)) as uPlot.AlignedData;
  const series = shown.map((one, at): uPlot.Series => {
    const stroke = ink(INKS[at] ?? "--accent");
    const joined = order.length <= JOINED && (few || !grouping) ? {} : { paths: () => null };
    return { label: labelled(one), stroke, width: 1.5, spanGaps: true, points: { show: true, size: 5, fill: stroke }, ...joined };
  });
  const units = [...new Set(shown.map(({ unit, name }) => unit || name))];
  const draw = (width: number, height: number) =>
    new uPlot({ width, height, tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "UTC"), series: [{ label: time.name, value: "{YYYY}-{MM}-{DD} {HH}:{mm}" }, ...series], axes: [axis("", { size: 44 }), axis(units.length === 1 ? (units[0] ?? "") : "", { size: 60 })] }, data, document.createElement("div"));
  const told = few && first ? [first] : shown;
  return { title: `${told.map(({ name }) => name).join(", ")} over ${time.name}${few ? `, by ${few.name}` : ""}`, draw, words: told.map(words).join(". ") };
}

/** How often which values occur. */
function distribution(measure: Measure): Drawing {
  const { starts, counts, width: part } = histogram(measure.values);
  const data = [starts.map((start) => start + part / 2), counts] as uPlot.AlignedData;
  const stroke = ink("--chart-1");
  const paths = uPlot.paths.bars?.({ size: [0.94, Infinity] });
  const range = (at: number | null) => (at === null ? "" : `${digits.format(at - part / 2)} to ${digits.format(at + part / 2)}`);
  const draw = (width: number, height: number) =>
    new uPlot(
      {
        width,
        height,
        scales: { x: { time: false, range: () => [(starts[0] ?? 0) - part / 2, (starts.at(-1) ?? 0) + part * 1.5] }, y: { range: (_, __, max) => [0, Math.max(1, max * 1.05)] } },
        series: [{ label: labelled(measure), value: (_, at) => range(at) }, { label: "rows", stroke, fill: `${stroke}99`, width: 1, points: { show: false }, ...(paths ? { paths } : {}) }],
        axes: [axis(labelled(measure), { size: 44 }), axis("rows", { size: 60 })],
      },
      data,
      document.createElement("div"),
    );
  return { title: `Distribution of ${measure.name}`, draw, words: words(measure) };
}

function drawings(result: Result): Drawing[] {
  const found = measures(result);
  const time = found.find(({ kind }) => kind === "time");
  const numbers = found.filter(({ kind }) => kind === "number");
  const timed = time && numbers.length > 0 ? [overTime(time, numbers, groupings(result))] : [];
  const several = (one: Measure) => numbers.filter(({ name }) => name === one.name).length > 1;
  return [...timed, ...numbers.map((one) => (several(one) ? { ...distribution(one), title: `Distribution of ${labelled(one)}` } : distribution(one)))];
}

/** The chart of a result, with a choice where there are several; `null` where nothing can be drawn. */
export function chart(result: Result): HTMLElement | null {
  const choices = drawings(result);
  if (choices.length === 0) return null;
  const select = h("select", { id: "chart-of", "aria-label": "What is drawn" }, ...choices.map(({ title }, at) => h("option", { value: at }, title)));
  const told = h("p", { class: "chart-words", id: "chart-words", "aria-live": "polite" });
  const frame = h("div", { class: "chart-frame", role: "img", "aria-labelledby": "chart-words" });
  let drawn: uPlot | undefined;
  const draw = () => {
    const chosen = choices[Number(select.value)];
    if (!chosen || frame.clientWidth === 0) return;
    drawn?.destroy();
    drawn = chosen.draw(frame.clientWidth, Math.max(220, frame.clientHeight) - 40);
    frame.replaceChildren(drawn.root);
    told.textContent = chosen.words;
  };
  select.addEventListener("change", draw);
  new ResizeObserver(() => draw()).observe(frame);
  return h("div", { class: "chart" }, h("div", { class: "chart-bar" }, select), frame, told);
}
