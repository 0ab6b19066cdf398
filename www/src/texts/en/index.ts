// The texts of the page in English. Other languages have the same type.
import { data, refused, sets } from "./data";
import { editor } from "./editor";
import { errors } from "./errors";
import { frame } from "./frame";
import { fixtures, guide, guideAbout, guideEdit, guideForm, guideOutcome } from "./guide";
import { patients } from "./patients";
import { builder, explanation, query } from "./query";
import { chart, results } from "./results";
import { templates } from "./templates";

export const texts = {
  language: "en",
  ...{ frame, editor, errors, query, builder, explanation, results, chart, templates },
  ...{ guide, guideForm, guideAbout, guideEdit, guideOutcome, fixtures },
  ...{ patients, data, refused, sets },
};
