// Typing over a selection in an editor.
import { EditorView } from "@codemirror/view";

/**
 * Lets the editor itself replace a selection by typed text. A browser would give the text the colors
 * of the replaced text by a `style` attribute. The content security policy refuses such attributes,
 * with an error for each. Texts of input methods are left to the browser, because it must not lose
 * its place in an unfinished word.
 */
export const typeOverSelection = EditorView.domEventHandlers({
  beforeinput: (event, view) => {
    const { data, inputType, isComposing } = event;
    const { main } = view.state.selection;
    if (inputType !== "insertText" || data === null || isComposing || main.empty) return false;
    if (view.state.readOnly) return false;
    const replaced = () =>
      view.state.update(view.state.replaceSelection(data), {
        userEvent: "input.type",
        scrollIntoView: true,
      });
    const handlers = view.state.facet(EditorView.inputHandler);
    if (!handlers.some((handle) => handle(view, main.from, main.to, data, replaced)))
      view.dispatch(replaced());
    return true;
  },
});
