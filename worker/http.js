// Requests and responses cross into wasm in few pieces: each crossing costs as much as a thousand bytes.

/** Method, address and headers of a request, as JSON. */
export const head = ({ method, url, headers }) => JSON.stringify([method, url, [...headers]]);

/** A response; `headers` as JSON. */
export const respond = (status, headers, body) =>
  new Response(body, { status, headers: JSON.parse(headers) });

/* global FixedLengthStream -- of the runtime */
/** A response with a body, and a promise that is kept when the client has taken the body or has gone. */
export function observed(status, headers, body) {
  const { readable, writable } = new FixedLengthStream(body.length);
  const writer = writable.getWriter();
  const sent = writer
    .write(body)
    .then(() => writer.close())
    .catch(() => {});
  return [new Response(readable, { status, headers: JSON.parse(headers) }), sent];
}

/**
 * What reads the body of a request: each call gives the next `size` bytes, fewer at its end, which stay until the next call. Those behind them
 * are read meanwhile, into the other of two buffers: fresh memory costs more than to copy into it. Read as they come, they would come by four thousand.
 */
export function reader({ body }, size) {
  const source = body.getReader({ mode: "byob" });
  const read = (buffer) => Promise.allSettled([source.readAtLeast(size, new Uint8Array(buffer))]);
  let [ahead, spare] = [read(new ArrayBuffer(size))];
  return async () => {
    const [{ value, reason }] = await ahead;
    if (reason) throw reason;
    const bytes = value.value ?? new Uint8Array();
    if (bytes.length === size)
      [ahead, spare] = [read(spare ?? new ArrayBuffer(size)), bytes.buffer];
    return bytes;
  };
}
