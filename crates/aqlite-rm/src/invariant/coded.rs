//! The attributes whose codes the Reference Model takes from a group or a code set.

use crate::class::{Attr, Cls};
use crate::diag::Severity;
use crate::terminology::{self as groups, CodeGroup};
use crate::tree::NodeRef;

/// An attribute whose code must be in a group of the openEHR terminology, or in a code set.
pub(crate) struct Coded {
    pub(crate) cls: Cls,
    pub(crate) attr: Attr,
    /// The name of the invariant in the class definition.
    pub(crate) name: &'static str,
    pub(crate) group: &'static CodeGroup,
}

/// A difference between a code and the group of its attribute.
pub(crate) struct Mismatch {
    pub(crate) expected: String,
    pub(crate) found: String,
    pub(crate) severity: Severity,
}

/// A code with its terminology.
#[derive(Clone, Copy)]
struct Code<'a> {
    terminology: &'a str,
    code: &'a str,
}

impl Coded {
    /// Compares the code of the attribute with its group. A text without a code has none to compare.
    ///
    /// The Reference Model demands `terminology(openehr).has_code_for_group_id` of a group, and
    /// `code_set(…).has_code` of a code set. Only the first names a terminology, so a code set
    /// accepts the names that other systems write, and warns about further ones.
    pub(crate) fn mismatch(&self, node: NodeRef<'_>) -> Option<Mismatch> {
        let code = node.get(self.attr).and_then(Code::read)?;
        // An empty code violates the invariant of CODE_PHRASE itself.
        if code.code.is_empty() {
            return None;
        }
        if !self.group.is_code_set() {
            return self.outside_openehr(code);
        }
        let is_known = self.group.contains(code.code) || self.is_regional(code.code);
        if !is_known {
            return Some(Mismatch {
                expected: format!("a code of `{}`", self.group.name),
                found: code.code.to_owned(),
                severity: self.severity_of_unlisted_code(),
            });
        }
        (!self.group.is_named(code.terminology)).then(|| Mismatch {
            expected: format!("the terminology `{}`", self.group.terminology),
            found: format!("{}::{}", code.terminology, code.code),
            severity: Severity::Warning,
        })
    }

    /// Compares a code with a group of the openEHR terminology.
    fn outside_openehr(&self, code: Code<'_>) -> Option<Mismatch> {
        let is_openehr = self.group.is_named(code.terminology);
        if is_openehr && self.group.contains(code.code) {
            return None;
        }
        let found = if is_openehr {
            code.code.to_owned()
        } else {
            format!("{}::{}", code.terminology, code.code)
        };
        // The group of functions has one code, `unknown`. The definition of the attribute expects
        // codes of further vocabularies, so only the invariant excludes them.
        let is_open = *self.group == groups::PARTICIPATION_FUNCTION && !is_openehr;
        Some(Mismatch {
            expected: format!("a code of `{}`", self.group.name),
            found,
            severity: if is_open {
                Severity::Warning
            } else {
                Severity::Error
            },
        })
    }

    /// Returns whether a code is a language with a region. A language may have any region.
    fn is_regional(&self, code: &str) -> bool {
        let mut parts = code.split(['-', '_']);
        *self.group == groups::LANGUAGES
            && parts
                .next()
                .is_some_and(|language| self.group.contains(language))
    }

    /// Returns the severity of a code that the code set does not list.
    fn severity_of_unlisted_code(&self) -> Severity {
        // These code sets grow outside openEHR, so a code that is not listed may be valid.
        if [&groups::MEDIA_TYPES, &groups::CHARACTER_SETS].contains(&self.group) {
            Severity::Warning
        } else {
            Severity::Error
        }
    }
}

impl<'a> Code<'a> {
    /// Reads the code of a CODE_PHRASE or DV_CODED_TEXT.
    fn read(node: NodeRef<'a>) -> Option<Code<'a>> {
        let phrase = if node.class() == Cls::CODE_PHRASE {
            node
        } else {
            node.get(Attr::DEFINING_CODE)?
        };
        Some(Code {
            terminology: phrase.text_along(&[Attr::TERMINOLOGY_ID, Attr::VALUE])?,
            code: phrase.text_at(Attr::CODE_STRING)?,
        })
    }
}

const fn coded(cls: Cls, attr: Attr, name: &'static str, group: &'static CodeGroup) -> Coded {
    Coded {
        cls,
        attr,
        name,
        group,
    }
}

pub(crate) static CODED: &[Coded] = &[
    coded(
        Cls::COMPOSITION,
        Attr::CATEGORY,
        "Category_validity",
        &groups::COMPOSITION_CATEGORY,
    ),
    coded(
        Cls::COMPOSITION,
        Attr::LANGUAGE,
        "Language_valid",
        &groups::LANGUAGES,
    ),
    coded(
        Cls::COMPOSITION,
        Attr::TERRITORY,
        "Territory_valid",
        &groups::COUNTRIES,
    ),
    coded(
        Cls::ENTRY,
        Attr::LANGUAGE,
        "Language_valid",
        &groups::LANGUAGES,
    ),
    coded(
        Cls::ENTRY,
        Attr::ENCODING,
        "Encoding_valid",
        &groups::CHARACTER_SETS,
    ),
    coded(
        Cls::EVENT_CONTEXT,
        Attr::SETTING,
        "Setting_valid",
        &groups::SETTING,
    ),
    coded(
        Cls::DV_TEXT,
        Attr::LANGUAGE,
        "Language_valid",
        &groups::LANGUAGES,
    ),
    coded(
        Cls::DV_TEXT,
        Attr::ENCODING,
        "Encoding_valid",
        &groups::CHARACTER_SETS,
    ),
    coded(
        Cls::DV_ENCAPSULATED,
        Attr::LANGUAGE,
        "Language_valid",
        &groups::LANGUAGES,
    ),
    coded(
        Cls::DV_ENCAPSULATED,
        Attr::CHARSET,
        "Charset_valid",
        &groups::CHARACTER_SETS,
    ),
    coded(
        Cls::DV_MULTIMEDIA,
        Attr::MEDIA_TYPE,
        "Media_type_validity",
        &groups::MEDIA_TYPES,
    ),
    coded(
        Cls::DV_MULTIMEDIA,
        Attr::COMPRESSION_ALGORITHM,
        "Compression_algorithm_validity",
        &groups::COMPRESSION_ALGORITHMS,
    ),
    coded(
        Cls::DV_MULTIMEDIA,
        Attr::INTEGRITY_CHECK_ALGORITHM,
        "Integrity_check_algorithm_validity",
        &groups::INTEGRITY_CHECK_ALGORITHMS,
    ),
    coded(
        Cls::DV_ORDERED,
        Attr::NORMAL_STATUS,
        "Normal_status_validity",
        &groups::NORMAL_STATUSES,
    ),
    coded(
        Cls::TERM_MAPPING,
        Attr::PURPOSE,
        "Purpose_valid",
        &groups::TERM_MAPPING_PURPOSE,
    ),
    coded(
        Cls::ELEMENT,
        Attr::NULL_FLAVOUR,
        "Null_flavour_valid",
        &groups::NULL_FLAVOURS,
    ),
    coded(
        Cls::INTERVAL_EVENT,
        Attr::MATH_FUNCTION,
        "Math_function_validity",
        &groups::EVENT_MATH_FUNCTION,
    ),
    coded(
        Cls::ISM_TRANSITION,
        Attr::CURRENT_STATE,
        "Current_state_valid",
        &groups::INSTRUCTION_STATES,
    ),
    coded(
        Cls::ISM_TRANSITION,
        Attr::TRANSITION,
        "Transition_valid",
        &groups::INSTRUCTION_TRANSITIONS,
    ),
    coded(
        Cls::PARTICIPATION,
        Attr::FUNCTION,
        "Function_valid",
        &groups::PARTICIPATION_FUNCTION,
    ),
    coded(
        Cls::PARTICIPATION,
        Attr::MODE,
        "Mode_valid",
        &groups::PARTICIPATION_MODE,
    ),
    coded(
        Cls::PARTY_RELATED,
        Attr::RELATIONSHIP,
        "Relationship_valid",
        &groups::SUBJECT_RELATIONSHIP,
    ),
    coded(
        Cls::AUDIT_DETAILS,
        Attr::CHANGE_TYPE,
        "Change_type_valid",
        &groups::AUDIT_CHANGE_TYPE,
    ),
    coded(
        Cls::ATTESTATION,
        Attr::REASON,
        "Reason_valid",
        &groups::ATTESTATION_REASON,
    ),
    coded(
        Cls::VERSION,
        Attr::LIFECYCLE_STATE,
        "Lifecycle_state_valid",
        &groups::VERSION_LIFECYCLE_STATE,
    ),
];
