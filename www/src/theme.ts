// Sets the chosen colours before the first paint. A classic script of its own, because the policy of the page allows none inside it.
const chosen = localStorage.getItem("aqlite-theme");
if (chosen === "light" || chosen === "dark") document.documentElement.dataset["theme"] = chosen;
