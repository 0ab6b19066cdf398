// The texts of the templates view and of the forms of templates.
import { formats } from "../formats";

const t = /* @__PURE__ */ formats("en");

export const templates = {
  one: "Template",
  find: "Find",
  findExample: "Systolic, diagnosis, at0004 …",
  showAs: "Show the template as",
  tree: "Tree",
  form: "Form",
  nodes: "Nodes of the template",
  about:
    "“Query” asks for a node in every document of this template. A path can also be dragged into the query.",
  formTitle: "Form of the template",
  patient: "Patient",
  composer: "Composer",
  composerDefault: "Playground",
  territory: "Territory",
  save: "Save the document",
  flat: "Show as FLAT",
  none: "No templates here",
  noneAbout: "Add an operational template (.opt) in the Data view, or make sample patients there.",
  notShown: "This template cannot be shown",
  notShownAbout: "It is not among those that were fetched from the server.",
  making: "The form is being made …",
  noForm: ({ reason }: { reason: string }) => `There is no form for this template: ${reason}`,
  notFound: "No node is called that.",
  query: "Query",
  queryNode: ({ name }: { name: string }) => `Query ${name}`,
  saving: "Saving",
  saved: ({ uid }: { uid: string }) => `Saved as ${uid}`,
  notSaved: "Not saved",
  notSavedFields: ({ count }: { count: number }) =>
    t.plural(count, {
      one: "Not saved: one field has a problem",
      other: `Not saved: ${t.number(count)} fields have a problem`,
    }),
  decimal: ({ text }: { text: string }) =>
    `“${text}” is not a number: write digits, with one point or one comma as the decimal sign`,
  whole: ({ text }: { text: string }) => `“${text}” is not a whole number: write digits only`,
  unreadable: ({ count }: { count: number }) =>
    t.plural(count, {
      one: "One field cannot be read",
      other: `${t.number(count)} fields cannot be read`,
    }),
  notChosen: "not chosen",
  yes: "yes",
  no: "no",
  another: ({ name }: { name: string }) => `Another ${name}`,
  required: "must be there",
  codes: ({ count }: { count: number }) => `${t.number(count)} codes`,
};
