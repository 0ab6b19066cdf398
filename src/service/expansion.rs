//! The expansion of stored value sets with all their imports.
//!
//! Each value set is read and expanded once for a request, however often others import it. The
//! codes that are read, and those that are compared, are counted in total.

use super::Service;
use super::call::Call;
use super::error::Failure;
use super::fhir::{Coding, ValueSet};
use super::terminology::{MAX_CODES, TerminologyRequest, refused, separated};
use crate::aql::TerminologyError;
use crate::store::repository::Repository;
use std::collections::HashMap;
use std::rc::Rc;

/// The maximum number of value sets that one imports, directly or indirectly.
const MAX_IMPORTS: usize = 64;
/// The maximum number of codes of a value set and of its imports.
const MAX_LOADED: usize = 200_000;
/// The maximum number of comparisons of codes during an expansion.
const MAX_COMPARED: usize = 1_000_000;

/// The codes of a value set, or the reason for their absence.
type Expansion = Result<Rc<[Coding]>, TerminologyError>;

/// The value sets of one request.
#[derive(Default)]
struct Loaded {
    /// In the order in which they were read, by canonical URL. One with two versions is there
    /// twice.
    sets: Vec<(String, ValueSet)>,
    /// The codes of the expanded ones, by URL.
    expanded: HashMap<String, Rc<[Coding]>>,
    /// Codes that were read.
    codes: usize,
}

impl<R: Repository> Service<R> {
    /// Returns the codes of the stored value set with this canonical URL, with those of its imports,
    /// which are stored or on the server. `None` if it is not stored.
    pub(super) async fn expanded(
        &self,
        call: Option<&Call<'_>>,
        url: &str,
    ) -> Result<Option<Expansion>, Failure> {
        let Some(set) = self.stored_value_set(call, url).await? else {
            return Ok(None);
        };
        let mut loaded = Loaded::default();
        if let Err(error) = self.load_imports(call, url, set, &mut loaded).await? {
            return Ok(Some(Err(error)));
        }
        let mut compared = 0;
        while !loaded.expanded.contains_key(url) {
            if let Err(error) = loaded.step(&mut compared) {
                return Ok(Some(Err(error)));
            }
            if let Some(call) = call {
                call.pause().await;
            }
        }
        let codes = loaded.expanded.remove(url);
        let codes = codes.ok_or_else(|| Failure::broken("a value set was not expanded"))?;
        Ok(Some(match codes.len() > MAX_CODES {
            true => refused(format!("the value set has more than {MAX_CODES} codes")),
            false => Ok(codes),
        }))
    }

    /// Reads a value set with all its imports, each once.
    async fn load_imports(
        &self,
        call: Option<&Call<'_>>,
        url: &str,
        set: ValueSet,
        loaded: &mut Loaded,
    ) -> Result<Result<(), TerminologyError>, Failure> {
        let mut open: Vec<String> = Vec::new();
        if let Err(error) = loaded.add(url, set, &mut open) {
            return Ok(Err(error));
        }
        // Depth does not matter: each value set is read once, and `MAX_IMPORTS` bounds their
        // number.
        while let Some(url) = open.pop() {
            if loaded.has(&url) {
                continue;
            }
            if loaded.sets.len() + loaded.expanded.len() > MAX_IMPORTS {
                return Ok(refused(format!(
                    "the value set imports more than {MAX_IMPORTS} others"
                )));
            }
            let added = match self.stored_value_set(call, &url).await? {
                Some(inner) => loaded.add(&url, inner, &mut open),
                None => match self.expand_import(call, &url).await? {
                    // The terminology server has expanded the imports of this value set itself.
                    Ok(codes) => loaded.count(codes.len()).map(|()| {
                        loaded.expanded.insert(url, codes.into());
                    }),
                    Err(TerminologyError::Absent(_)) => refused(format!(
                        "the value set imports `{url}`, which is not stored"
                    )),
                    Err(error) => Err(error),
                },
            };
            if let Err(error) = added {
                return Ok(Err(error));
            }
            // A value set of megabytes takes a second to read.
            if let Some(call) = call {
                call.pause().await;
                if self.is_late(call) {
                    let most = self.config.limits.query_time / 1_000_000;
                    return Ok(Err(TerminologyError::Late(format!(
                        "the value sets of the request take longer than {most} s to read: import fewer"
                    ))));
                }
            }
        }
        Ok(Ok(()))
    }

    /// Returns whether a request takes longer than a query may.
    fn is_late(&self, call: &Call<'_>) -> bool {
        call.clock() - call.now > self.config.limits.query_time
    }

    /// Requests the codes of an imported value set from the server.
    async fn expand_import(
        &self,
        call: Option<&Call<'_>>,
        url: &str,
    ) -> Result<Result<Vec<Coding>, TerminologyError>, Failure> {
        separated(self.expand(call, &TerminologyRequest::of_import(url)).await)
    }
}

impl Loaded {
    fn has(&self, url: &str) -> bool {
        self.expanded.contains_key(url) || self.sets.iter().any(|(known, _)| known == url)
    }

    /// Adds a value set that was read. Appends the URLs of its imports to `open`.
    fn add(
        &mut self,
        url: &str,
        set: ValueSet,
        open: &mut Vec<String>,
    ) -> Result<(), TerminologyError> {
        self.count(set.size())?;
        open.extend(set.imports().map(str::to_owned));
        self.sets.push((url.to_owned(), set));
        Ok(())
    }

    fn count(&mut self, codes: usize) -> Result<(), TerminologyError> {
        self.codes += codes;
        if self.codes <= MAX_LOADED {
            return Ok(());
        }
        refused(format!(
            "the value set and those that it imports have more than {MAX_LOADED} codes together"
        ))
    }

    /// Expands a value set whose imports are all expanded, or a cycle of value sets.
    fn step(&mut self, compared: &mut usize) -> Result<(), TerminologyError> {
        let is_ready =
            |(_, set): &(String, ValueSet)| set.imports().all(|u| self.expanded.contains_key(u));
        let Some(at) = self.sets.iter().position(is_ready) else {
            return self.expand_together(compared);
        };
        // The order of the remaining sets is irrelevant.
        let (url, set) = self.sets.swap_remove(at);
        let codes = self.codes_of(&set, compared)?;
        self.expanded.insert(url, codes);
        Ok(())
    }

    /// Expands value sets that import each other: repeats until none changes.
    ///
    /// Includes only add codes, so they become stable after as many rounds as there are sets. An
    /// exclusion in the cycle may have no stable result, and any result would be arbitrary.
    fn expand_together(&mut self, compared: &mut usize) -> Result<(), TerminologyError> {
        let sets = std::mem::take(&mut self.sets);
        for _ in 0..=MAX_IMPORTS {
            let mut changes = false;
            for (url, set) in &sets {
                let codes = self.codes_of(set, compared)?;
                let before = self.expanded.insert(url.clone(), Rc::clone(&codes));
                changes |= before.is_none_or(|before| before != codes);
            }
            if !changes {
                return Ok(());
            }
        }
        let urls: Vec<&str> = sets.iter().map(|(url, _)| url.as_str()).take(5).collect();
        refused(format!(
            "value sets that import each other exclude their own codes: {}; leave the exclusion out of the cycle",
            urls.join(", ")
        ))
    }

    /// Returns the codes of a value set, as far as its imports are expanded.
    fn codes_of(
        &self,
        set: &ValueSet,
        compared: &mut usize,
    ) -> Result<Rc<[Coding]>, TerminologyError> {
        let imported = |url: &str| self.expanded.get(url).map_or(&[][..], |codes| &**codes);
        *compared += 1 + set.work(&imported);
        if *compared > MAX_COMPARED {
            return refused(format!(
                "the value set takes more than {MAX_COMPARED} comparisons of codes: import fewer value sets, or each fewer times"
            ));
        }
        Ok(set.codes(&imported).into())
    }
}
