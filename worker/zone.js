/** Seconds east of UTC in a zone at a number of milliseconds since 1970; undefined for a zone that the runtime does not know. */
export function offset(zone, millis) {
  try {
    return Math.round((Date.parse(`${new Date(millis).toLocaleString("sv", { timeZone: zone })}Z`) - millis) / 1000);
  } catch {}
}
