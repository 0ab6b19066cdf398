// Validates the XML files of a folder against the openEHR schemas: `node xsd.mjs SCHEMAS FOLDER`.
// Namespace and root element determine the schema. Writes an object from file names to lists of
// messages.

import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { validateXML } from "xmllint-wasm";

const [schemas, folder] = process.argv.slice(2);
const BATCH = 60;

const V1 = "v1_Release-1.0.2v2/components/ALL";
const V2 = "v2_master/RM/Release-1.1.0";
const FILES = {
  v1: ["BaseTypes", "Structure", "Content", "Composition", "Version"].map(
    (name) => `${V1}/${name}.xsd`,
  ),
  v2: [
    ...[
      "Common",
      "DataStructures",
      "DataTypes",
      "Ehr",
      "documents/Composition",
      "documents/Version",
      "Demographic",
    ].map((name) => `${V2}/${name}.xsd`),
    "v2_master/BASE/latest/BaseTypes.xsd",
  ],
};

// All schemas are in one folder. Two flaws of patterns in the published v2 schema are corrected:
// XML Schema has no non-capturing groups (a plain group means the same), and its `\w` has no
// underscore, so the id of every archetype of EHR_STATUS would be refused.
const load = (path) => ({
  fileName: basename(path),
  contents: readFileSync(join(schemas, path), "utf8")
    .replace(/schemaLocation="[^"]*\/([^"/]+)"/g, 'schemaLocation="$1"')
    .replaceAll("(?:", "(")
    .replace(/<xs:pattern\s+value="[^"]*"/g, (pattern) =>
      pattern.replaceAll("[\\w-]", "[\\w_-]").replaceAll(/(?<!\[)\\w/g, "[\\w_]"),
    ),
});

// The published schemas declare root elements for compositions and versions only. For another root,
// a schema with one element of that type is placed before them.
const HEADS = { v1: ["Version.xsd"], v2: ["Version.xsd", "Demographic.xsd"] };
function schemaFor(version, root) {
  if (root === "composition") return "Composition.xsd";
  if (root === "version" && version === "v1") return "Version.xsd";
  const namespace = `http://schemas.openehr.org/${version}`;
  const includes = HEADS[version].map((file) => `<xs:include schemaLocation="${file}"/>`).join("");
  const contents = `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns="${namespace}" targetNamespace="${namespace}"
    elementFormDefault="qualified">${includes}${root === "version" ? "" : `<xs:element name="${root}" type="${root.toUpperCase()}"/>`}</xs:schema>`;
  return { fileName: "root.xsd", contents };
}

const groups = new Map();
for (const fileName of readdirSync(folder)) {
  const contents = readFileSync(join(folder, fileName), "utf8");
  const version = contents.includes('xmlns="http://schemas.openehr.org/v2"') ? "v2" : "v1";
  const root = /<([a-z_]+)[ >]/.exec(contents)?.[1] ?? "composition";
  const key = `${version} ${root}`;
  groups.set(key, [...(groups.get(key) ?? []), { fileName, contents }]);
}

const found = {};
for (const [key, documents] of groups) {
  const [version, root] = key.split(" ");
  const files = FILES[version].map(load);
  const made = schemaFor(version, root);
  const schema = typeof made === "string" ? files.filter((file) => file.fileName === made) : [made];
  const preload = files.filter((file) => !schema.includes(file));
  for (let at = 0; at < documents.length; at += BATCH) {
    const xml = documents.slice(at, at + BATCH);
    for (const { fileName } of xml) found[fileName] = [];
    const { errors } = await validateXML({
      xml,
      schema,
      preload,
      initialMemoryPages: 1024,
      maxMemoryPages: 16384,
    });
    for (const { loc, message, rawMessage } of errors) {
      const list = found[loc?.fileName];
      if (list) list.push(message.trim());
      else if (!/fails to validate|validates$/.test(rawMessage)) throw new Error(rawMessage);
    }
  }
}
console.log(JSON.stringify(found));
