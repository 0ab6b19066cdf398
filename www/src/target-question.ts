// The dialog that asks to which patient added compositions belong.
import { h } from "./dom";
import { texts } from "./texts";

/** The maximum number of folders that the dialog names. */
const NAMED = 5;

/** Returns the folders and archives of files, each once, by the names that patients may get. */
export function foldersOf(files: { name: string }[]): string[] {
  return [...new Set(files.map(({ name }) => name.split("/").at(-2) ?? ""))].filter(Boolean);
}

/**
 * Asks for the patient of the compositions in added files. `choices` are values with their titles.
 * Files of several folders propose `byFolder`; no patient is proposed. Returns `null` if the user
 * cancels.
 */
export function askTarget(
  folders: string[],
  choices: [string, string][],
  byFolder: string,
): Promise<string | null> {
  const proposed = folders.length > 1 ? byFolder : null;
  return new Promise((resolve) => {
    const select = h(
      "select",
      { id: "target-choice", required: true, autofocus: true },
      h(
        "option",
        { value: "", disabled: true, selected: proposed === null },
        texts.data.targetNone,
      ),
      // The empty value means that nothing is chosen, so values are numbers.
      ...choices.map(([value, title], at) =>
        h("option", { value: at, selected: value === proposed }, title),
      ),
    );
    const dialog = h("dialog", { class: "removal", "aria-labelledby": "target-title" });
    const form = h(
      "form",
      { method: "dialog" },
      h("h2", { id: "target-title" }, texts.data.targetTitle),
      folders.length > 0
        ? h(
            "p",
            {},
            texts.data.targetFolders({
              count: folders.length,
              names: folders.slice(0, NAMED).join(", ") + (folders.length > NAMED ? ", …" : ""),
            }),
          )
        : null,
      h("p", { class: "field" }, h("label", { for: "target-choice" }, texts.data.target), select),
      h(
        "div",
        { class: "actions" },
        h("button", { id: "target-add", class: "primary", value: "add" }, texts.data.targetAdd),
        h(
          "button",
          { id: "target-cancel", type: "button", onclick: () => dialog.close("") },
          texts.frame.cancel,
        ),
      ),
    );
    dialog.append(form);
    dialog.addEventListener("close", () => {
      dialog.remove();
      const [chosen] = choices[Number(select.value)] ?? [];
      resolve(dialog.returnValue === "add" ? (chosen ?? null) : null);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}
