//! Commit metadata: AUDIT_DETAILS and the lifecycle state, from headers (in both spellings) or from
//! a document.

use super::Request;
use super::error::{Failure, root_of, shortened};
use crate::diag::{Finding, Severity};
use crate::rm::class::{Attr, Cls};
use crate::rm::json::{self, quote_into};
use crate::rm::tree::NodeRef;
use crate::rm::validate::validate;
use crate::rm::xml;
use crate::store::canonical::object;

/// A code of the openEHR terminology with its rubric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Code {
    /// The code string.
    pub code: &'static str,
    /// The English rubric.
    pub rubric: &'static str,
}

const fn code(code: &'static str, rubric: &'static str) -> Code {
    Code { code, rubric }
}

/// Group `audit change type`.
const CHANGE_TYPES: [Code; 9] = [
    CREATION,
    code("250", "amendment"),
    MODIFICATION,
    code("252", "synthesis"),
    DELETED,
    code("666", "attestation"),
    code("816", "restoration"),
    code("817", "format conversion"),
    code("253", "unknown"),
];
/// Group `version lifecycle state`.
const LIFECYCLES: [Code; 5] = [
    COMPLETE,
    INCOMPLETE,
    DELETED,
    code("800", "inactive"),
    ABANDONED,
];

/// The change type of a first version.
pub(crate) const CREATION: Code = code("249", "creation");
/// The change type of a later version.
pub(crate) const MODIFICATION: Code = code("251", "modification");
/// The change type and the lifecycle state of a deletion.
pub(crate) const DELETED: Code = code("523", "deleted");
/// The default lifecycle state.
pub(crate) const COMPLETE: Code = code("532", "complete");

/// The lifecycle state of a draft.
pub(crate) const INCOMPLETE: Code = code("553", "incomplete");
/// The lifecycle state of a draft that is not completed.
pub(crate) const ABANDONED: Code = code("801", "abandoned");

/// The commit metadata that a client may state. Its RM parts are canonical JSON.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Audit {
    /// AUDIT_DETAILS.change_type.
    pub change_type: Code,
    /// VERSION.lifecycle_state.
    pub lifecycle: Code,
    /// AUDIT_DETAILS.committer: a PARTY_PROXY. `None` means the caller.
    pub committer: Option<String>,
    /// AUDIT_DETAILS.description: a DV_TEXT.
    pub description: Option<String>,
    /// The attributes that an ATTESTATION has beside those of AUDIT_DETAILS, as members of an
    /// object with a comma before each. `None` means that the audit is an AUDIT_DETAILS.
    pub attestation: Option<String>,
}

impl Audit {
    /// Checks that change type and lifecycle state both denote a deletion, or neither.
    fn consistent(self, intended: Code) -> Result<Audit, Failure> {
        let deletes = intended == DELETED;
        if (self.change_type == DELETED) != deletes || (self.lifecycle == DELETED) != deletes {
            return Err(Failure::bad_request(
                "change type and lifecycle state contradict each other: `523` (deleted) belongs to a deletion and to nothing else",
            ));
        }
        Ok(self)
    }

    /// Returns the AUDIT_DETAILS or ATTESTATION as canonical JSON. `caller` is the committer if the
    /// client named none.
    pub fn to_json(&self, system_id: &str, time_committed: &str, caller: &str) -> String {
        let class = match &self.attestation {
            Some(_) => Cls::ATTESTATION,
            None => Cls::AUDIT_DETAILS,
        };
        let mut out = format!(r#"{{"_type":"{class}","system_id":"#);
        quote_into(&mut out, system_id);
        out.push_str(r#","committer":"#);
        out.push_str(self.committer.as_deref().unwrap_or(caller));
        out.push_str(r#","time_committed":"#);
        out.push_str(&object(&[
            ("_type", "DV_DATE_TIME"),
            ("value", time_committed),
        ]));
        out.push_str(r#","change_type":"#);
        out.push_str(&self.change_type.to_json());
        if let Some(description) = &self.description {
            out.push_str(r#","description":"#);
            out.push_str(description);
        }
        if let Some(attestation) = &self.attestation {
            out.push_str(attestation);
        }
        out.push('}');
        out
    }
}

/// The commit metadata that one source states: the headers of a request, a version, or the audit of
/// a contribution.
///
/// Sources are merged attribute by attribute with [`CommitMetadata::or`]; the most specific source
/// comes first.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct CommitMetadata {
    change_type: Option<Code>,
    lifecycle: Option<Code>,
    committer: Option<String>,
    description: Option<String>,
    /// See [`Audit::attestation`]. Headers cannot state it.
    attestation: Option<String>,
}

impl CommitMetadata {
    /// Returns a text that is equal for equal metadata of headers. Repositories store digests of
    /// it, so later releases must write the same text.
    #[cfg(feature = "server")]
    pub fn identity(&self) -> String {
        let code = |code: &Option<Code>| code.as_ref().map(|code| code.code);
        let texts = [
            code(&self.change_type),
            code(&self.lifecycle),
            self.committer.as_deref(),
            self.description.as_deref(),
        ];
        serde_json::json!(texts).to_string()
    }

    /// Reads the committal headers of a request, in both spellings.
    ///
    /// # Errors
    /// 400 for a header that cannot be parsed, an unknown part or code, two different values of one
    /// part, a value that breaks a rule of the Reference Model, and a character that XML 1.0 cannot
    /// carry.
    pub fn of_headers(request: &Request) -> Result<CommitMetadata, Failure> {
        let mut stated = CommitMetadata::default();
        let mut party = Party::default();
        for (name, value) in &request.headers {
            let name = name.to_ascii_lowercase().replace('_', "-");
            let Some(group) = ["openehr-version", "openehr-audit-details"]
                .into_iter()
                // Only the name itself, or the name and a dot: other names may begin alike.
                .find(|g| name == *g || name.strip_prefix(g).is_some_and(|r| r.starts_with('.')))
            else {
                continue;
            };
            if let Some(character) = xml::not_in_xml(value) {
                let code = u32::from(character);
                return Err(Failure::bad_request(format!(
                    "the header {group} has the character U+{code:04X}, which XML 1.0 cannot carry: leave it out"
                )));
            }
            // The 1 is the length of the dot.
            let prefix = name
                .get(group.len() + 1..)
                .unwrap_or_default()
                .replace('-', "_");
            for (key, value) in pairs(value, group)? {
                let key = [prefix.as_str(), key.as_str()]
                    .iter()
                    .filter(|k| !k.is_empty())
                    .copied()
                    .collect::<Vec<_>>()
                    .join(".");
                stated.take(group, &key, &value, &mut party)?;
            }
        }
        stated.committer = party.to_json();
        check_stated(&stated.committer, Cls::PARTY_IDENTIFIED, Attr::COMMITTER)?;
        check_stated(&stated.description, Cls::DV_TEXT, Attr::DESCRIPTION)?;
        Ok(stated)
    }

    /// Adds a part of a committal header: `key` of the header `group`. Parts of a committer are
    /// added to `party`.
    ///
    /// # Errors
    /// 400 for an unknown part or code, and for a second value of a part.
    fn take(
        &mut self,
        group: &str,
        key: &str,
        value: &str,
        party: &mut Party,
    ) -> Result<(), Failure> {
        // Clients write `description` and `description.value` for the same leaf.
        let key = key.strip_suffix(".value").unwrap_or(key);
        match (group, key) {
            ("openehr-version", "lifecycle_state" | "lifecycle_state.code_string") => {
                self.lifecycle = Some(agreed(lifecycle(value)?, self.lifecycle)?)
            }
            ("openehr-audit-details", "change_type" | "change_type.code_string") => {
                self.change_type = Some(agreed(change_type(value)?, self.change_type)?)
            }
            ("openehr-audit-details", "description") => {
                let text = object(&[("_type", "DV_TEXT"), ("value", value)]);
                state_once(&mut self.description, text, group, key)?;
            }
            ("openehr-audit-details", "committer" | "committer.name") => {
                state_once(&mut party.name, value.to_owned(), group, key)?;
            }
            ("openehr-audit-details", "committer.external_ref.id") => {
                state_once(&mut party.id, value.to_owned(), group, key)?;
            }
            ("openehr-audit-details", "committer.external_ref.namespace") => {
                state_once(&mut party.namespace, value.to_owned(), group, key)?;
            }
            ("openehr-audit-details", "committer.external_ref.type") => {
                state_once(&mut party.kind, value.to_owned(), group, key)?;
            }
            // The server determines these two, so values of the client are ignored.
            (_, "system_id" | "time_committed") => {}
            _ => {
                return Err(Failure::bad_request(format!(
                    "the committal header {group} has the unknown part `{}`: expected {}",
                    // A bare value stands where the name of a part is expected.
                    shortened(if key.is_empty() { value } else { key }),
                    known_parts(group)
                )));
            }
        }
        Ok(())
    }

    /// Reads an AUDIT_DETAILS or ATTESTATION.
    ///
    /// # Errors
    /// 400 for an unknown change type, or one that its rubric contradicts, and for a committer or
    /// another stored attribute that breaks a rule of the Reference Model.
    pub fn of_audit(node: NodeRef<'_>) -> Result<CommitMetadata, Failure> {
        check_parts(node, "audit", &[Attr::COMMITTER, Attr::DESCRIPTION])?;
        check_parts(node, "attestation", &OF_ATTESTATION)?;
        Ok(CommitMetadata {
            change_type: node
                .get(Attr::CHANGE_TYPE)
                .and_then(|coded| sent_code(coded, change_type))
                .transpose()?,
            lifecycle: None,
            committer: node.get(Attr::COMMITTER).map(json::write),
            description: node.get(Attr::DESCRIPTION).map(json::write),
            attestation: attestation(node)?,
        })
    }

    /// Reads the commit_audit and the lifecycle_state of a VERSION; either may be absent.
    ///
    /// # Errors
    /// See [`CommitMetadata::of_audit`]; also 400 for an unknown lifecycle state.
    pub fn of_version(version: NodeRef<'_>) -> Result<CommitMetadata, Failure> {
        let audit = version
            .get(Attr::COMMIT_AUDIT)
            .map_or_else(|| Ok(CommitMetadata::default()), CommitMetadata::of_audit)
            .map_err(|failure| failure.below("/commit_audit"))?;
        let state = version
            .get(Attr::LIFECYCLE_STATE)
            .and_then(|coded| sent_code(coded, lifecycle))
            .transpose()?;
        Ok(CommitMetadata {
            lifecycle: state,
            ..audit
        })
    }

    /// Reads a change type and a lifecycle state, each by code or rubric.
    ///
    /// # Errors
    /// 400 for an unknown one.
    pub fn of_codes(change: Option<&str>, state: Option<&str>) -> Result<CommitMetadata, Failure> {
        Ok(CommitMetadata {
            change_type: change.map(change_type).transpose()?,
            lifecycle: state.map(lifecycle).transpose()?,
            ..CommitMetadata::default()
        })
    }

    /// Fills in missing attributes from the audit of the same object, with those of an ATTESTATION.
    pub fn before(self, audit: CommitMetadata) -> CommitMetadata {
        CommitMetadata {
            attestation: audit.attestation.clone(),
            ..self.or(&audit)
        }
    }

    /// Fills in missing attributes from another source, but not those of an ATTESTATION: its reason
    /// and proof hold for the object that has them.
    pub fn or(self, other: &CommitMetadata) -> CommitMetadata {
        CommitMetadata {
            change_type: self.change_type.or(other.change_type),
            lifecycle: self.lifecycle.or(other.lifecycle),
            committer: self.committer.or_else(|| other.committer.clone()),
            description: self.description.or_else(|| other.description.clone()),
            attestation: self.attestation,
        }
    }

    /// Returns the metadata without change type and lifecycle state.
    pub fn without_codes(&self) -> CommitMetadata {
        CommitMetadata {
            change_type: None,
            lifecycle: None,
            ..self.clone()
        }
    }

    /// Fills in missing attributes from another source, but not the change type: the change type of
    /// a version of another system does not determine how it changes the stored object.
    pub fn or_unless_type(self, other: &CommitMetadata) -> CommitMetadata {
        let change_type = self.change_type;
        CommitMetadata {
            change_type,
            ..self.or(other)
        }
    }

    /// Returns the audit of the import of a version, which keeps its own lifecycle state.
    ///
    /// # Errors
    /// 400 if the stated change type is a deletion and the version is none, or the reverse.
    pub fn import_audit(self, default: Code, lifecycle: Code) -> Result<Audit, Failure> {
        Audit {
            lifecycle,
            ..self.audit(default)
        }
        .consistent(default)
    }

    /// Fills in the defaults of a change. The lifecycle state follows from the change type.
    fn audit(self, default: Code) -> Audit {
        let change_type = self.change_type.unwrap_or(default);
        let by_default = if change_type == DELETED {
            DELETED
        } else {
            COMPLETE
        };
        Audit {
            change_type,
            lifecycle: self.lifecycle.unwrap_or(by_default),
            committer: self.committer,
            description: self.description,
            attestation: self.attestation,
        }
    }

    /// Returns the audit of a document that is created, updated or deleted at its own URL. The
    /// operation determines the change type.
    ///
    /// # Errors
    /// 400 if change type or lifecycle state contradict the operation.
    pub fn direct_audit(self, change_type: Code) -> Result<Audit, Failure> {
        self.audit(change_type).consistent(change_type)
    }

    /// Returns whether the stated change type is a deletion.
    pub fn deletes(&self) -> bool {
        self.change_type == Some(DELETED)
    }

    /// Returns the audit of a contribution or of a member of one. The change type determines
    /// whether it deletes. A deletion has the lifecycle state 523, whatever is stated:
    /// UPDATE_VERSION of ITS-REST requires a lifecycle state, and clients send that of the
    /// document.
    ///
    /// # Errors
    /// 400 if a version that is no deletion has the lifecycle state 523.
    pub fn member_audit(self, default: Code) -> Result<Audit, Failure> {
        let mut audit = self.audit(default);
        let change_type = audit.change_type;
        if change_type == DELETED {
            audit.lifecycle = DELETED;
        }
        audit.consistent(change_type)
    }
}

/// Returns the description of the parts that a committal header may have.
fn known_parts(group: &str) -> &'static str {
    match group {
        "openehr-version" => r#"`lifecycle_state.code_string="…"`"#,
        _ => {
            r#"`change_type.code_string="…"`, `description.value="…"`, or `committer.name="…"` and `committer.external_ref.id`, `.namespace` and `.type`"#
        }
    }
}

impl Code {
    /// Returns a DV_CODED_TEXT as canonical JSON.
    pub fn to_json(self) -> String {
        let Code { code, rubric } = self;
        format!(
            r#"{{"_type":"DV_CODED_TEXT","value":"{rubric}","defining_code":{{"_type":"CODE_PHRASE","terminology_id":{{"_type":"TERMINOLOGY_ID","value":"openehr"}},"code_string":"{code}","preferred_term":"{rubric}"}}}}"#
        )
    }
}

/// The parts of a committer in headers.
#[derive(Default)]
pub(crate) struct Party {
    /// PARTY_IDENTIFIED.name.
    pub name: Option<String>,
    /// PARTY_REF.id.value.
    pub id: Option<String>,
    /// PARTY_REF.namespace.
    pub namespace: Option<String>,
    /// PARTY_REF.type.
    pub kind: Option<String>,
}

impl Party {
    /// Returns a PARTY_IDENTIFIED as canonical JSON, or `None` if all parts are absent.
    pub fn to_json(&self) -> Option<String> {
        let mut members = vec![String::from(r#""_type":"PARTY_IDENTIFIED""#)];
        if let Some(id) = &self.id {
            let id = object(&[("_type", "GENERIC_ID"), ("value", id), ("scheme", "local")]);
            let mut reference =
                format!(r#""external_ref":{{"_type":"PARTY_REF","id":{id},"namespace":"#);
            quote_into(&mut reference, self.namespace.as_deref().unwrap_or("local"));
            reference.push_str(r#","type":"#);
            quote_into(&mut reference, self.kind.as_deref().unwrap_or("PARTY"));
            reference.push('}');
            members.push(reference);
        }
        if let Some(name) = &self.name {
            let mut member = String::from(r#""name":"#);
            quote_into(&mut member, name);
            members.push(member);
        }
        // The first member is the class, so one member means that no part was sent.
        (members.len() > 1).then(|| format!("{{{}}}", members.join(",")))
    }
}

/// The attributes that an ATTESTATION has beside those of AUDIT_DETAILS, in canonical order.
const OF_ATTESTATION: [Attr; 5] = [
    Attr::ATTESTED_VIEW,
    Attr::PROOF,
    Attr::ITEMS,
    Attr::REASON,
    Attr::IS_PENDING,
];

/// Returns the attributes of an audit that is an ATTESTATION (see [`Audit::attestation`]).
///
/// # Errors
/// 400 without reason or is_pending, which the Reference Model requires.
fn attestation(audit: NodeRef<'_>) -> Result<Option<String>, Failure> {
    if audit.class() != Cls::ATTESTATION {
        return Ok(None);
    }
    if let Some(missing) = [Attr::REASON, Attr::IS_PENDING]
        .into_iter()
        .find(|attr| audit.get(*attr).is_none())
    {
        return Err(Failure::bad_request(format!(
            "the audit is an ATTESTATION without `{missing}`: send it, or an AUDIT_DETAILS"
        )));
    }
    let mut out = String::new();
    for attr in OF_ATTESTATION {
        if let Some(value) = audit.get(attr) {
            out.push_str(&format!(",\"{attr}\":"));
            json::write_into(&mut out, value);
        }
    }
    Ok(Some(out))
}

/// Checks the attributes `stored` of a document against the Reference Model. They are stored as
/// sent; the server sets the others. `what` is the name of the document in errors.
///
/// # Errors
/// 400 with all findings. Their paths start at the document.
pub(crate) fn check_parts(node: NodeRef<'_>, what: &str, stored: &[Attr]) -> Result<(), Failure> {
    let values = stored
        .iter()
        .flat_map(|attr| node.values(*attr).enumerate().map(move |at| (*attr, at)));
    let findings: Vec<Finding> = values
        .flat_map(|(attr, (index, value))| {
            let def = node.class().attr(attr);
            let is_list = def.is_some_and(|def| def.card.is_list());
            errors_below(attr, is_list.then_some(index), value)
        })
        .collect();
    if findings.is_empty() {
        Ok(())
    } else {
        Err(Failure::unreadable(what, &findings))
    }
}

/// Checks an attribute of the audit that headers state, as canonical JSON.
///
/// # Errors
/// 400 with all findings, as for the same audit in a body.
fn check_stated(stated: &Option<String>, class: Cls, attr: Attr) -> Result<(), Failure> {
    let Some(stated) = stated else { return Ok(()) };
    let tree = json::read(stated, class).map_err(|f| Failure::unreadable("audit", &f))?;
    match errors_below(attr, None, root_of(&tree)?) {
        none if none.is_empty() => Ok(()),
        findings => Err(Failure::unreadable("audit", &findings)),
    }
}

/// Returns the errors in the value of an attribute, with paths from the object that has it. `index`
/// is the index in the list of an attribute that has several values.
fn errors_below(attr: Attr, index: Option<usize>, value: NodeRef<'_>) -> Vec<Finding> {
    let index = index.map_or_else(String::new, |index| format!("[{index}]"));
    let findings = validate(value).into_iter();
    let errors = findings.filter(|finding| finding.severity == Severity::Error);
    let from_object = |finding: Finding| Finding {
        path: format!("/{attr}{index}{}", finding.path),
        ..finding
    };
    errors.map(from_object).collect()
}

/// Returns the code of a DV_CODED_TEXT, or that of its rubric if it has no code. `None` if it has
/// neither.
///
/// The rubric may be in any language, so an unknown one is accepted beside a code. A code without
/// `terminology_id` is one of the openEHR terminology.
///
/// # Errors
/// 400 for an unknown code, for one of another terminology (Change_type_valid and
/// Lifecycle_state_valid of the Reference Model), and for the rubric of another code.
pub(super) fn sent_code(
    coded: NodeRef<'_>,
    find: fn(&str) -> Result<Code, Failure>,
) -> Option<Result<Code, Failure>> {
    let rubric = coded.text_at(Attr::VALUE);
    let phrase = coded.get(Attr::DEFINING_CODE);
    let terminology = phrase.and_then(|p| p.text_along(&[Attr::TERMINOLOGY_ID, Attr::VALUE]));
    if let Err(failure) = terminology.map_or(Ok(()), check_terminology) {
        return Some(Err(failure));
    }
    let code = phrase.and_then(|phrase| phrase.text_at(Attr::CODE_STRING));
    let Some(code) = code.filter(|code| !code.trim().is_empty() || rubric.is_none()) else {
        return rubric.map(find);
    };
    let by_rubric = rubric.and_then(|rubric| find(rubric).ok());
    Some(find(code).and_then(|code| agreed(code, by_rubric)))
}

/// Checks that a terminology is that of openEHR, in any letter case.
pub(super) fn check_terminology(name: &str) -> Result<(), Failure> {
    match name.eq_ignore_ascii_case("openehr") {
        true => Ok(()),
        false => Err(Failure::bad_request(
            "the `terminology_id` of the code is not `openehr`, whose codes are expected here",
        )),
    }
}

/// Returns a code, unless the other source states another one.
fn agreed(code: Code, other: Option<Code>) -> Result<Code, Failure> {
    match other {
        Some(other) if other != code => Err(Failure::bad_request(format!(
            "`{}` ({}) and `{}` ({}) contradict each other: send one of them",
            code.code, code.rubric, other.code, other.rubric
        ))),
        _ => Ok(code),
    }
}

/// Keeps the text of a part of a committal header.
///
/// # Errors
/// 400 if the headers of the request state another text of this part: either may be the intended
/// one.
fn state_once(
    place: &mut Option<String>,
    text: String,
    group: &str,
    key: &str,
) -> Result<(), Failure> {
    match place.replace(text) {
        Some(before) if Some(&before) != place.as_ref() => Err(Failure::bad_request(format!(
            "the committal headers {group} state `{key}` twice, with different values: send one of them"
        ))),
        _ => Ok(()),
    }
}

/// Finds a change type by code or rubric.
pub(crate) fn change_type(text: &str) -> Result<Code, Failure> {
    find(&CHANGE_TYPES, text).ok_or_else(|| {
        Failure::bad_request(format!(
            "`{}` is not a change type; known are {}",
            short(text),
            known(&CHANGE_TYPES)
        ))
    })
}

/// Finds a lifecycle state by code or rubric.
pub(crate) fn lifecycle(text: &str) -> Result<Code, Failure> {
    find(&LIFECYCLES, text).ok_or_else(|| {
        Failure::bad_request(format!(
            "`{}` is not a lifecycle state; known are {}",
            short(text),
            known(&LIFECYCLES)
        ))
    })
}

/// Returns the code with this code string, or with this rubric in any letter case.
fn find(codes: &[Code], text: &str) -> Option<Code> {
    let text = text.trim();
    codes
        .iter()
        .find(|c| c.code == text || c.rubric.eq_ignore_ascii_case(text))
        .copied()
}

/// Returns the codes with their rubrics, for an error.
fn known(codes: &[Code]) -> String {
    codes
        .iter()
        .map(|c| format!("{} ({})", c.code, c.rubric))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Returns the first 40 characters of a text, for an error.
fn short(text: &str) -> String {
    text.chars().take(40).collect()
}

/// Reads `key="value", key="value"`, or a bare word or quoted text, which has no key.
pub(crate) fn pairs(value: &str, header: &str) -> Result<Vec<(String, String)>, Failure> {
    let unparsable = || {
        Failure::bad_request(format!(
            "the header {header} cannot be read: expected `key=\"value\", …`"
        ))
    };
    if !value.contains('=') {
        return Ok(vec![(
            String::new(),
            value.trim().trim_matches('"').to_owned(),
        )]);
    }
    let mut found = Vec::new();
    let mut rest = value.trim();
    while !rest.is_empty() {
        let (key, after) = rest.split_once('=').ok_or_else(unparsable)?;
        let (text, after) = match after.trim_start().strip_prefix('"') {
            Some(quoted) => quoted_text(quoted).ok_or_else(unparsable)?,
            None => {
                let end = after.find([',', ';']).unwrap_or(after.len());
                let (word, after) = after.split_at_checked(end).ok_or_else(unparsable)?;
                (word.trim().to_owned(), after)
            }
        };
        found.push((key.trim().to_ascii_lowercase(), text));
        let after = after.trim_start();
        rest = match after.strip_prefix([',', ';']) {
            Some(next) => next.trim_start(),
            None if after.is_empty() => after,
            None => return Err(unparsable()),
        };
    }
    Ok(found)
}

/// Reads a text up to its closing quote, unescapes `\"` and `\\`, and returns it with the remaining
/// text.
fn quoted_text(text: &str) -> Option<(String, &str)> {
    let mut out = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((out, text.get(at + 1..)?)),
            // A backslash makes any character literal (RFC 9110, section 5.6.4).
            '\\' => out.push(chars.next()?.1),
            other => out.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn audit(headers: &[(&str, &str)]) -> Result<Audit, Failure> {
        let request = headers
            .iter()
            .fold(Request::default(), |r, (n, v)| r.with_header(n, v));
        CommitMetadata::of_headers(&request)?.direct_audit(MODIFICATION)
    }

    #[test]
    fn both_spellings_and_bare_words_are_equivalent() {
        let old = audit(&[
            ("openEHR-VERSION.lifecycle_state", "code_string=\"553\""),
            ("openEHR-AUDIT_DETAILS.change_type", "code_string=\"250\""),
            (
                "openEHR-AUDIT_DETAILS.description",
                "value=\"a, \\\"b\\\"\"",
            ),
            (
                "openEHR-AUDIT_DETAILS.committer",
                "name=\"Dr. A\", external_ref.id=\"7\", external_ref.namespace=\"n\", external_ref.type=\"PERSON\"",
            ),
        ]);
        let new = audit(&[
            ("openehr-version", "lifecycle_state.code_string=\"553\""),
            (
                "openehr-audit-details",
                "change_type.code_string=\"250\",description.value=\"a, \\\"b\\\"\"",
            ),
            (
                "openehr-audit-details",
                "committer.name=\"Dr. A\",committer.external_ref.id=\"7\",committer.external_ref.namespace=\"n\",committer.external_ref.type=\"PERSON\"",
            ),
        ]);
        assert_eq!(old.clone().unwrap(), new.unwrap());
        assert_eq!(
            old.unwrap().description.unwrap(),
            r#"{"_type":"DV_TEXT","value":"a, \"b\""}"#
        );
        assert_eq!(
            audit(&[("openEHR-VERSION.lifecycle_state", "incomplete")])
                .unwrap()
                .lifecycle
                .code,
            "553"
        );
    }

    #[test]
    fn invalid_committal_headers_are_refused() {
        for (name, value) in [
            ("openEHR-VERSION.lifecycle_state", "code_string=\"1\""),
            ("openEHR-VERSION.lifecycle_state", "code_string=\"523\""),
            (
                "openEHR-VERSION.lifecycle_state",
                "code_string=\"532\", value=\"incomplete\"",
            ),
            (
                "openEHR-AUDIT_DETAILS.change_type",
                "code_string=\"777\", value=\"modification\"",
            ),
            ("openEHR-AUDIT_DETAILS.committer", "name=\"open"),
            ("openEHR-AUDIT_DETAILS.colour", "red"),
        ] {
            assert_eq!(
                audit(&[(name, value)]).map_err(|f| f.status),
                Err(400),
                "{name}: {value}"
            );
        }
    }
}
