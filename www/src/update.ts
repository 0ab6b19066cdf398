// The notice about a new version of the page. The user decides when the page loads the new version.
import { h } from "./dom";
import { texts } from "./texts";

/** Shows in `notice` that a new version is waiting. */
export function offerUpdates(registration: ServiceWorkerRegistration, notice: HTMLElement): void {
  const offer = () => {
    // Without a controller this is the first version, which becomes active by itself.
    if (registration.waiting && navigator.serviceWorker.controller)
      draw(registration.waiting, notice);
  };
  const watch = () => registration.installing?.addEventListener("statechange", offer);
  registration.addEventListener("updatefound", watch);
  // The browser may have found the version before this call.
  watch();
  offer();
}

function draw(waiting: ServiceWorker, notice: HTMLElement): void {
  const take = () => {
    navigator.serviceWorker.addEventListener("controllerchange", () => location.reload(), {
      once: true,
    });
    waiting.postMessage("take-over");
  };
  notice.hidden = false;
  notice.classList.add("news");
  notice.replaceChildren(
    h("p", {}, h("strong", {}, texts.frame.newVersion), " ", texts.frame.newVersionAbout),
    h(
      "p",
      { class: "actions" },
      h(
        "button",
        { id: "update", type: "button", class: "primary", onclick: take },
        texts.frame.reload,
      ),
      h("button", { type: "button", onclick: () => (notice.hidden = true) }, texts.frame.later),
    ),
  );
}
