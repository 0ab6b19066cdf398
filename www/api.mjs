// The page about the REST interface, made from its OpenAPI document: plain HTML, so that it can be
// read in any environment. Its script (src/api.ts) adds forms that send requests.

const escapes = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const escapeHtml = (text) => String(text).replace(/[&<>"]/g, (c) => escapes[c]);
const code = (text) => `<code>${escapeHtml(text)}</code>`;
const list = (items) => items.map(code).join(", ");

/** Returns one operation: its parameters, answers and permissions. */
function operation(path, method, said) {
  const named = (where) => said.parameters.filter((p) => p.in === where).map((p) => p.name);
  const statuses = Object.entries(said.responses).map(([status, { description }]) =>
    description ? `${status} ${escapeHtml(description)}` : status,
  );
  const types = (content) => list(Object.keys(content ?? {}));
  const rows = [
    ["query string", list(named("query"))],
    ["headers", list(named("header"))],
    ["body", types(said.requestBody?.content)],
    ["answer", types(Object.values(said.responses).find((r) => r.content)?.content)],
    ["statuses", statuses.join(", ")],
    ["roles", list(said["x-roles"])],
    ["scope", code(said["x-scope"])],
  ].filter(([, value]) => value !== "");
  const table = rows
    .map(([name, value]) => `<tr><th scope="row">${name}</th><td>${value}</td></tr>`)
    .join("");
  return `<details id="${escapeHtml(said.operationId)}"><summary>${code(`${method.toUpperCase()} ${path}`)} ${escapeHtml(said.summary)}</summary><table>${table}</table></details>`;
}

/** Returns the page as HTML. */
export function apiPage(document, { csp, styles, icon, script }) {
  const groups = new Map();
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const [method, said] of Object.entries(methods)) {
      if (!said.operationId) continue;
      const group = said.tags[0];
      groups.set(group, (groups.get(group) ?? "") + operation(path, method, said));
    }
  }
  const sections = [...groups]
    .map(([name, body]) => `<section><h2>${escapeHtml(name)}</h2>${body}</section>`)
    .join("\n");
  const servers = list(document.servers.map((server) => server.url));
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${escapeHtml(csp)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>aqlite: REST interface</title>
<link rel="icon" href="${icon}">
<link rel="stylesheet" href="${styles}">
<script type="module" src="${script}"></script>
</head>
<body class="api">
<main>
<h1>REST interface</h1>
<p>${escapeHtml(document.info.description)} Servers: ${servers}. As data: <a href="openapi.json">openapi.json</a> (OpenAPI ${escapeHtml(document.openapi)}).</p>
${sections}
</main>
</body>
</html>
`;
}
