// A plain file server for the page, without the REST interface unless a test adds one.
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";

const types = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
  ".wasm": "application/wasm",
  ".txt": "text/plain; charset=utf-8",
  ".webmanifest": "application/manifest+json",
};

/**
 * Serves a folder on a free port (or the given one). Returns the address and a function that stops
 * the server. `answers` may handle a request itself. It then returns true.
 */
export async function serve(folder, port = 0, answers = () => false) {
  const server = createServer(async (request, response) => {
    if (await answers(request, response)) return;
    const path = normalize(new URL(request.url, "http://localhost").pathname).replace(
      /\/$/,
      "/index.html",
    );
    const file = join(folder, path);
    const found = await stat(file).catch(() => null);
    if (!found?.isFile() || !["GET", "HEAD"].includes(request.method)) {
      response.writeHead(404, { "content-type": "text/html" }).end("<p>not found</p>");
      return;
    }
    response.writeHead(200, {
      "content-type": types[extname(file)] ?? "application/octet-stream",
      "content-length": found.size,
    });
    createReadStream(file).pipe(response);
  });
  await new Promise((resolve) => server.listen(port, "127.0.0.1", resolve));
  const stop = () =>
    new Promise((resolve) => {
      server.close(resolve);
      server.closeAllConnections();
    });
  return { address: `http://127.0.0.1:${server.address().port}/`, stop };
}
