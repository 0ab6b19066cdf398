// Results without rows in a real browser: the warning about the query, and the part that removed the rows.
import { test } from "node:test";
import { accessible, expect, hosted, run } from "./page.mjs";

const OTHER_VERSION =
  "SELECT o FROM EHR e CONTAINS OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v1]";

const site = hosted();

test("a result without rows names the warning about its query", () =>
  site.visit(async (page) => {
    await run(page, OTHER_VERSION);
    const empty = page.locator("#result .empty");
    await expect(empty).toContainText("perhaps because of a warning about the query");
    await expect(empty.locator("p[lang=en]")).toContainText("blood_pressure.v1");
    await expect(empty).not.toContainText("Loosen");
  }));

test("a result without rows shows the part of the query that removed the last rows", () =>
  site.visit(async (page) => {
    const pressure =
      "FROM EHR e CONTAINS COMPOSITION c CONTAINS OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v2]";
    await run(page, `SELECT c/name/value ${pressure} WHERE c/name/value = 'nothing'`);
    const parts = page.locator("#result .removed tbody tr");
    await expect(parts.last()).toHaveText(/c\/name\/value = 'nothing'\s*0/);
    await expect(parts.last()).toHaveClass(/bad/);
    await expect(parts).toHaveCount(5);
    await expect(parts.first()).toHaveText(/^EHR e[1-9]/);
    await accessible(page, "an empty result with its parts");
  }));
