// Validates the XML files of a folder against the openEHR schemas: `node xsd.mjs SCHEMAS FOLDER`. Which schema is told by
// the namespace and the root element. Writes an object from file names to lists of messages.

import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { validateXML } from "xmllint-wasm";

const [schemas, folder] = process.argv.slice(2);
const BATCH = 60;

const V1 = "v1_Release-1.0.2v2/components/ALL";
const V2 = "v2_master/RM/Release-1.1.0";
const FILES = {
  v1: ["BaseTypes", "Structure", "Content", "Composition", "Version"].map((name) => `${V1}/${name}.xsd`),
  v2: [
    ...["Common", "DataStructures", "DataTypes", "Ehr", "documents/Composition", "documents/Version"].map((name) => `${V2}/${name}.xsd`),
    "v2_master/BASE/latest/BaseTypes.xsd",
  ],
};

// All in one folder. XML Schema has no groups without capture, which one pattern of the published v2 schema uses; a plain
// group means the same.
const load = (path) => ({
  fileName: basename(path),
  contents: readFileSync(join(schemas, path), "utf8")
    .replace(/schemaLocation="[^"]*\/([^"/]+)"/g, 'schemaLocation="$1"')
    .replaceAll("(?:", "("),
});

const groups = new Map();
for (const fileName of readdirSync(folder)) {
  const contents = readFileSync(join(folder, fileName), "utf8");
  const version = contents.includes('xmlns="http://schemas.openehr.org/v2"') ? "v2" : "v1";
  const root = /<(composition|version)[ >]/.exec(contents)?.[1] === "version" ? "Version.xsd" : "Composition.xsd";
  const key = `${version} ${root}`;
  groups.set(key, [...(groups.get(key) ?? []), { fileName, contents }]);
}

const found = {};
for (const [key, documents] of groups) {
  const [version, root] = key.split(" ");
  const files = FILES[version].map(load);
  const schema = files.filter((file) => file.fileName === root);
  const preload = files.filter((file) => file.fileName !== root);
  for (let at = 0; at < documents.length; at += BATCH) {
    const xml = documents.slice(at, at + BATCH);
    xml.forEach(({ fileName }) => (found[fileName] = []));
    const { errors } = await validateXML({ xml, schema, preload, initialMemoryPages: 1024, maxMemoryPages: 16384 });
    for (const { loc, message, rawMessage } of errors) {
      const list = found[loc?.fileName];
      if (list) list.push(message.trim());
      else if (!/fails to validate|validates$/.test(rawMessage)) throw new Error(rawMessage);
    }
  }
}
console.log(JSON.stringify(found));
