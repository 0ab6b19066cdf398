//! The states of a database that an instance has seen, and whether they are still its past.
//!
//! An operator can restore a database to an earlier state while instances run, as Time Travel of D1
//! does. Later writes then assign ids again that instances know with another meaning. So the
//! statements that teach ids, and those that use them for a commit, also test whether the newest
//! CONTRIBUTION that the instance has seen exists. If not, the instance forgets everything and reads
//! it again. A physical deletion of this CONTRIBUTION has the same effect, which costs a few reads.

use super::value::Fields;
use crate::store::repository::StoreError;

/// Whether the CONTRIBUTION with the uid of a parameter exists, if it has one.
macro_rules! continues {
    ($seen:literal) => {
        concat!(
            "(",
            $seen,
            " IS NULL OR EXISTS (SELECT 1 FROM contribution WHERE uid = ",
            $seen,
            "))"
        )
    };
}
pub(super) use continues;

/// The columns that [`Seen::of`] reads. `$seen` is the parameter of the newest CONTRIBUTION that the
/// instance has seen.
macro_rules! lineage {
    ($seen:literal) => {
        concat!(
            super::lineage::continues!($seen),
            " AS continues, (SELECT uid FROM contribution WHERE id = (SELECT max(id) FROM contribution)) AS newest,
      (SELECT value FROM meta WHERE name = 'revision') AS revision"
        )
    };
}
pub(super) use lineage;

/// A state of the database, as a statement has read it.
pub(super) struct Seen {
    continues: bool,
    newest: Option<String>,
    revision: u64,
}

impl Seen {
    /// Reads the columns of [`lineage`].
    pub fn of(fields: &mut Fields) -> Result<Seen, StoreError> {
        Ok(Seen {
            continues: fields.flag()?,
            newest: fields.optional_text()?,
            revision: fields.number()?,
        })
    }

    /// Creates the state that a commit has made, with the uid of its last CONTRIBUTION.
    pub fn committed(uid: &str, revision: u64) -> Seen {
        Seen {
            continues: true,
            newest: Some(uid.to_owned()),
            revision,
        }
    }
}

/// The newest state that an instance has seen.
#[derive(Default)]
pub(super) struct NewestSeenState {
    /// The uid of its newest CONTRIBUTION.
    newest: Option<String>,
    revision: u64,
    /// The number of times that the instance has found another past.
    breaks: u64,
}

impl NewestSeenState {
    /// Returns the uid of the newest CONTRIBUTION that was seen.
    pub fn newest(&self) -> Option<&str> {
        self.newest.as_deref()
    }

    /// Returns the number of times that the past was another one.
    pub fn breaks(&self) -> u64 {
        self.breaks
    }

    /// Adds a state. Returns whether everything that is known is still the past of the database.
    pub fn follow(&mut self, seen: Seen) -> bool {
        // Answers may arrive late, and an older state must not replace a newer one.
        if !seen.continues || seen.revision >= self.revision {
            self.newest = seen.newest;
            self.revision = seen.revision;
        }
        self.breaks += u64::from(!seen.continues);
        seen.continues
    }
}
