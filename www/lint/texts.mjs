// A lint rule: texts for people are in the catalogue (`src/texts`), not in the code.
//
// A text is a literal in a place that people read (the content of an element, a label, an error), or
// a literal anywhere that looks like prose. Technical strings that look like prose are allowed by
// name.

/** The attributes of elements that people read. */
const ATTRIBUTES = new Set(["title", "aria-label", "placeholder", "alt", "aria-description"]);
/** The properties of elements, dialogs and messages that people read. */
const PROPERTIES = new Set([
  "textContent",
  "innerText",
  "title",
  "placeholder",
  "about",
  "ariaLabel",
]);
/** Methods that add content to an element, with their first argument that is content. */
const METHODS = new Map([
  ["append", 0],
  ["prepend", 0],
  ["replaceChildren", 0],
  ["replaceWith", 0],
  ["before", 0],
  ["after", 0],
  ["say", 0],
  ["#say", 0],
]);

/** Two words in a row, a capitalized word alone, or words with an ellipsis. */
const PROSE = /\p{L}{2,}[,.:;!?]?\s+\p{L}|^\p{Lu}\p{Ll}{2,}$|\p{L}…/u;
/** AQL, values of CSS, media types, identifiers of tools. */
const TECHNICAL =
  /\b(?:SELECT|FROM|WHERE|ORDER BY|CONTAINS|AND|AS|LIMIT)\b|var\(--|(?:\d|\$\{\})(?:px|em|rem|vw)\b|^\(|^[\w.-]+\/[\w.+-]+(?:;|$)|^[A-Z][A-Za-z]*-[A-Za-z-]+$/;

/** Methods that take a selector. */
const SELECTORS = /^(?:querySelector(?:All)?|closest|matches|call)$/;

/** Returns the name of a called function or method. */
function nameOf(callee) {
  const { type, name, property } = callee;
  if (type === "Identifier") return name;
  if (type !== "MemberExpression") return "";
  return property.type === "PrivateIdentifier" ? `#${property.name}` : (property.name ?? "");
}

function keyOf(property) {
  return property.key?.name ?? property.key?.value;
}

/** Returns the node whose value a literal is, through conditions, sums, templates and lists. */
function whole(node) {
  const { parent } = node;
  const isPart =
    (parent.type === "ConditionalExpression" && parent.test !== node) ||
    (parent.type === "LogicalExpression" && parent.right === node) ||
    (parent.type === "BinaryExpression" && parent.operator === "+") ||
    ["TemplateLiteral", "ArrayExpression", "SpreadElement", "TSAsExpression"].includes(parent.type);
  return isPart ? whole(parent) : node;
}

/** Whether people read the argument of a call. */
function isReadArgument(call, node) {
  const [name, at] = [nameOf(call.callee), call.arguments.indexOf(node)];
  if (name === "h") return at >= 2;
  if (name === "setAttribute") return at === 1 && ATTRIBUTES.has(call.arguments[0].value);
  return METHODS.has(name) && at >= METHODS.get(name);
}

/** Whether people read the value of a node because of its place. */
function isRead(literal) {
  const node = whole(literal);
  const { parent } = node;
  if (parent.type === "CallExpression") return isReadArgument(parent, node);
  if (parent.type === "NewExpression") return /Error$|^Option$/.test(nameOf(parent.callee));
  if (parent.type === "AssignmentExpression")
    return parent.right === node && PROPERTIES.has(nameOf(parent.left));
  if (parent.type !== "Property" || parent.value !== node) return false;
  return ATTRIBUTES.has(keyOf(parent)) || PROPERTIES.has(keyOf(parent));
}

/** Whether a literal is compared, imported, a key, a type, a class or the name of a key. */
function isTechnicalPlace(literal) {
  const node = whole(literal);
  const { parent } = node;
  if (/^(Import|Export)|TSLiteralType|SwitchCase/.test(parent.type)) return true;
  // `texts["key"]`. A list of texts may have methods, too: `["Value", "Before"].map(…)`.
  if (parent.type === "MemberExpression") return node === literal;
  if (parent.type === "BinaryExpression") return true;
  if (parent.type === "CallExpression") return SELECTORS.test(nameOf(parent.callee));
  if (parent.type === "Property")
    return parent.key === node || ["class", "key", "type", "rel"].includes(keyOf(parent));
  if (parent.type === "PropertyDefinition") return keyOf(parent) === "name";
  return false;
}

function textOf(node) {
  if (node.type === "Literal") return typeof node.value === "string" ? node.value : "";
  return node.quasis.map(({ value }) => value.cooked).join("${}");
}

/** The rule. Its option `allowed` lists technical strings that look like prose. */
export const textsInCatalogue = {
  meta: {
    type: "problem",
    schema: [{ type: "object", properties: { allowed: { type: "array" } } }],
    messages: { text: "Put the text {{text}} into the catalogue (www/src/texts)." },
  },
  create(context) {
    const allowed = new Set(context.options[0]?.allowed);
    const check = (node) => {
      const text = textOf(node);
      if (!/\p{L}{2}/u.test(text) || allowed.has(text)) return;
      const isText = isRead(node)
        ? /\p{L}{2}/u.test(text) && !TECHNICAL.test(text)
        : !isTechnicalPlace(node) && PROSE.test(text) && !TECHNICAL.test(text);
      if (isText) context.report({ node, messageId: "text", data: { text: JSON.stringify(text) } });
    };
    return {
      Literal: check,
      TemplateLiteral(node) {
        if (node.parent.type !== "TaggedTemplateExpression") check(node);
      },
    };
  },
};
