//! The definitions of an export, in pages that are bounded by bytes.

use super::super::Service;
use super::record::{KINDS, PAGE_BYTES, add_record, definition_record};
use crate::service::call::Call;
use crate::service::error::Failure;
use crate::store::in_lists;
use crate::store::repository::{Definition, Repository};

/// The position that a page of an export follows: `after` of its request.
#[derive(Clone, Copy)]
pub(super) enum After<'a> {
    /// The first page.
    Nothing,
    Definition(Position<'a>),
    /// The uid of a contribution.
    Contribution(&'a str),
}

/// The last definition of a page: `kind/name/version`. A name may contain slashes.
#[derive(Clone, Copy)]
pub(super) struct Position<'a> {
    /// An index into [`KINDS`].
    kind: usize,
    name: &'a str,
    version: &'a str,
}

impl<'a> After<'a> {
    /// Reads `after`.
    ///
    /// # Errors
    /// 400 for a definition of an unknown kind.
    pub(super) fn read(after: Option<&'a str>) -> Result<After<'a>, Failure> {
        let Some(after) = after else {
            return Ok(After::Nothing);
        };
        // No uid of a contribution has a slash.
        let Some((word, definition)) = after.split_once('/') else {
            return Ok(After::Contribution(after));
        };
        let kind = KINDS.iter().position(|(known, _)| *known == word);
        // The last slash separates the version, because a name may have slashes too.
        let position = kind.zip(definition.rsplit_once('/'));
        let (kind, (name, version)) = position.ok_or_else(|| {
            Failure::bad_request(
                "`after` names no record: expected the uid of a contribution, or `kind/name/version` of a definition",
            )
        })?;
        Ok(After::Definition(Position {
            kind,
            name,
            version,
        }))
    }
}

impl<'a> After<'a> {
    /// Returns the position among the definitions; `None` for the first page too.
    pub(super) fn definition(self) -> Option<Position<'a>> {
        match self {
            After::Definition(position) => Some(position),
            After::Nothing | After::Contribution(_) => None,
        }
    }

    /// Returns the uid of the last contribution of the previous page.
    pub(super) fn contribution(self) -> Option<&'a str> {
        match self {
            After::Contribution(uid) => Some(uid),
            After::Nothing | After::Definition(_) => None,
        }
    }
}

impl Position<'_> {
    /// Returns whether a definition of the kind with this index follows. The definition of the
    /// position itself may have been removed meanwhile.
    fn precedes(&self, kind: usize, definition: &Definition) -> bool {
        let order = in_lists(
            (self.name, self.version),
            (&definition.name, &definition.version),
        );
        self.kind < kind || (self.kind == kind && order.is_lt())
    }
}

impl<R: Repository> Service<R> {
    /// Appends the definitions behind a position to a page, as far as they fit, and at least one.
    /// Returns whether no definition follows.
    ///
    /// The caller has room for [`PAGE_BYTES`].
    pub(super) async fn export_definitions(
        &self,
        call: &Call<'_>,
        after: Option<Position<'_>>,
        out: &mut String,
    ) -> Result<bool, Failure> {
        for (index, (word, kind)) in KINDS.into_iter().enumerate() {
            let listed = self.repository.definitions(kind, "").await;
            for listed in listed.map_err(Failure::of_store)? {
                if after.is_some_and(|after| !after.precedes(index, &listed)) {
                    continue;
                }
                // The first record of a page may be larger than a page, so that an export always
                // advances.
                if !out.is_empty() && out.len().saturating_add(listed.bytes) > PAGE_BYTES {
                    return Ok(false);
                }
                let found = self.definition(kind, &listed.name, &listed.version);
                // The definition may have been removed after the list was read.
                if let Some(found) = found.await? {
                    add_record(out, &definition_record(word, &found));
                    call.pause().await;
                }
            }
        }
        Ok(true)
    }
}
