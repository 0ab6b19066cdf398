// The check that no control of the visible page is clipped, wrapped or outside of the screen.
import { expect } from "./page.mjs";

/** Runs in the page. Returns a description of each control that is clipped, wrapped or off the screen. */
function damaged() {
  const found = [];
  const name = (element) =>
    `${element.tagName.toLowerCase()}#${element.id || element.className}: ${(element.textContent ?? "").trim().slice(0, 40)}`;
  const scrolls = (element) => {
    for (let box = element.parentElement; box; box = box.parentElement)
      if (/auto|scroll/.test(getComputedStyle(box).overflowX) && box.scrollWidth > box.clientWidth)
        return box !== document.documentElement;
    return false;
  };
  const visible = (element) =>
    element.checkVisibility({ visibilityProperty: true }) && element.getClientRects().length > 0;

  // Buttons with a description inside may have several lines.
  const long = ".example, .link, .person, .timeline-entry, .part, .fix, .more, [role=gridcell]";
  const pad = (style) =>
    Number.parseFloat(style.paddingLeft) + Number.parseFloat(style.paddingRight);
  for (const button of document.querySelectorAll("button, label.button, [role=tab]")) {
    if (!visible(button)) continue;
    const { width, height } = button.getBoundingClientRect();
    if (height > 2 * width) found.push(`squeezed: ${name(button)}`);
    if (button.matches(long)) continue;
    const range = document.createRange();
    range.selectNodeContents(button);
    const { fontSize } = getComputedStyle(button);
    if (range.getBoundingClientRect().height > 2 * Number.parseFloat(fontSize))
      found.push(`wrapped: ${name(button)}`);
    const isCut = button.scrollWidth > button.clientWidth + 1;
    if (isCut && !button.matches("#queries [role=tab]")) found.push(`clipped: ${name(button)}`);
  }

  // The choices of menus; other lists have names of templates and patients of any length.
  const context = document.createElement("canvas").getContext("2d");
  for (const select of document.querySelectorAll("select.menu")) {
    if (!visible(select)) continue;
    const style = getComputedStyle(select);
    context.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
    const text = select.selectedOptions[0]?.textContent ?? "";
    const arrow = 18;
    if (context.measureText(text).width + pad(style) + arrow > select.clientWidth)
      found.push(`clipped: select#${select.id}: ${text}`);
  }

  for (const control of document.querySelectorAll("button, select, input, label.button")) {
    if (!visible(control) || control.matches(".unseen") || scrolls(control)) continue;
    const { left, right } = control.getBoundingClientRect();
    if (left < -1 || right > innerWidth + 1) found.push(`outside: ${name(control)}`);
  }

  // Groups whose controls belong on one row.
  for (const group of document.querySelectorAll(".tabs, .segmented, .top-end, .queries")) {
    const rows = [...group.children]
      .filter(visible)
      .map((child) => child.getBoundingClientRect())
      .map(({ top, bottom }) => (top + bottom) / 2);
    if (rows.length > 1 && Math.max(...rows) - Math.min(...rows) > 12)
      found.push(`several rows: ${name(group)}`);
  }

  const wide = document.documentElement.scrollWidth - innerWidth;
  if (wide > 0) found.push(`the page is ${wide} pixels wider than the screen`);
  return found;
}

/** Checks that no control of the visible page is clipped, wrapped or off the screen. */
export async function whole(page, view) {
  await expect.poll(() => page.evaluate(damaged), view).toEqual([]);
}
