// Requests and responses at the border of wasm. They cross it in few pieces, because each crossing
// costs as much as copying a thousand bytes.

/** Returns method, address and headers of a request, as JSON text. */
export const head = ({ method, url, headers }) => JSON.stringify([method, url, [...headers]]);

/** Creates a response. `headers` is JSON text. */
export const respond = (status, headers, body) =>
  new Response(body, { status, headers: JSON.parse(headers) });

/* global FixedLengthStream -- of the runtime */
/**
 * Creates a response with a body, and a promise that resolves when the client has received the body
 * or has disconnected.
 */
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
 * Returns a function that reads the body of a request. Each call returns the next `size` bytes, or
 * fewer at the end of the body. The bytes are valid until the next call.
 *
 * The chunk after them is read ahead into the second of two buffers. The buffers are reused, because
 * allocating memory costs more than copying into it. Without a minimum size, the runtime would return
 * chunks of about four thousand bytes.
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
