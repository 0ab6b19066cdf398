// Loads the address again when the server has the complete page. The server does not answer for a
// moment before that, so the script requests the page before it replaces this one.
setInterval(async () => {
  const text = await fetch("./", { cache: "no-store" })
    .then((response) => (response.ok ? response.text() : undefined))
    .catch(() => undefined);
  if (text !== undefined && !text.includes(document.title)) location.reload();
}, 2_000);
