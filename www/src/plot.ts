// The drawings of charts: lines and points over a measure, and the distribution of a measure.
import uPlot from "uplot";
import { histogram, isDense, timeLabels, type Line, type Measure, type Point } from "./series";
import { decimal, texts } from "./texts";

/** The lines of a chart that have one color, with their label in the legend. */
export interface Layer {
  /** The label in the legend; empty for lines that are in the background. */
  label: string;
  /** The custom property of the color. */
  ink: string;
  lines: Line[];
  width: number;
  alpha: number;
}

/** A point under the pointer, and its position in pixels of the page inside the plot. */
export interface Hit {
  line: Line;
  point: Point;
  left: number;
  top: number;
}

/** A drawn chart. */
export interface Drawn {
  plot: uPlot;
  /** Returns the point nearest to a position inside the plot, or `null`. */
  nearest(left: number, top: number): Hit | null;
  /** All points in the order of x, for the keyboard. */
  hits: () => Hit[];
}

/** The maximum distance in pixels between the pointer and the point that it selects. */
const NEAR = 28;

/** Returns the value of a color. */
export function ink(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Returns the name of a measure with its unit. */
export function labelled({ name, unit }: Measure): string {
  return unit ? `${name} (${unit})` : name;
}

function axis(label: string, more: uPlot.Axis = {}): uPlot.Axis {
  return {
    label,
    labelSize: label ? 22 : 0,
    stroke: ink("--ink-soft"),
    grid: { stroke: ink("--line"), width: 1 },
    ticks: { stroke: ink("--line"), width: 1 },
    ...more,
  };
}

/** The scale of a measure: one for each unit. */
const scaleOf = ({ unit }: Measure): string => `y ${unit}`;

/** Returns the axes of the units: the first on the left, the others on the right. */
function valueAxes(measures: Measure[]): uPlot.Axis[] {
  const first = [...new Map(measures.map((one) => [scaleOf(one), one])).values()];
  return first.map((measure, at) => {
    const alone = measures.filter((one) => scaleOf(one) === scaleOf(measure));
    const label = measure.unit || (alone.length === 1 ? measure.name : "");
    return axis(label, {
      scale: scaleOf(measure),
      size: 60,
      ...(at > 0 ? { side: 1, grid: { show: false } } : {}),
    });
  });
}

/** Connects the points of each line. Lines of unknown patients have points only. */
function connected(layer: Layer, dense: boolean): uPlot.Series.PathBuilder {
  return (plot) => {
    const stroke = new Path2D();
    for (const { measure, patient, points } of dense ? [] : layer.lines) {
      if (patient === null) continue;
      points.forEach(({ x, y }, at) => {
        const left = plot.valToPos(x, "x", true);
        const top = plot.valToPos(y, scaleOf(measure), true);
        if (at === 0) stroke.moveTo(left, top);
        else stroke.lineTo(left, top);
      });
    }
    return { stroke, fill: null, clip: null, band: null, gaps: [], flags: 1 };
  };
}

/** The least distance in pixels between two labels of times, each of ten characters. */
const TIME_SPACE = 90;

/** Returns the horizontal axis of a measure. */
function horizontal(x: Measure): uPlot.Axis {
  if (x.kind !== "time") return axis(labelled(x), { size: 44 });
  const values = (_: uPlot, splits: number[], __: number, ___: number, step: number) =>
    timeLabels(splits, step);
  return axis("", { size: 44, space: TIME_SPACE, values });
}

/** Draws layers of lines over `x`. */
export function drawLines(
  x: Measure,
  measures: Measure[],
  layers: Layer[],
  width: number,
  height: number,
): Drawn {
  const all = layers.flatMap(({ lines }) => lines);
  const rows = [...new Set(all.flatMap(({ points }) => points.map(({ row }) => row)))];
  const at = (row: number) => x.values[row] ?? 0;
  rows.sort((a, b) => at(a) - at(b));
  const place = new Map(rows.map((row, index) => [row, index]));
  const values = layers.map(({ lines }) => {
    const column = new Array<number | null>(rows.length).fill(null);
    for (const { points } of lines)
      for (const { y, row } of points) column[place.get(row) ?? 0] = y;
    return column;
  });
  const dense = isDense(all);
  const series = layers.map((layer): uPlot.Series => {
    const stroke = ink(layer.ink);
    const [first] = layer.lines;
    return {
      stroke,
      width: layer.width,
      alpha: layer.alpha,
      scale: first ? scaleOf(first.measure) : "y",
      paths: connected(layer, dense),
      points: { show: true, size: layer.width > 2 ? 7 : 5, fill: stroke },
    };
  });
  const plot = new uPlot(
    {
      width,
      height,
      tzDate: (time) => uPlot.tzDate(new Date(time * 1000), "UTC"),
      scales: { x: { time: x.kind === "time" } },
      legend: { show: false },
      cursor: { y: false, points: { show: false } },
      series: [{}, ...series],
      axes: [horizontal(x), ...valueAxes(measures)],
    },
    [rows.map(at), ...values],
    document.createElement("div"),
  );
  const hitOf = (line: Line, point: Point): Hit => ({
    line,
    point,
    left: plot.valToPos(point.x, "x"),
    top: plot.valToPos(point.y, scaleOf(line.measure)),
  });
  return {
    plot,
    nearest: (left, top) => nearest(plot, all, hitOf, left, top),
    hits: () =>
      all
        .flatMap((line) => line.points.map((point) => hitOf(line, point)))
        .sort((a, b) => a.point.x - b.point.x || b.point.y - a.point.y),
  };
}

/** Returns the index of the first point with at least this `x`. */
function firstFrom(points: Point[], x: number): number {
  let [low, high] = [0, points.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((points[middle]?.x ?? 0) < x) low = middle + 1;
    else high = middle;
  }
  return low;
}

function nearest(
  plot: uPlot,
  all: Line[],
  hitOf: (line: Line, point: Point) => Hit,
  left: number,
  top: number,
): Hit | null {
  const [from, to] = [plot.posToVal(left - NEAR, "x"), plot.posToVal(left + NEAR, "x")];
  let best: Hit | null = null;
  let distance = NEAR;
  for (const line of all) {
    for (let at = firstFrom(line.points, from); at < line.points.length; at += 1) {
      const point = line.points[at];
      if (!point || point.x > to) break;
      const hit = hitOf(line, point);
      const far = Math.hypot(hit.left - left, hit.top - top);
      if (far < distance) [best, distance] = [hit, far];
    }
  }
  return best;
}

/** Draws a histogram of the values. */
export function drawDistribution(measure: Measure, width: number, height: number): uPlot {
  const { starts, counts, width: part } = histogram(measure.values);
  const stroke = ink("--chart-1");
  const paths = uPlot.paths.bars?.({ size: [0.94, Infinity] });
  const range = (at: number | null) =>
    at === null
      ? ""
      : texts.chart.range({
          from: decimal(at - part / 2, part),
          to: decimal(at + part / 2, part),
        });
  return new uPlot(
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
          label: texts.chart.rows,
          stroke,
          fill: `${stroke}99`,
          width: 1,
          points: { show: false },
          ...(paths ? { paths } : {}),
        },
      ],
      axes: [axis(labelled(measure), { size: 44 }), axis(texts.chart.rows, { size: 60 })],
    },
    [starts.map((start) => start + part / 2), counts],
    document.createElement("div"),
  );
}
