// The colors of the page, which the build reads from its style sheet.
declare module "aqlite-colors" {
  /** The declarations of light and of dark colors, without a selector. */
  export const light: string;
  export const dark: string;
}
