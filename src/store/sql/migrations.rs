//! The migrations of the databases as text, for hosts that apply them themselves. wrangler reads
//! the same files for D1.

/// The migrations of a database in their order: the name of the file, and its text.
pub type Migrations = &'static [(&'static str, &'static str)];

macro_rules! migrations {
    ($folder:literal: $($name:literal),* $(,)?) => {
        &[$((
            $name,
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/", $folder, "/", $name)),
        )),*]
    };
}

/// The tables of the documents.
pub const MIGRATIONS: Migrations = migrations!("migrations":
    "0001_initial.sql",
    "0020_access_log.sql",
    "0030_item_tag.sql",
    "0040_contribution_digest.sql",
    "0050_version_rules.sql",
    "0060_removal_and_log.sql",
    "0070_snapshot.sql",
    "0080_ids.sql",
    "0090_segments.sql",
    "0100_definition_bytes.sql",
    "0110_ehr_segments.sql",
    "0120_queryable_changes.sql",
    "0130_first_versions.sql",
    "0140_kept_properties.sql",
    "0150_template_of_all_kinds.sql",
);

/// The tables of the access log.
pub const LOG_MIGRATIONS: Migrations = migrations!("migrations-log": "0001_access_log.sql");
