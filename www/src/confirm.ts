// The question before a step that removes data.
import { h } from "./dom";

/** A step that removes data. */
export interface Removal {
  title: string;
  /** What is lost, and whether it comes back. */
  about: string;
  /** The button that goes on, and the one that leaves everything as it is. */
  yes: string;
  no: string;
}

/** Asks before data are removed. True when the step is wanted; closing the dialog in any other way leaves everything as it is. */
export function confirmed({ title, about, yes, no }: Removal): Promise<boolean> {
  return new Promise((resolve) => {
    const dialog = h("dialog", {
      class: "removal",
      "aria-labelledby": "removal-title",
      "aria-describedby": "removal-about",
    });
    const answer = (value: string) => () => dialog.close(value);
    dialog.append(
      h("h2", { id: "removal-title" }, title),
      h("p", { id: "removal-about" }, about),
      h(
        "div",
        { class: "actions" },
        h("button", { type: "button", class: "primary", onclick: answer("yes") }, yes),
        h("button", { type: "button", autofocus: true, onclick: answer("no") }, no),
      ),
    );
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}
