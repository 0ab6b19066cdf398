// Lints of TypeScript and JavaScript; Prettier decides about form.
import js from "@eslint/js";
import globals from "globals";
import ts from "typescript-eslint";

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
  { files: ["tests/web/*.mjs"], rules: { "no-restricted-syntax": ["error", READ_ONCE] } },
);
