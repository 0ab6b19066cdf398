//! The attributes of the classes that occur in random paths.

pub(super) type Behind = (&'static str, &'static [&'static str]);

pub(super) const LEAF: &str = "";
pub(super) const NODE: [Behind; 5] = [
    ("name", &["DV_TEXT"]),
    ("archetype_node_id", &[LEAF]),
    ("uid", &["OBJECT_ID"]),
    ("links", &["LINK"]),
    ("feeder_audit", &["FEEDER_AUDIT"]),
];
pub(super) const ENTRIES: [&str; 3] = ["SECTION", "OBSERVATION", "EVALUATION"];

/// The attributes of classes through which a path may continue. All VERSIONED classes have those of
/// VERSIONED_OBJECT.
const CONTINUATIONS: [(&str, &[Behind]); 36] = [
    (
        "EHR",
        &[
            ("ehr_id", &["OBJECT_ID"]),
            ("ehr_status", &["EHR_STATUS"]),
            ("time_created", &["DV_DATE_TIME"]),
            ("compositions", &["OBJECT_REF"]),
            ("contributions", &["OBJECT_REF"]),
            ("directory", &["OBJECT_REF"]),
            ("folders", &["OBJECT_REF"]),
        ],
    ),
    (
        "VERSIONED_OBJECT",
        &[
            ("uid", &["OBJECT_ID"]),
            ("owner_id", &["OBJECT_REF"]),
            ("time_created", &["DV_DATE_TIME"]),
        ],
    ),
    ("EHR_STATUS", &[("other_details", &["ITEM_TREE"])]),
    (
        "VERSION",
        &[
            ("uid", &["OBJECT_ID"]),
            ("lifecycle_state", &["DV_CODED_TEXT"]),
            ("commit_audit", &["AUDIT_DETAILS"]),
            ("data", &["COMPOSITION"]),
            ("preceding_version_uid", &["OBJECT_ID"]),
            ("contribution", &["OBJECT_REF"]),
        ],
    ),
    (
        "AUDIT_DETAILS",
        &[
            ("time_committed", &["DV_DATE_TIME"]),
            ("change_type", &["DV_CODED_TEXT"]),
        ],
    ),
    (
        "COMPOSITION",
        &[
            ("content", &ENTRIES),
            ("content", &ENTRIES),
            ("context", &["EVENT_CONTEXT"]),
            ("category", &["DV_CODED_TEXT"]),
        ],
    ),
    (
        "FOLDER",
        &[
            ("folders", &["FOLDER"]),
            ("items", &["OBJECT_REF"]),
            ("details", &["ITEM_TREE"]),
        ],
    ),
    ("SECTION", &[("items", &ENTRIES)]),
    (
        "OBSERVATION",
        &[
            ("data", &["HISTORY"]),
            ("data", &["HISTORY"]),
            ("protocol", &["ITEM_TREE"]),
        ],
    ),
    (
        "EVALUATION",
        &[("data", &["ITEM_TREE"]), ("protocol", &["ITEM_TREE"])],
    ),
    (
        "CARE_ENTRY",
        &[
            ("data", &["HISTORY", "ITEM_TREE"]),
            ("protocol", &["ITEM_TREE"]),
        ],
    ),
    (
        "ENTRY",
        &[
            ("data", &["HISTORY", "ITEM_TREE"]),
            ("protocol", &["ITEM_TREE"]),
        ],
    ),
    ("HISTORY", &[("events", &["EVENT"])]),
    (
        "EVENT",
        &[
            ("time", &["DV_DATE_TIME"]),
            ("data", &["ITEM_TREE"]),
            ("data", &["ITEM_TREE"]),
        ],
    ),
    (
        "POINT_EVENT",
        &[
            ("time", &["DV_DATE_TIME"]),
            ("data", &["ITEM_TREE"]),
            ("data", &["ITEM_TREE"]),
        ],
    ),
    (
        "INTERVAL_EVENT",
        &[
            ("time", &["DV_DATE_TIME"]),
            ("data", &["ITEM_TREE"]),
            ("width", &["DV_DURATION"]),
        ],
    ),
    (
        "ITEM_TREE",
        &[("items", &["ELEMENT", "ELEMENT", "CLUSTER"])],
    ),
    (
        "ITEM_STRUCTURE",
        &[("items", &["ELEMENT", "ELEMENT", "CLUSTER"])],
    ),
    ("CLUSTER", &[("items", &["ELEMENT", "ELEMENT", "CLUSTER"])]),
    (
        "ELEMENT",
        &[
            ("value", &["DATA_VALUE"]),
            ("value", &["DATA_VALUE"]),
            ("value", &["DATA_VALUE"]),
            ("null_flavour", &["DV_CODED_TEXT"]),
        ],
    ),
    (
        "DATA_VALUE",
        &[
            ("magnitude", &[LEAF]),
            ("magnitude", &[LEAF]),
            ("value", &[LEAF]),
            ("value", &[LEAF]),
            ("units", &[LEAF]),
            ("defining_code", &["CODE_PHRASE"]),
            ("symbol", &["DV_CODED_TEXT"]),
        ],
    ),
    ("DV_QUANTITY", &[("magnitude", &[LEAF]), ("units", &[LEAF])]),
    (
        "DV_CODED_TEXT",
        &[("value", &[LEAF]), ("defining_code", &["CODE_PHRASE"])],
    ),
    ("DV_TEXT", &[("value", &[LEAF])]),
    ("DV_DATE_TIME", &[("value", &[LEAF])]),
    ("DV_DURATION", &[("value", &[LEAF])]),
    ("OBJECT_ID", &[("value", &[LEAF])]),
    (
        "CODE_PHRASE",
        &[("code_string", &[LEAF]), ("terminology_id", &["OBJECT_ID"])],
    ),
    (
        "EVENT_CONTEXT",
        &[
            ("start_time", &["DV_DATE_TIME"]),
            ("participations", &["PARTICIPATION"]),
        ],
    ),
    (
        "PARTICIPATION",
        &[
            ("performer", &["PARTY_IDENTIFIED"]),
            ("function", &["DV_TEXT"]),
        ],
    ),
    (
        "PARTY_IDENTIFIED",
        &[("name", &[LEAF]), ("identifiers", &["DV_IDENTIFIER"])],
    ),
    ("DV_IDENTIFIER", &[("id", &[LEAF])]),
    (
        "LINK",
        &[("meaning", &["DV_TEXT"]), ("target", &["OBJECT_ID"])],
    ),
    (
        "FEEDER_AUDIT",
        &[("originating_system_audit", &["FEEDER_AUDIT_DETAILS"])],
    ),
    ("FEEDER_AUDIT_DETAILS", &[("system_id", &[LEAF])]),
    ("OBJECT_REF", &[("id", &["OBJECT_ID"]), ("type", &[LEAF])]),
];

/// Returns the attributes of a class through which a path may continue.
pub(super) fn ways(class: &str) -> Vec<Behind> {
    let named = match class.starts_with("VERSIONED_") {
        true => "VERSIONED_OBJECT",
        false => class,
    };
    let own = CONTINUATIONS.iter().find(|(name, _)| *name == named);
    let mut all = own.map_or_else(Vec::new, |(_, attributes)| attributes.to_vec());
    if is_node(class) {
        all.extend(NODE);
    }
    all
}

pub(super) fn is_node(class: &str) -> bool {
    const NODES: [&str; 19] = [
        "COMPOSITION",
        "FOLDER",
        "EHR_STATUS",
        "SECTION",
        "OBSERVATION",
        "EVALUATION",
        "CARE_ENTRY",
        "ENTRY",
        "CONTENT_ITEM",
        "HISTORY",
        "EVENT",
        "POINT_EVENT",
        "INTERVAL_EVENT",
        "ITEM_TREE",
        "ITEM_STRUCTURE",
        "CLUSTER",
        "ELEMENT",
        "ITEM",
        "LOCATABLE",
    ];
    NODES.contains(&class)
}
