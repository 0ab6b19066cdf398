//! Parties of an import keep their classes.
//!
//! The kind of an object does not determine the class of a party, so the database cannot check it.
//! A version of a party has the class of the versions before it: in the database, in an earlier
//! line or in its own. The lines of a transaction wait in a queue, so that the objects that they
//! follow are read together before the first of them is checked.

use super::super::Service;
use super::super::bulk::{LineIdentity, Lines, ReadyLine, SentLine};
use super::super::call::Call;
use super::super::error::Failure;
use super::super::followed::FollowedObjects;
use super::super::ids::VersionUid;
use super::super::members::{Members, in_member};
use super::super::owner::Owner;
use crate::rm::class::Cls;
use crate::store::repository::{Commit, Repository};
use aqlite_rm::order;

/// A version of a party with data.
pub(super) struct PartyVersion {
    /// Its index among the versions of the contribution.
    pub index: usize,
    pub object_id: String,
    pub preceding: Option<VersionUid>,
    pub class: Cls,
}

/// A checked contribution, but for the classes of its parties.
pub(super) struct ImportedContribution {
    pub commit: Commit,
    /// Its versions, for errors.
    pub members: Members,
    /// Its versions of parties with data, in order.
    pub parties: Vec<PartyVersion>,
}

struct QueuedLine<'a> {
    sent: SentLine<'a>,
    contribution: ImportedContribution,
}

/// An import in progress: the lines in the queue, and those behind it.
pub(super) struct Import<'a> {
    pub lines: Lines<'a>,
    queue: Vec<QueuedLine<'a>>,
    /// The bytes of the lines in the queue.
    bytes: usize,
}

impl<'a> Import<'a> {
    /// Creates the state before the first line of a body, or of a part of it.
    pub fn begin(call: &Call<'_>) -> Import<'a> {
        Import {
            lines: Lines::begin(call),
            queue: Vec::new(),
            bytes: 0,
        }
    }
}

impl<R: Repository> Service<R> {
    /// Adds a line to the queue, and commits the queue when it is full.
    pub(super) async fn queue<'a>(
        &self,
        call: &Call<'_>,
        import: &mut Import<'a>,
        sent: SentLine<'a>,
        contribution: ImportedContribution,
    ) {
        import.bytes += sent.text.len();
        import.queue.push(QueuedLine { sent, contribution });
        let sizes = self.config.load_sizes;
        if import.queue.len() >= sizes.commits || import.bytes >= sizes.bytes {
            self.commit_queue(call, import).await;
        }
    }

    /// Checks the lines of the queue, commits those that keep the classes of parties, and answers
    /// all of them in order.
    pub(super) async fn commit_queue(&self, call: &Call<'_>, import: &mut Import<'_>) {
        import.bytes = 0;
        let queue = std::mem::take(&mut import.queue);
        let lines = &mut import.lines;
        let mut followed = match self.followed_parties(call, &queue).await {
            Ok(followed) => followed,
            Err(failure) => {
                // Nothing was committed, so that every line of the queue has the same answer.
                for line in queue {
                    lines.refuse(line.sent.number, &failure);
                }
                return;
            }
        };
        for QueuedLine { sent, contribution } in queue {
            let ImportedContribution {
                commit,
                members,
                parties,
            } = contribution;
            match self
                .check_parties(call, lines, &parties, &mut followed)
                .await
            {
                Ok(()) => {
                    let ready = ReadyLine {
                        commit,
                        created: None,
                        identity: LineIdentity::Text,
                        members,
                    };
                    self.add_line(lines, sent, ready).await;
                }
                Err(failure) => {
                    // Responses have the order of lines, so pending lines are answered first.
                    self.flush(lines).await;
                    lines.refuse(sent.number, &failure);
                }
            }
        }
        self.flush(lines).await;
    }

    /// Reads the parties that the lines of the queue follow, in few statements.
    async fn followed_parties(
        &self,
        call: &Call<'_>,
        queue: &[QueuedLine<'_>],
    ) -> Result<FollowedObjects, Failure> {
        let parties = queue.iter().flat_map(|line| &line.contribution.parties);
        let preceding = parties.filter_map(|party| party.preceding.as_ref());
        let wanted = order::distinct(preceding.map(|uid| uid.object_id.as_str()));
        self.read_all_followed(call, &Owner::Demographic, &wanted)
            .await
    }

    /// Checks that the parties of a line keep their classes.
    async fn check_parties(
        &self,
        call: &Call<'_>,
        lines: &mut Lines<'_>,
        parties: &[PartyVersion],
        followed: &mut FollowedObjects,
    ) -> Result<(), Failure> {
        for party in parties {
            if let Some(preceding) = &party.preceding {
                if !followed.is_known(&preceding.object_id) {
                    // Earlier lines may have the object, so they are committed before it is read.
                    self.flush(lines).await;
                }
                let version = (preceding, party.class);
                self.check_followed_class(call, &Owner::Demographic, version, followed)
                    .await
                    .map_err(|failure| in_member(party.index, failure))?;
            }
            // Later lines may follow this version, although it is not committed yet.
            followed.add_created(&party.object_id, party.class);
        }
        Ok(())
    }
}
