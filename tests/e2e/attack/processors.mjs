// The part of the processors that other programs leave to a server and its test. Bounds on latency are corrected by it.
import { readFileSync } from "node:fs";

/**
 * Returns clock ticks since the start of the machine: the busy ones of all processors, all of them, and
 * those that the processes `pids` and this process used.
 */
export function ticks(...pids) {
  const [, ...all] = readFileSync("/proc/stat", "utf8")
    .split("\n", 1)[0]
    .trim()
    .split(/\s+/)
    .map(Number);
  const [user, nice, system, idle, wait, irq, soft, steal] = all;
  const used = (id) => {
    try {
      const fields = /\) (.*)$/s.exec(readFileSync(`/proc/${id}/stat`, "utf8"))[1].split(" ");
      return Number(fields[11]) + Number(fields[12]);
    } catch {
      return 0;
    }
  };
  return {
    busy: user + nice + system + irq + soft + steal,
    all: user + nice + system + idle + wait + irq + soft + steal,
    own: [...pids, process.pid].map(used).reduce((a, b) => a + b),
  };
}

/** Returns the part of the processors that other programs left since `before`, from a fifth to 1. */
export function partLeft(before, after) {
  const all = Math.max(1, after.all - before.all);
  const others = after.busy - before.busy - (after.own - before.own);
  return Math.min(1, Math.max(0.2, 1 - others / all));
}
