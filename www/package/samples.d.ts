/** The definitions of the sample patients; the build puts them there. */
declare module "aqlite-samples" {
  export const templates: string[];
  export const guides: string[];
}
