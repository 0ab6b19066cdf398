// The registration of the Service Worker, which makes the page available without a network.
import { texts } from "./texts";
import { offerUpdates } from "./update";

/** The longest wait in milliseconds for an idle moment of the page. */
const IDLE_WITHIN = 10_000;

/**
 * Registers the Service Worker. `status` shows whether the page works offline, `notice` offers a new
 * version.
 */
export async function prepareOffline(status: HTMLElement, notice: HTMLElement): Promise<void> {
  if (!("serviceWorker" in navigator)) {
    status.textContent = texts.frame.offlineNever;
    return;
  }
  try {
    const registration = await navigator.serviceWorker.register("sw.js", {
      updateViaCache: "none",
    });
    offerUpdates(registration, notice);
    const { active } = await navigator.serviceWorker.ready;
    status.textContent = texts.frame.offlineReady;
    // Rarely used files are large, so their download must not compete with the first steps of a user.
    whenIdle(() => active?.postMessage("cache-rest"));
  } catch {
    status.textContent = texts.frame.offlineNever;
  }
}

/** Calls a function when the page is idle. Some browsers cannot tell: there it is called soon. */
function whenIdle(run: () => void): void {
  if ("requestIdleCallback" in window) requestIdleCallback(run, { timeout: IDLE_WITHIN });
  else setTimeout(run, 1000);
}
