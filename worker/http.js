// Requests and responses cross into wasm in few pieces: each crossing costs as much as a thousand bytes.

/** Method, address and headers of a request, as JSON. */
export const head = ({ method, url, headers }) => JSON.stringify([method, url, [...headers]]);

/** A response; `headers` as JSON. */
export const respond = (status, headers, body) => new Response(body, { status, headers: JSON.parse(headers) });

/** What reads the body of a request. */
export const reader = ({ body }) => body.getReader({ mode: "byob" });

/** The next `size` bytes of a body, fewer at its end. Read as they come, they would come by four thousand. */
export async function chunk(reader, size) {
  const { value } = await reader.readAtLeast(size, new Uint8Array(size));
  return value ?? new Uint8Array();
}
