// Requests and responses cross into wasm in few pieces: each crossing costs as much as a thousand bytes.

/** Method, address and headers of a request, as JSON. */
export const head = ({ method, url, headers }) => JSON.stringify([method, url, [...headers]]);

/** A response; `headers` as JSON. */
export const respond = (status, headers, body) => new Response(body, { status, headers: JSON.parse(headers) });
