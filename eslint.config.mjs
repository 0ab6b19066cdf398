// Lints of TypeScript and JavaScript; Prettier decides about form.
import js from "@eslint/js";
import globals from "globals";
import ts from "typescript-eslint";

/** Runs in Node, some of it in a page that a test opened. */
const SCRIPTS = ["**/*.mjs", "worker/**/*.js"];

/** An underscore says that a name is not used. */
const UNUSED = { argsIgnorePattern: "^_", varsIgnorePattern: "^_" };

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
);
