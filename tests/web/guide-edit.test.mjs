// The editor of guides in a real browser: marks in the text, outline, form and fixtures that follow the
// text, drafts, and the steps that store, replace and remove a guide.
import assert from "node:assert/strict";
import { test } from "node:test";
import { readFile } from "node:fs/promises";
import { expect, hosted, inspect, ready, settled } from "./page.mjs";

const ID = "Sample_blood_pressure_category.v1";
const SAMPLE = await readFile(
  new URL("../../www/samples/blood_pressure_category.gdl2.json", import.meta.url),
  "utf8",
);
/** The sample with a condition that cannot be read. */
const WRONG = SAMPLE.replace("magnitude>=140", "magnitude>=>140");

const site = hosted();

const editor = (page) => page.locator("#guide-editor .cm-content");
const choice = (page, id) => page.locator(".choice", { hasText: id });
const file = (name, content) => ({ name, mimeType: "text/plain", buffer: Buffer.from(content) });

/** Opens the text of a sample guide in the editor. No error may occur on the page. */
function inEditor(use, options) {
  const opened = async (page) => {
    await page.click("#tab-guide");
    await choice(page, ID).click();
    await page.locator(".guide-result:not([aria-busy])").waitFor();
    await page.click("#guide-edit-tab");
    await editor(page).waitFor();
    await use(page);
  };
  return site.visit(opened, options);
}

/** Replaces the text of the editor, as by pasting. */
async function replaceText(page, text) {
  await editor(page).click();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.press("Delete");
  await page.keyboard.insertText(text);
}

const status = (page) => page.locator("#guide-status");
const messages = (page) => page.locator("#guide-messages");

test("a mistake is marked while typing, and a list of problems leads to its place", () =>
  inEditor(async (page) => {
    await expect(status(page)).toHaveText("No problems found.");
    await replaceText(page, WRONG);
    await expect(status(page)).toHaveText(/error/);
    const problem = page.locator(".guide-edit .guide-problems li", { hasText: "GDL0201" });
    await expect(problem).toHaveText(/line 143, column 36: expected a value/);
    await problem.locator("button").click();
    await expect(page.locator("#guide-editor")).toBeFocused();
    await expect(page.locator("#guide-editor .cm-activeLine")).toContainText(">=>140");
    await expect(page.locator("#guide-editor .cm-lintRange-error").first()).toBeAttached();
    await page.keyboard.press("ControlOrMeta+z");
    await page.keyboard.press("ControlOrMeta+z");
    await expect(status(page)).toHaveText("No problems found.");
    await expect(choice(page, ID)).not.toContainText("draft");
  }));

test("a text that is not a guide is refused with a reason and not stored, and the last valid form stays", () =>
  inEditor(async (page) => {
    await replaceText(page, `${SAMPLE.slice(0, 900)} {{`);
    await expect(status(page)).toHaveText(/error/);
    await expect(page.locator("#guide-form").getByLabel("Systolic", { exact: true })).toBeVisible();
    await page.click("#guide-store");
    await page.locator("dialog[open] button", { hasText: /^Replace$/ }).click();
    await expect(messages(page)).toContainText("Not done");
    await settled(page);
    await expect(choice(page, ID)).toContainText("draft");
    await page.click("#guide-discard");
    await expect(status(page)).toHaveText("No problems found.");
    await expect(choice(page, ID)).not.toContainText("draft");
  }));

test("a GDL1 guide can be edited, and its outline leads to bindings, rules and terms", () =>
  inEditor(async (page) => {
    const outline = page.locator("#guide-outline");
    const parts = async () => {
      await expect(outline.locator("#guide-outline-binding .item-binding").first()).toContainText(
        "gt0002",
      );
      await outline.locator("#guide-outline-rule button").last().click();
      const rule = await outline.locator("#guide-outline-rule small").last().textContent();
      await expect(page.locator("#guide-editor .cm-activeLine")).toContainText(`"${rule}"`);
      if (!(await outline.locator("#guide-outline-term").getAttribute("open")))
        await outline.locator("#guide-outline-term summary").click();
      const term = outline.locator("#guide-outline-term li", { hasText: "Systolic" });
      await term.locator("button").first().click();
      await expect(page.locator("#guide-editor .cm-activeLine")).toContainText('"gt0003"');
      await expect(page.locator("#guide-editor")).toBeFocused();
    };
    await parts();
    await page.click("#guide-about-tab");
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.click("#guide-odin"),
    ]);
    const odin = await readFile(await download.path(), "utf8");
    await page.click("#guide-edit-tab");
    await outline.locator("#guide-outline-term summary").click();
    await replaceText(page, odin.replaceAll(ID, "In_odin.v1"));
    await expect(status(page)).toHaveText("No problems found.");
    await expect(page.locator("#guide-store")).toHaveText("Save");
    await parts();
    const [saved] = await Promise.all([
      page.waitForEvent("download"),
      page.click("#guide-download"),
    ]);
    assert.equal(saved.suggestedFilename(), "In_odin.v1.gdl");
    assert.equal(await readFile(await saved.path(), "utf8"), odin.replaceAll(ID, "In_odin.v1"));
  }));

for (const width of [390, 1440])
  test(`form and trace are updated after changes of the text: ${width}`, () =>
    inEditor(
      async (page) => {
        const form = page.locator("#guide-form");
        await form.getByLabel("Systolic", { exact: true }).fill("150");
        await form.getByLabel("Diastolic", { exact: true }).fill("85");
        const outcome = page.locator("#guide-form-outcome");
        await expect(outcome.locator(".summary")).toHaveText(/rules? fired/);
        const before = await outcome.locator(".outputs").textContent();
        await replaceText(page, SAMPLE.replace("magnitude>=140", "magnitude>=155"));
        await expect(outcome.locator(".outputs")).not.toHaveText(before);
        await expect(form.getByLabel("Systolic", { exact: true })).toHaveValue("150");
        await replaceText(page, SAMPLE.replaceAll('"Systolic"', '"Upper pressure"'));
        await expect(form.getByLabel("Upper pressure", { exact: true })).toHaveValue("150");
        await expect(outcome.locator(".outputs")).toHaveText(before);
      },
      { viewport: { width, height: 900 } },
    ));

test("a draft survives a reload, can be discarded, and is restored by Undo", () =>
  inEditor(async (page) => {
    const changed = SAMPLE.replace("Sorts the latest", "Orders the latest");
    await replaceText(page, changed);
    await expect(choice(page, ID)).toContainText("draft");
    await page.reload();
    await ready(page);
    await page.click("#tab-guide");
    await expect(choice(page, ID)).toContainText("draft");
    await choice(page, ID).click();
    await page.click("#guide-about-tab");
    await expect(page.locator("#guide-about")).toContainText("Orders the latest");
    await page.click("#guide-edit-tab");
    await page.click("#guide-discard");
    await expect(messages(page)).toContainText("is discarded");
    await expect(page.locator("#guide-undo")).toBeFocused();
    await expect(choice(page, ID)).not.toContainText("draft");
    await expect(page.locator("#guide-discard")).toBeDisabled();
    await page.keyboard.press("Enter");
    await expect(choice(page, ID)).toContainText("draft");
    await page.click("#guide-about-tab");
    await expect(page.locator("#guide-about")).toContainText("Orders the latest");
  }));

test("a guide is stored as a new version, and this can be undone", () =>
  inEditor(async (page) => {
    const next = ID.replace(".v1", ".v2");
    await page.click("#guide-version");
    await expect(messages(page)).toContainText(`${next} is stored.`);
    await settled(page);
    await expect(choice(page, ID)).toBeVisible();
    await expect(choice(page, next).locator("input")).toBeChecked();
    await expect(choice(page, next)).not.toContainText("draft");
    await expect(editor(page)).toContainText(`"${next}"`);
    await expect(page.locator("#guide-store")).toBeDisabled();
    await page.click("#guide-undo");
    await expect(messages(page)).toContainText("not stored any more");
    await settled(page);
    await expect(choice(page, next)).toContainText("opened here");
  }));

test("a guide is replaced after a confirmation, used at once, and its former text is restored by Undo", () =>
  inEditor(async (page) => {
    await replaceText(page, SAMPLE.replace("Sorts the latest", "Orders the latest"));
    await expect(page.locator("#guide-store")).toHaveText("Replace…");
    await page.click("#guide-store");
    const dialog = page.locator("dialog[open]");
    await expect(dialog).toContainText(`Replace ${ID}?`);
    await page.keyboard.press("Escape");
    await expect(dialog).toBeHidden();
    await expect(choice(page, ID)).toContainText("draft");
    await page.click("#guide-store");
    await dialog.locator("button", { hasText: /^Replace$/ }).click();
    await expect(messages(page)).toContainText("is replaced.");
    await settled(page);
    await expect(choice(page, ID)).not.toContainText("draft");
    await page.reload();
    await ready(page);
    await page.click("#tab-guide");
    await choice(page, ID).click();
    await page.click("#guide-about-tab");
    await expect(page.locator("#guide-about")).toContainText("Orders the latest");
    await page.click("#guide-edit-tab");
    await replaceText(page, SAMPLE.replace("Sorts the latest", "Ranks the latest"));
    await page.click("#guide-store");
    await dialog.locator("button", { hasText: /^Replace$/ }).click();
    await page.click("#guide-undo");
    await expect(messages(page)).toContainText("The former text");
    await settled(page);
    await expect(choice(page, ID)).toContainText("draft");
    await page.click("#guide-discard");
    await page.click("#guide-about-tab");
    await expect(page.locator("#guide-about")).toContainText("Orders the latest");
  }));

test("the focus moves to the message about a stored or replaced guide, and about its undo", () =>
  inEditor(async (page) => {
    const said = messages(page).locator("p");
    const undone = async (words) => {
      await settled(page);
      await expect(page.locator("#guide-undo")).toBeFocused();
      await page.keyboard.press("Enter");
      await expect(said).toContainText(words);
      await settled(page);
      await expect(said).toBeFocused();
    };
    await expect(messages(page)).toHaveAttribute("aria-live", "polite");
    await page.locator("#guide-version").press("Enter");
    await expect(said).toContainText("is stored.");
    await undone("not stored any more");
    await choice(page, ID).locator("input").check();
    await replaceText(page, SAMPLE.replace("Sorts the latest", "Orders the latest"));
    await page.locator("#guide-store").press("Enter");
    await page.locator("dialog[open] button", { hasText: /^Replace$/ }).press("Enter");
    await expect(said).toContainText("is replaced.");
    await undone("The former text");
  }));

test("a guide is removed after a confirmation, and stored again by Undo", () =>
  inEditor(async (page) => {
    await page.click("#guide-remove");
    const dialog = page.locator("dialog[open]");
    await expect(dialog).toContainText(`Remove ${ID}?`);
    await expect(dialog.locator("button", { hasText: "Keep it" })).toBeFocused();
    await dialog.locator("button", { hasText: /^Remove$/ }).click();
    await expect(messages(page)).toContainText("is removed.");
    await settled(page);
    await expect(choice(page, ID)).toHaveCount(0);
    await page.click("#guide-undo");
    await expect(messages(page)).toContainText("is stored again.");
    await settled(page);
    await expect(choice(page, ID).locator("input")).toBeChecked();
    await page.click("#run-guide");
    await page.locator("#guide-outcome:not([aria-busy]) .summary").waitFor();
  }));

test("a draft that two tabs edit is the same in both, and a replaced text is restored by Undo", () =>
  inEditor(async (page) => {
    const other = await page.context().newPage();
    await other.goto(site.address);
    await ready(other);
    await other.click("#tab-guide");
    await choice(other, ID).click();
    await other.click("#guide-edit-tab");
    const shows = async (tab, words) => {
      await expect(tab.locator("#guide-about")).toContainText(words);
      // The editor draws the visible lines only.
      await editor(tab).press("ControlOrMeta+Home");
      await expect(editor(tab)).toContainText(words);
    };
    await shows(other, "Sorts the latest");
    await replaceText(page, SAMPLE.replace("Sorts the latest", "Orders the latest"));
    await shows(other, "Orders the latest");
    await expect(choice(other, ID)).toContainText("draft");
    await expect(messages(other)).toContainText(`Another tab has changed the draft of ${ID}.`);
    await replaceText(other, SAMPLE.replace("Sorts the latest", "Ranks the latest"));
    await expect(messages(other)).toHaveText("");
    await shows(page, "Ranks the latest");
    await page.click("#guide-undo");
    await shows(page, "Orders the latest");
    await shows(other, "Orders the latest");
    await page.click("#guide-discard");
    await shows(other, "Sorts the latest");
    await expect(choice(other, ID)).not.toContainText("draft");
    await other.close();
  }));

test("an undo changes its own data set only", () =>
  inEditor(async (page) => {
    await page.click("#guide-version");
    await expect(messages(page)).toContainText("is stored.");
    await settled(page);
    await page.click("#tab-data");
    await page.fill("#set-name", "Ward 7");
    await page.click("#set-new");
    await settled(page);
    await page.click("#tab-guide");
    await expect(page.locator("#guide-undo")).toHaveCount(0);
    await expect(page.locator("#guide-edit-tab")).toBeVisible();
    await expect(page.locator("#guide-store")).toBeDisabled();
    // If no guide is selected, a pasted text is a new guide.
    await replaceText(page, SAMPLE);
    await expect(choice(page, ID)).toContainText("Blood pressure category");
    await expect(choice(page, ID)).toContainText("opened here");
    await expect(page.locator("#guide-form").getByLabel("Systolic", { exact: true })).toBeVisible();
    await page.click("#guide-store");
    await expect(messages(page)).toContainText(`${ID} is stored.`);
  }));

for (const width of [390, 1440])
  test(`a guide is edited by keyboard only: ${width}`, () =>
    inEditor(
      async (page) => {
        const focused = (selector) => page.locator(`${selector}:focus`);
        const tabTo = async (selector) => {
          for (let step = 0; step < 60; step += 1) {
            await page.keyboard.press("Tab");
            if ((await focused(selector).count()) > 0) return;
          }
          throw new Error(`${selector} is not reached`);
        };
        await page.locator("#guide-edit-tab").focus();
        await tabTo("#guide-editor");
        await page.keyboard.press("ControlOrMeta+a");
        await page.keyboard.press("Delete");
        await page.keyboard.insertText(WRONG);
        await expect(status(page)).toHaveText(/error/);
        await page.keyboard.press("F8");
        await expect(page.locator("#guide-editor .cm-activeLine")).toHaveText(/gt0033|>=>140/);
        await page.keyboard.press("ControlOrMeta+Enter");
        await expect(page.locator("#guide-form-outcome .summary")).toHaveText(/rules? fired/);
        await page.keyboard.press("Tab");
        await expect(focused("#guide-editor")).toHaveCount(0);
        await page.locator("#guide-outline-rule summary").focus();
        await tabTo("#guide-outline-rule button");
        await page.keyboard.press("Enter");
        await expect(focused("#guide-editor")).toHaveCount(1);
        await page.keyboard.press("Shift+Tab");
        await expect(focused(".guide-edit .actions button")).toHaveCount(1);
      },
      { viewport: { width, height: 900 } },
    ));

test("a new guide and a broken file can be edited", () =>
  inEditor(async (page) => {
    await page.click("#guide-new");
    await expect(choice(page, "New_guide.v1")).toContainText("opened here");
    await expect(status(page)).toHaveText(/No problems found|warning/);
    await page.click("#guide-store");
    await expect(messages(page)).toContainText("New_guide.v1 is stored.");
    await settled(page);
    await page.locator("#guide-file").setInputFiles([file("broken.gdl2.json", '{"id": "B.v1",')]);
    await page.locator("#guide-messages button", { hasText: "Edit it here" }).click();
    await expect(editor(page)).toContainText('"B.v1"');
    await expect(status(page)).toHaveText(/error/);
    await page.click("#guide-form-tab");
    await expect(page.locator("#guide-form")).toContainText("No form");
  }));

test("a guide is edited until its failing fixture passes in at most 15 actions", () =>
  site.visit(async (page) => {
    let actions = 0;
    const act = async (step) => {
      actions += 1;
      await step;
    };
    const fixture = `guidelines:
  "1": ${ID}
test_cases:
  - id: at 135
    input:
      "1":
        gt0003|Systolic: 135,mm[Hg]
        gt0004|Diastolic: 80,mm[Hg]
    expected_output:
      "1":
        gt0012|Pulse pressure: 56,mm[Hg]
`;
    await act(page.click("#tab-guide"));
    await act(page.locator("#guide-file").setInputFiles([file("p.test.yml", fixture)]));
    await expect(page.locator("#guide-tests h2")).toHaveText("1 of 1 case fails");
    await act(page.locator("#guide-tests button", { hasText: "Use as form" }).click());
    await expect(page.locator("#guide-form").getByLabel("Systolic", { exact: true })).toHaveValue(
      "135",
    );
    await act(page.click("#guide-edit-tab"));
    await act(editor(page).click());
    await act(page.keyboard.press("ControlOrMeta+a"));
    await act(page.keyboard.press("Delete"));
    const minus = "$gt0003|Systolic|.magnitude-$gt0004|Diastolic|.magnitude";
    const text = SAMPLE.split(minus).join(`${minus}+1`);
    assert.notEqual(text, SAMPLE);
    await act(page.keyboard.insertText(text));
    await expect(page.locator("#guide-form-outcome .outputs")).toHaveText(/56\.0 mm\[Hg\]/);
    await act(page.click("#guide-tests-tab"));
    await expect(page.locator("#guide-tests h2")).toHaveText("Every case passes");
    assert.ok(actions <= 15, `${actions} actions`);
  }));

for (const width of [390, 1440])
  test(`axe finds nothing and nothing overflows in the editor: ${width}`, () =>
    inEditor(
      async (page) => {
        await replaceText(page, WRONG);
        await expect(status(page)).toHaveText(/error/);
        await page.locator("#guide-form").getByLabel("Systolic", { exact: true }).fill("150");
        await page.locator("#guide-form-outcome .summary").waitFor();
        await inspect(page, "guide-edit");
      },
      { viewport: { width, height: 844 } },
    ));
