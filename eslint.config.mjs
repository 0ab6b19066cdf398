// Lints of TypeScript and JavaScript; Prettier decides about form.
import js from "@eslint/js";
import globals from "globals";
import ts from "typescript-eslint";
import { textsInCatalogue } from "./www/lint/texts.mjs";

/** Runs in Node, some of it in a page that a test opened. */
const SCRIPTS = ["**/*.mjs", "worker/**/*.js"];

/** An underscore says that a name is not used. */
const UNUSED = { argsIgnorePattern: "^_", varsIgnorePattern: "^_" };

/** A page changes between a read and its assertion; `expect` of the page tests repeats both. */
const READ_ONCE = {
  selector:
    "CallExpression[callee.object.name='assert'] AwaitExpression > CallExpression[callee.property.name=/^(count|textContent|innerText|allTextContents|allInnerTexts|inputValue|getAttribute|isVisible|isHidden|isDisabled|isEnabled|isChecked)$/]",
  message: "Use `await expect(locator)`: a value that is read once is a race with the page.",
};

/** Strings of the page that look like texts for people. */
const TECHNICAL_TEXTS = [
  // Formats and placeholders of codes, which are the same in each language.
  ...["PNG", "CSV", "${} · GDL ${}", "1|local::at0005|Low|", "local::at0004|Yes|", "null"],
  // Names of data: the data sets and the EHR_STATUS that the page creates. Other programs read them.
  ...["Sample patients", "Sample patients, begun ${}", "EHR Status"],
  "${} compositions of ${} patients, seed ${}",
  // Errors that only a broken page causes.
  ...["no element #${}", "no query is shown"],
  ...["the JSON text ends inside a string", "expected a colon"],
  // Reasons for which a query cannot be built upon. The builder asks in words of its own.
  ...["a bracket is not closed", "a parenthesis is not closed"],
  ...["a class is missing", "a column is missing"],
  // States and choices of the code.
  ...["key or end", "value or end", "by folder", "by file", "by subject", "title"],
];

/** The page is in several languages, so its texts are in a catalogue. */
const PAGE_TEXTS = {
  files: ["www/src/*.ts"],
  ignores: [
    // The reference of the REST interface is in English, and so are the answers of the interface.
    "www/src/api.ts",
    "www/src/sw.ts",
    // Programs in other languages, and a guide.
    "www/src/code.ts",
    "www/src/guide-blank.ts",
    "www/src/aql-words.ts",
  ],
  plugins: { page: { rules: { texts: textsInCatalogue } } },
  rules: { "page/texts": ["error", { allowed: TECHNICAL_TEXTS }] },
};

export default ts.config(
  {
    ignores: [
      "dist/**",
      "target/**",
      "node_modules/**",
      "fuzz/**",
      "worker/build/**",
      "www/samples/**",
    ],
  },
  js.configs.recommended,
  ...ts.configs.recommended.map((config) => ({ ...config, files: ["**/*.ts"] })),
  { files: SCRIPTS, languageOptions: { globals: { ...globals.node, ...globals.browser } } },
  { files: ["**/*.ts"], rules: { "@typescript-eslint/no-unused-vars": ["error", UNUSED] } },
  { files: SCRIPTS, rules: { "no-unused-vars": ["error", UNUSED] } },
  PAGE_TEXTS,
  { files: ["tests/web/*.mjs"], rules: { "no-restricted-syntax": ["error", READ_ONCE] } },
);
