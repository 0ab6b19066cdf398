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
use aqlite_rm::order;
use std::collections::HashMap;
use std::rc::Rc;

/// The maximum number of value sets that one imports, directly or indirectly.
const MAX_IMPORTS: usize = 64;
/// Sets of value sets are bits of a number: that of the request is one more.
const _: () = assert!(MAX_IMPORTS < 128);
/// The maximum number of codes of a value set and of its imports.
const MAX_LOADED: usize = 200_000;
/// The maximum number of comparisons of codes during an expansion.
const MAX_COMPARED: usize = 1_000_000;

/// Value sets that import each other, by URL, or one alone.
type Cycle = Vec<(String, ValueSet)>;

/// The codes of a value set, or the reason for their absence.
type Expansion = Result<Rc<[Coding]>, TerminologyError>;

/// The value sets of one request.
#[derive(Default)]
struct ValueSets {
    /// In the order in which they were read, by canonical URL. One with two versions is there
    /// twice.
    read: Vec<(String, ValueSet)>,
    /// The codes of the expanded ones, by URL.
    expanded: HashMap<String, Rc<[Coding]>>,
    /// Codes that were read.
    codes: usize,
    /// Comparisons of codes in the expansions so far.
    compared: usize,
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
        let mut sets = ValueSets::default();
        if let Err(error) = self.load_imports(call, url, set, &mut sets).await? {
            return Ok(Some(Err(error)));
        }
        for cycle in sets.take_cycles() {
            if let Err(error) = sets.expand(&cycle) {
                return Ok(Some(Err(error)));
            }
            if let Some(call) = call {
                call.pause().await;
            }
        }
        let codes = sets.expanded.remove(url);
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
        sets: &mut ValueSets,
    ) -> Result<Result<(), TerminologyError>, Failure> {
        let mut open: Vec<String> = Vec::new();
        if let Err(error) = sets.add(url, set, &mut open) {
            return Ok(Err(error));
        }
        // Depth does not matter: each value set is read once, and `MAX_IMPORTS` bounds their
        // number.
        while let Some(url) = open.pop() {
            if sets.has(&url) {
                continue;
            }
            if sets.read.len() + sets.expanded.len() > MAX_IMPORTS {
                return Ok(refused(format!(
                    "the value set imports more than {MAX_IMPORTS} others"
                )));
            }
            let added = match self.stored_value_set(call, &url).await? {
                Some(inner) => sets.add(&url, inner, &mut open),
                None => match self.expand_import(call, &url).await? {
                    // The terminology server has expanded the imports of this value set itself.
                    Ok(codes) => sets.count(codes.len()).map(|()| {
                        sets.expanded.insert(url, codes.into());
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

impl ValueSets {
    fn has(&self, url: &str) -> bool {
        self.expanded.contains_key(url) || self.read.iter().any(|(known, _)| known == url)
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
        self.read.push((url.to_owned(), set));
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

    /// Takes the value sets that were read, imports first. Those that import each other are
    /// together.
    ///
    /// A value set reaches itself and what its imports reach. Thus it reaches more value sets than
    /// its imports do, except those that import it in turn, which reach the same.
    fn take_cycles(&mut self) -> Vec<Cycle> {
        let imports = self.imports_by_position();
        let read = std::mem::take(&mut self.read).into_iter().enumerate();
        let reached = read.map(|(at, set)| (reached(at, &imports), set));
        let mut ordered: Vec<(u128, (String, ValueSet))> = reached.collect();
        order::sort_by_key(&mut ordered, |(reached, _)| {
            (reached.count_ones(), *reached)
        });
        let mut cycles: Vec<Cycle> = Vec::new();
        let mut last = 0;
        for (reached, set) in ordered {
            match cycles.last_mut().filter(|_| reached == last) {
                Some(cycle) => cycle.push(set),
                None => cycles.push(vec![set]),
            }
            last = reached;
        }
        cycles
    }

    /// Returns the imports of each value set that was read, as a set of positions, without those
    /// that the terminology server expanded.
    fn imports_by_position(&self) -> Vec<u128> {
        let urls = self.read.iter().enumerate();
        let positions: HashMap<&str, usize> =
            urls.map(|(at, (url, _))| (url.as_str(), at)).collect();
        let of_set = |(_, set): &(String, ValueSet)| {
            let known = set.imports().filter_map(|url| positions.get(url));
            known.fold(0, |all, at| all | bit(*at))
        };
        self.read.iter().map(of_set).collect()
    }

    /// Expands value sets that import each other, whose other imports are expanded.
    ///
    /// Includes only add codes, so repeating ends with the same codes in each order of the sets.
    /// Exclusions of each other's codes have no such result: any would be arbitrary.
    fn expand(&mut self, cycle: &[(String, ValueSet)]) -> Result<(), TerminologyError> {
        let is_member = |url: &str| cycle.iter().any(|(member, _)| member == url);
        if cycle.iter().any(|(_, set)| set.exclusions().any(is_member)) {
            return self_exclusion(cycle);
        }
        let repeats = cycle.iter().any(|(_, set)| set.imports().any(is_member));
        let mut before = None;
        loop {
            let mut codes = 0;
            for (url, set) in cycle {
                let expanded = self.codes_of(set)?;
                codes += expanded.len();
                self.expanded.insert(url.clone(), expanded);
            }
            if before.replace(codes) == Some(codes) || !repeats {
                return Ok(());
            }
        }
    }

    /// Returns the codes of a value set, as far as its imports are expanded.
    fn codes_of(&mut self, set: &ValueSet) -> Result<Rc<[Coding]>, TerminologyError> {
        let imported = |url: &str| self.expanded.get(url).map_or(&[][..], |codes| &**codes);
        self.compared += 1 + set.work(&imported);
        if self.compared > MAX_COMPARED {
            return refused(format!(
                "the value set takes more than {MAX_COMPARED} comparisons of codes: import fewer value sets, or each fewer times"
            ));
        }
        Ok(set.codes(&imported).into())
    }
}

/// Returns the set with one position.
fn bit(position: usize) -> u128 {
    1 << position.min(127)
}

/// Returns the positions that an import chain from a position reaches, with itself.
fn reached(from: usize, imports: &[u128]) -> u128 {
    let mut reached = bit(from);
    loop {
        let members = imports.iter().enumerate();
        let next = members
            .filter(|(at, _)| reached & bit(*at) != 0)
            .fold(reached, |all, (_, imported)| all | imported);
        if next == reached {
            return reached;
        }
        reached = next;
    }
}

/// Rejects value sets that import each other, of which one excludes the codes of another.
fn self_exclusion(cycle: &[(String, ValueSet)]) -> Result<(), TerminologyError> {
    let urls: Vec<&str> = cycle.iter().map(|(url, _)| url.as_str()).take(5).collect();
    refused(format!(
        "value sets that import each other exclude their own codes: {}; leave the exclusion out of the cycle",
        urls.join(", ")
    ))
}
