// The confirmation dialog before a step that removes data.
import { h } from "./dom";

/** A step that removes data. */
export interface Removal {
  title: string;
  /** The data that are lost, and whether they can be restored. */
  about: string;
  /** The labels of the button that confirms and of the button that cancels. */
  yes: string;
  no: string;
}

/**
 * Asks for confirmation before data are removed. Returns true only if the user confirms. Closing
 * the dialog cancels.
 */
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
