//! The code groups and code sets that the Reference Model names.
//!
//! Source of the codes: openEHR terminology 3.1.0 and its external code sets (© openEHR Foundation,
//! specifications-TERM, CC BY-SA 3.0). Rubrics are translated, so validation checks codes and
//! ignores rubrics. The English rubrics are used in examples. A code may be in several groups: 532
//! means "complete" for a version and "completed" for an instruction.

use crate::order;
use std::sync::LazyLock;

/// A group of the openEHR terminology, or an external code set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CodeGroup {
    /// The identifier, such as `composition_category`.
    pub name: &'static str,
    /// The `terminology_id` of the codes.
    pub terminology: &'static str,
    codes: &'static str,
}

impl CodeGroup {
    /// Returns whether the code belongs to the group. Code sets ignore case, which varies between
    /// senders.
    pub fn contains(&self, code: &str) -> bool {
        match code_key(code).filter(|_| self.codes.len() > MAX_SEARCHED) {
            Some(key) => self
                .sorted_keys()
                .is_some_and(|keys| keys.binary_search(&key).is_ok()),
            None => self.codes().any(|c| c.eq_ignore_ascii_case(code)),
        }
    }

    /// Returns whether this is an external code set rather than a group of the openEHR terminology.
    pub fn is_code_set(&self) -> bool {
        self.terminology != OPENEHR
    }

    /// Returns whether a `terminology_id` names the terminology of the codes. Ignores case and a
    /// version in parentheses: `openehr(3.1.0)`.
    ///
    /// A code set is also named by `openehr`, by its identifier, and by usual spellings of its
    /// issuer.
    pub fn is_named(&self, terminology: &str) -> bool {
        let (name, _) = name_and_version(terminology);
        let is_same = |known: &str| known.eq_ignore_ascii_case(name);
        let is_alias = || {
            let mut sets = ALIASES.iter();
            sets.find(|(set, _)| *set == self)
                .is_some_and(|(_, names)| names.iter().any(|known| is_same(known)))
        };
        is_same(self.terminology)
            || (self.is_code_set() && (is_same(OPENEHR) || is_same(self.name) || is_alias()))
    }

    /// Returns the ascending keys of the codes of a group with many codes.
    fn sorted_keys(&self) -> Option<&'static [u128]> {
        let mut groups = SORTED_KEYS.iter();
        let (_, keys) = groups.find(|(name, _)| *name == self.name)?;
        Some(keys)
    }

    /// Returns the codes in the order of the terminology.
    pub fn codes(&self) -> impl Iterator<Item = &'static str> {
        self.codes.split_ascii_whitespace()
    }

    /// Returns the group with this identifier.
    pub fn by_name(name: &str) -> Option<&'static CodeGroup> {
        GROUPS.iter().copied().find(|g| g.name == name)
    }

    /// Returns the external code set with this `terminology_id`, ignoring case. The groups of
    /// openEHR share one id and are not returned.
    pub fn by_terminology_id(terminology: &str) -> Option<&'static CodeGroup> {
        let own = terminology.eq_ignore_ascii_case("openehr");
        GROUPS
            .iter()
            .copied()
            .find(|g| !own && g.terminology.eq_ignore_ascii_case(terminology))
    }
}

/// The `terminology_id` of the openEHR terminology.
const OPENEHR: &str = "openehr";

/// Bytes of the codes of a group up to which a search compares all of them.
///
/// Each document names a language and a territory, often several times: comparing 250 codes took a
/// tenth of the time of its validation.
const MAX_SEARCHED: usize = 200;

/// The keys of the codes of each group with many codes, ascending, by the name of the group.
static SORTED_KEYS: LazyLock<Vec<(&'static str, Vec<u128>)>> = LazyLock::new(|| {
    let has_many = |group: &&&CodeGroup| group.codes.len() > MAX_SEARCHED;
    let groups = GROUPS.iter().filter(has_many);
    let sorted = |group: &&'static CodeGroup| {
        let mut keys: Vec<u128> = group.codes().filter_map(code_key).collect();
        order::sort(&mut keys);
        (group.name, keys)
    };
    groups.map(sorted).collect()
});

/// Returns the key of a code: its bytes in lower case and its length. Equal keys belong to codes
/// that differ in case only. A code of more than 15 bytes has no key.
fn code_key(code: &str) -> Option<u128> {
    let mut key = [0; size_of::<u128>()];
    let (length, bytes) = key.split_last_mut()?;
    // Without the length, a code with a zero byte at its end would have the key of another one.
    *length = u8::try_from(code.len()).ok()?;
    bytes
        .get_mut(..code.len())?
        .copy_from_slice(code.as_bytes());
    bytes.make_ascii_lowercase();
    Some(u128::from_be_bytes(key))
}

/// Compression algorithms of multimedia data.
pub static COMPRESSION_ALGORITHMS: CodeGroup = CodeGroup {
    name: "compression_algorithms",
    terminology: "openehr_compression_algorithms",
    codes: "compress deflate gzip zlib other",
};

/// Hash functions of multimedia data.
pub static INTEGRITY_CHECK_ALGORITHMS: CodeGroup = CodeGroup {
    name: "integrity_check_algorithms",
    terminology: "openehr_integrity_check_algorithms",
    codes: "SHA-1 SHA-224 SHA-256 SHA-384 SHA-512 SHA-512/224 SHA-512/256",
};

/// Normal statuses: positions of a value relative to the normal range.
pub static NORMAL_STATUSES: CodeGroup = CodeGroup {
    name: "normal_statuses",
    terminology: "openehr_normal_statuses",
    codes: "HHH HH H N L LL LLL",
};

/// Reasons of an attestation.
pub static ATTESTATION_REASON: CodeGroup = CodeGroup {
    name: "attestation_reason",
    terminology: "openehr",
    codes: "240 648",
};

/// Change types of an audit.
pub static AUDIT_CHANGE_TYPE: CodeGroup = CodeGroup {
    name: "audit_change_type",
    terminology: "openehr",
    codes: "249 250 251 252 523 666 816 817 253",
};

/// Kinds of composition.
pub static COMPOSITION_CATEGORY: CodeGroup = CodeGroup {
    name: "composition_category",
    terminology: "openehr",
    codes: "431 451 433 815",
};

/// States of a version.
pub static VERSION_LIFECYCLE_STATE: CodeGroup = CodeGroup {
    name: "version_lifecycle_state",
    terminology: "openehr",
    codes: "532 553 523 800 801",
};

/// Functions of a participation that openEHR codes.
pub static PARTICIPATION_FUNCTION: CodeGroup = CodeGroup {
    name: "participation_function",
    terminology: "openehr",
    codes: "253",
};

/// Null flavours: reasons of a missing value.
pub static NULL_FLAVOURS: CodeGroup = CodeGroup {
    name: "null_flavours",
    terminology: "openehr",
    codes: "271 253 272 273",
};

/// Modes of participation.
pub static PARTICIPATION_MODE: CodeGroup = CodeGroup {
    name: "participation_mode",
    terminology: "openehr",
    codes: "193 216 223 217 195 198 197 218 224 194 196 202 204 203 205 222 199 200 201 212 213 214 215 206 211 210 207 208 221 209 \
        219 220",
};

/// States of the instruction state machine.
pub static INSTRUCTION_STATES: CodeGroup = CodeGroup {
    name: "instruction_states",
    terminology: "openehr",
    codes: "524 526 527 528 529 245 530 531 532 533",
};

/// Transitions of the instruction state machine.
pub static INSTRUCTION_TRANSITIONS: CodeGroup = CodeGroup {
    name: "instruction_transitions",
    terminology: "openehr",
    codes: "535 536 537 538 166 542 539 534 540 541 543 544 545 546 547 548 549 550 551 552",
};

/// Relationships to the subject of the record.
pub static SUBJECT_RELATIONSHIP: CodeGroup = CodeGroup {
    name: "subject_relationship",
    terminology: "openehr",
    codes: "0 3 10 9 6 253 261 260 259 258 256 255 23 28 265 257 29 264 39 8 7 38 189 254 22 41 36 37 40 27 24 31 263 262 25 26",
};

/// Purposes of a term mapping.
pub static TERM_MAPPING_PURPOSE: CodeGroup = CodeGroup {
    name: "term_mapping_purpose",
    terminology: "openehr",
    codes: "669 670 671",
};

/// Mathematical functions of an interval event.
pub static EVENT_MATH_FUNCTION: CodeGroup = CodeGroup {
    name: "event_math_function",
    terminology: "openehr",
    codes: "145 144 267 268 146 147 148 149 521 522 640",
};

/// Settings of care.
pub static SETTING: CodeGroup = CodeGroup {
    name: "setting",
    terminology: "openehr",
    codes: "225 227 228 229 230 231 232 233 234 235 236 237 802 238",
};

/// Countries: ISO 3166-1 alpha-2.
pub static COUNTRIES: CodeGroup = CodeGroup {
    name: "countries",
    terminology: "ISO_3166-1",
    codes: "AF AX AL DZ AS AD AO AI AQ AG AR AM AW AU AT AZ BS BH BD BB BY BE BZ BJ BM BT BO BQ BA BW BV BR IO BN BG BF BI KH CM CA \
        CV KY CF TD CL CN CX CC CO KM CG CD CK CR CI HR CU CW CY CZ DK DJ DM DO EC EG SV GQ ER EE SZ ET FK FO FJ FI FR GF PF TF \
        GA GM GE DE GH GI GR GL GD GP GU GT GG GN GW GY HT HM VA HN HK HU IS IN ID IR IQ IE IM IL IT JM JP JE JO KZ KE KI KP KR \
        KW KG LA LV LB LS LR LY LI LT LU MO MG MW MY MV ML MT MH MQ MR MU YT MX FM MD MC MN ME MS MA MZ MM NA NR NP NL AN NC NZ \
        NI NE NG NU NF MK MP NO OM PK PW PS PA PG PY PE PH PN PL PT PR QA RE RO RU RW BL SH KN LC MF PM VC WS SM ST SA SN RS SC \
        SL SG SX SK SI SB SO ZA GS SS ES LK SD SR SJ SE CH SY TW TJ TZ TH TL TG TK TO TT TN TR TM TC TV UG UA AE GB US UM UY UZ \
        VU VE VN VG VI WF EH YE ZM ZW",
};

/// IANA character sets.
pub static CHARACTER_SETS: CodeGroup = CodeGroup {
    name: "character_sets",
    terminology: "IANA_character-sets",
    codes: "ISO-10646-UTF-1 ISO_8859-1:1987 ISO-8859-2 ISO_8859-3:1988 ISO-8859-15 US-ASCII UTF-7 UTF-8 UTF-16 UTF-16BE UTF-16LE \
        UTF-32 UTF-32BE UTF-32LE",
};

/// Languages: ISO 639-1, with regions.
pub static LANGUAGES: CodeGroup = CodeGroup {
    name: "languages",
    terminology: "ISO_639-1",
    codes: "aa af ak sq am ar ar-sa ar-iq ar-eg ar-ly ar-dz ar-ma ar-tn ar-om ar-ye ar-sy ar-jo ar-lb ar-kw ar-ae ar-bh ar-qa an hy \
        as av ay az bm ba eu be bn bi bs br bg my ca ch ce ny zh zh-tw zh-cn zh-hk zh-sg zh-mo cv kw co cr hr hr-ba cs da dv nl \
        nl-be dz en en-us en-gb en-au en-ca en-nz en-ie en-za en-jm en-cb en-bz en-tt en-ph en-zw eo et ee fo fj fi fr fr-be \
        fr-ca fr-ch fr-lu fr-mc fy ff gd gd-ie gl lg ka de de-ch de-at de-lu de-li el kl gn gu ht ha he hz hi ho hu is ig id iu \
        ik ga it it-ch ja jv kn kr ks kk km ki rw ky kv kg ko kj ku lo la lv li ln lt lu lb mk mg ms ml mt gv mi mr mh mn na nv \
        nd nr ng ne nb nn ii oc oj or om os ps fa pl pt pt-br pt-pt pa qu qu-bo qu-ec qu-pe ro ro-mo rm rn ru ru-mo se sz sm sg \
        sc sr sr-ba sb sn sd si sk sl so st es es-mx es-gt es-cr es-pa es-do es-ve es-co es-pe es-ar es-ec es-cl es-uy es-py \
        es-bo es-sv es-hn es-ni es-pr su sx sw ss sv sv-fi tl ty tg ta tt te th bo ti to ts tn tr tk tw ug uk ur uz ve vi wa cy \
        cy-gb cy-ar wo xh yi ji yo za zu",
};

/// IANA media types.
pub static MEDIA_TYPES: CodeGroup = CodeGroup {
    name: "media_types",
    terminology: "IANA_media-types",
    codes: "audio/DVI4 audio/G722 audio/G723 audio/G726-16 audio/G726-24 audio/G726-32 audio/G726-40 audio/G728 audio/L8 audio/L16 \
        audio/LPC audio/G729 audio/G729D audio/G729E video/BT656 video/CelB video/JPEG video/H261 video/H263 video/H263-1998 \
        video/H263-2000 video/H264 video/MPV video/mp4 video/ogg video/mpeg audio/basic audio/mpeg audio/mpeg3 \
        audio/mpeg4-generic audio/mp4 audio/L20 audio/L24 audio/telephone-event audio/ogg audio/vorbis video/quicktime \
        text/calendar text/directory text/html text/plain text/richtext text/rtf text/rfc822-headers text/sgml \
        text/tab-separated-values text/uri-list text/xml text/xml-external-parsed-entity image/avif image/bmp image/cgm \
        image/gif image/png image/tiff image/jpeg image/jp2 image/svg+xml image/dicom-rle image/jls model/mtl model/obj \
        model/stl application/cda+xml application/EDIFACT application/fhir+json application/fhir+xml application/hl7v2+xml \
        application/gzip application/json application/msword application/pdf application/rtf application/dicom \
        application/dicom+json application/dicom+xml application/octet-stream application/ogg \
        application/vnd.oasis.opendocument.base application/vnd.oasis.opendocument.chart \
        application/vnd.oasis.opendocument.chart-template application/vnd.oasis.opendocument.formula \
        application/vnd.oasis.opendocument.formula-template application/vnd.oasis.opendocument.graphics \
        application/vnd.oasis.opendocument.graphics-template application/vnd.oasis.opendocument.image \
        application/vnd.oasis.opendocument.image-template application/vnd.oasis.opendocument.presentation \
        application/vnd.oasis.opendocument.presentation-template application/vnd.oasis.opendocument.spreadsheet \
        application/vnd.oasis.opendocument.spreadsheet-template application/vnd.oasis.opendocument.text \
        application/vnd.oasis.opendocument.text-master application/vnd.oasis.opendocument.text-template \
        application/vnd.oasis.opendocument.text-web application/vnd.ms-word.document.macroEnabled.12 \
        application/vnd.openxmlformats-officedocument.wordprocessingml.document \
        application/vnd.ms-word.template.macroEnabled.12 \
        application/vnd.openxmlformats-officedocument.wordprocessingml.template \
        application/vnd.ms-powerpoint.slideshow.macroEnabled.12 \
        application/vnd.openxmlformats-officedocument.presentationml.slideshow \
        application/vnd.ms-powerpoint.presentation.macroEnabled.12 \
        application/vnd.openxmlformats-officedocument.presentationml.presentation \
        application/vnd.ms-excel.sheet.binary.macroEnabled.12 application/vnd.ms-excel.sheet.macroEnabled.12 \
        application/vnd.openxmlformats-officedocument.spreadsheetml.sheet application/vnd.ms-xpsdocument \
        application/vnd.ms-excel application/vnd.ms-outlook application/vnd.ms-powerpoint application/vnd.rar application/zip",
};

static GROUPS: [&CodeGroup; 20] = [
    &COMPRESSION_ALGORITHMS,
    &INTEGRITY_CHECK_ALGORITHMS,
    &NORMAL_STATUSES,
    &ATTESTATION_REASON,
    &AUDIT_CHANGE_TYPE,
    &COMPOSITION_CATEGORY,
    &VERSION_LIFECYCLE_STATE,
    &PARTICIPATION_FUNCTION,
    &NULL_FLAVOURS,
    &PARTICIPATION_MODE,
    &INSTRUCTION_STATES,
    &INSTRUCTION_TRANSITIONS,
    &SUBJECT_RELATIONSHIP,
    &TERM_MAPPING_PURPOSE,
    &EVENT_MATH_FUNCTION,
    &SETTING,
    &COUNTRIES,
    &CHARACTER_SETS,
    &LANGUAGES,
    &MEDIA_TYPES,
];

/// The names of code sets in the data of other systems, besides `openehr` and the identifiers that
/// openEHR defines. Matching ignores case.
static ALIASES: [(&CodeGroup, &[&str]); 4] = [
    (
        &LANGUAGES,
        &[
            "ISO639-1",
            "ISO 639-1",
            "ISO-639-1",
            "ISO_639",
            "BCP47",
            "BCP-47",
        ],
    ),
    (
        &COUNTRIES,
        &["ISO3166-1", "ISO 3166-1", "ISO-3166-1", "ISO_3166"],
    ),
    (
        &CHARACTER_SETS,
        &["IANA", "IANA_charset", "IANA_character_sets", "Unicode"],
    ),
    (&MEDIA_TYPES, &["IANA", "IANA_media_types"]),
];

/// Splits a `terminology_id` into its name and its version: `name[(version)]` (RM, Base Types,
/// TERMINOLOGY_ID).
pub fn name_and_version(terminology: &str) -> (&str, Option<&str>) {
    match terminology.split_once('(') {
        Some((name, version)) => (name.trim_end(), Some(version.trim_end_matches(')'))),
        None => (terminology, None),
    }
}

/// Returns whether two `terminology_id` name one terminology. Ignores case. Versions count only if
/// both have one.
pub fn is_same_terminology(a: &str, b: &str) -> bool {
    let ((a, a_version), (b, b_version)) = (name_and_version(a), name_and_version(b));
    let versions = a_version.zip(b_version);
    a.eq_ignore_ascii_case(b) && versions.is_none_or(|(a, b)| a == b)
}

/// Returns the English rubric of a common code.
///
/// It covers categories, settings, null flavours, states and transitions, functions of events, and
/// relationships. Code 532 has the rubric of an instruction state.
pub fn rubric(code: &str) -> Option<&'static str> {
    RUBRICS
        // The blank prevents that `25` finds the entry of `253`.
        .split('|')
        .find_map(|entry| entry.strip_prefix(code)?.strip_prefix(' '))
}

/// Returns the code of a group that has this English rubric, ignoring case.
///
/// Without one, it is the first code whose rubric lists the text between semicolons: `letter`.
pub fn code_of(group: &CodeGroup, text: &str) -> Option<&'static str> {
    // A text of digits is a code. No rubric consists of digits.
    if text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let is_same = |rubric: &str| rubric.eq_ignore_ascii_case(text);
    let has_rubric = |code: &&str| rubric(code).is_some_and(is_same);
    let lists_text = |code: &&str| rubric(code).is_some_and(|r| r.split("; ").any(is_same));
    let listed = || group.codes().find(lists_text);
    group.codes().find(has_rubric).or_else(listed)
}

static RUBRICS: &str = "253 unknown|431 persistent|451 episodic|433 event|815 report|532 completed|271 no information|272 masked|273 not applicable|\
     219 physically present|524 initial|526 planned|527 postponed|528 cancelled|529 scheduled|245 active|530 suspended|531 aborted|\
     533 expired|535 initiate|536 plan step|537 postpone|538 restore|166 cancel|542 postponed step|539 schedule|534 scheduled step|\
     540 start|541 do|543 active step|544 suspend|545 suspended step|546 resume|547 abort|548 finish|549 time out|550 notify aborted|\
     551 notify completed|552 notify cancelled|0 self|3 foetus|10 mother|9 father|6 donor|261 adopted daughter|260 adopted son|\
     259 adoptive father|258 adoptive mother|256 biological father|255 biological mother|23 brother|28 child|265 cohabitee|\
     257 cousin|29 daughter|264 guardian|39 maternal aunt|8 maternal grandfather|7 maternal grandmother|38 maternal uncle|\
     189 neonate|254 parent|22 partner/spouse|41 paternal aunt|36 paternal grandfather|37 paternal grandmother|40 paternal uncle|\
     27 sibling|24 sister|31 son|263 step father|262 step mother|25 step or half brother|26 step or half sister|669 public health|\
     670 reimbursement|671 research study|145 minimum|144 maximum|267 mode|268 median|146 mean|147 change|148 total|149 variation|\
     521 decrease|522 increase|640 actual|225 home|227 emergency care|228 primary medical care|229 primary nursing care|\
     230 primary allied health care|231 midwifery care|232 secondary medical care|233 secondary nursing care|\
     234 secondary allied health care|235 complementary health care|236 dental care|237 nursing home care|802 mental healthcare|\
     238 other care|193 not specified|216 face-to-face communication|223 interpreted face-to-face communication|\
     217 signing (face-to-face)|195 live audiovisual; videoconference; videophone|198 videoconferencing|197 videophone|\
     218 signing over video|224 interpreted video communication|194 asynchronous audiovisual; recorded video|196 recorded video|\
     202 live audio-only; telephone; internet phone; teleconference|204 telephone|203 teleconference|205 internet telephone|\
     222 interpreted audio-only|199 asynchronous audio-only; dictated; voice mail|200 dictated|201 voice-mail|\
     212 live text-only; internet chat; SMS chat; interactive written note|213 internet chat|214 SMS chat|\
     215 interactive written note|206 asynchronous text; email; fax; letter; handwritten note; SMS message|\
     211 handwritten note|210 printed/typed letter|207 email|208 facsimile/telefax|221 translated text|209 SMS message|\
     220 physically remote";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_codes_belong_to_each_of_their_groups() {
        assert!(VERSION_LIFECYCLE_STATE.contains("532") && INSTRUCTION_STATES.contains("532"));
        assert!(!COMPOSITION_CATEGORY.contains("532") && !SETTING.contains(""));
        assert_eq!(
            (rubric("433"), rubric("245"), rubric("x")),
            (Some("event"), Some("active"), None)
        );
        assert_eq!(
            CodeGroup::by_name("languages").map(|g| (
                g.terminology,
                g.contains("en-gb"),
                g.contains("xx")
            )),
            Some(("ISO_639-1", true, false))
        );
        assert_eq!(
            GROUPS.iter().map(|g| g.codes().count()).sum::<usize>(),
            TOTAL
        );
    }

    #[test]
    fn codes_are_found_by_a_rubric_or_an_item_of_it() {
        for (text, code) in [
            ("Videophone", Some("197")),
            ("videoconference", Some("195")),
            ("letter", Some("206")),
            ("physically present", Some("219")),
            ("audiovisual", None),
            ("219", None),
            ("", None),
        ] {
            assert_eq!(code_of(&PARTICIPATION_MODE, text), code, "{text}");
        }
    }

    #[test]
    fn search_in_many_codes_equals_comparison_with_each() {
        let codes = || GROUPS.iter().flat_map(|group| group.codes());
        let others = [
            "",
            "xx",
            "en\0",
            "e",
            "en-gbx",
            "é",
            "SE ",
            "a code of more than fifteen bytes",
        ];
        for group in GROUPS {
            for code in codes().chain(others) {
                for code in [code.to_owned(), code.to_uppercase(), code.to_lowercase()] {
                    let compared = group.codes().any(|c| c.eq_ignore_ascii_case(&code));
                    assert_eq!(group.contains(&code), compared, "{} {code:?}", group.name);
                }
            }
        }
    }

    /// The number of codes in the published files.
    const TOTAL: usize = 799;
}
