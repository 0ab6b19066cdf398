// The views of the page: their tabs, the links that skip to their content, and the view that is shown
// again after a reload.
import { byId, rove } from "./dom";
import { remember, remembered } from "./remember";
import { texts } from "./texts";

const VIEWS = ["query", "templates", "guide", "patients", "data"] as const;
const KEY = "aqlite-view";

/** The name of a view in the ids of its elements. */
export type ViewName = (typeof VIEWS)[number];

/** The functions of the page that the views call. */
export interface ViewsHost {
  /** Called when a view is opened. */
  opened(name: ViewName): void;
  /** Moves the focus to the query. */
  focusQuery(): void;
  /** Moves the focus to the result of the query. */
  focusResult(): void;
}

/** The views, of which one is open. */
export class Views {
  readonly #host: ViewsHost;
  #current: ViewName = "query";

  constructor(host: ViewsHost) {
    this.#host = host;
    rove(document.querySelector(".tabs") as HTMLElement, (tab) =>
      this.open(tab.id.replace("tab-", "") as ViewName),
    );
    this.#listenSkips();
  }

  /** The open view. */
  get current(): ViewName {
    return this.#current;
  }

  open(name: ViewName): void {
    this.#current = name;
    for (const view of VIEWS) {
      const chosen = view === name;
      byId(`view-${view}`).hidden = !chosen;
      const tab = byId(`tab-${view}`);
      tab.setAttribute("aria-selected", String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
    }
    byId("skip-content").textContent = texts.frame.skip[name];
    byId("skip-result").hidden = name !== "query";
    remember("sessionStorage", KEY, name);
    this.#host.opened(name);
  }

  /**
   * Opens the view that this tab of the browser showed last. A link opens its query instead, unless
   * the page was loaded again since.
   */
  resume(isLink: boolean): void {
    if (isLink && !isReload()) return;
    const name = remembered("sessionStorage", KEY);
    const view = VIEWS.find((view) => view === name);
    if (view) this.open(view);
  }

  #listenSkips(): void {
    byId("skip-content").addEventListener("click", (event) => {
      event.preventDefault();
      if (this.#current === "query") this.#host.focusQuery();
      else byId(`view-${this.#current}`).focus();
    });
    byId("skip-result").addEventListener("click", (event) => {
      event.preventDefault();
      this.#host.focusResult();
    });
  }
}

function isReload(): boolean {
  const [navigation] = performance.getEntriesByType("navigation");
  return (navigation as PerformanceNavigationTiming | undefined)?.type === "reload";
}
