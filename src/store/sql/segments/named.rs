//! Segments for scans that name many EHRs, such as those of guides that run on a population.
//!
//! A segment has the documents of all EHRs in the order of commits, and the repository's number of
//! each EHR. The database returns the numbers of the named EHRs, in the batch of statements that
//! reads the manifest.

use super::SegmentScan;
use crate::store::repository::StoreError;
use crate::store::scan::{Scan, Snapshot};
use crate::store::sql::value::{Fields, Row, Statement, json_list, unexpected};

/// The minimum number of named EHRs of a scan that reads segments. The rows of fewer are one page.
pub(super) const MIN_EHRS: usize = 64;

/// The maximum number of named EHRs of a scan that reads segments: the database reads their ids
/// from one text.
const MAX_EHRS: usize = 10_000;

/// The maximum number of EHRs of the repository for each named EHR of a scan that reads segments. A
/// segment costs about 10 ns for each of its documents, also those of other EHRs, and a row 35 µs.
const MAX_SHARE: u64 = 128;

/// The maximum number of versions in no segment, if a scan reads segments: it searches all of them
/// for those of its EHRs.
const MAX_BEHIND: u64 = 16_384;

/// Reads the number of each EHR of the list `?1` that exists, and its position in the list.
const NUMBERS: &str = "SELECT json_group_array(e.id) AS numbers, json_group_array(s.key) AS places
    FROM json_each(?1) s CROSS JOIN ehr e WHERE e.ehr_id = s.value AND e.id > 0";

/// Returns whether segments may serve a scan that names EHRs, if there are enough of them.
///
/// Each row must belong to one document. A scan without [`Scan::unqueryable`] would need to know
/// which of the EHRs are queryable.
pub(super) fn is_served(scan: &Scan, ehrs: usize, least: usize) -> bool {
    let is_enough = ehrs > 1 && ehrs >= least && ehrs <= MAX_EHRS;
    is_enough && scan.unqueryable && !scan.whole_ehrs && !scan.kinds.is_empty()
}

/// The EHRs that a scan names and that exist.
pub(in crate::store::sql) struct NamedEhrs<'s> {
    ids: &'s [String],
    /// The ids as a list in JSON.
    pub list: String,
    /// The places in `ids` of those that exist.
    places: Vec<u64>,
    /// The repository's numbers of those that exist.
    numbers: Vec<u64>,
}

impl<'s> NamedEhrs<'s> {
    /// Creates the EHRs that a scan names; `None` if it names none.
    pub fn of(scan: &'s Scan) -> Option<NamedEhrs<'s>> {
        let ids = scan.ehrs.as_deref()?;
        Some(NamedEhrs {
            ids,
            list: json_list(ids),
            places: Vec::new(),
            numbers: Vec::new(),
        })
    }

    /// Returns the statement whose rows [`NamedEhrs::read`] reads.
    pub fn statement(&self) -> Statement {
        Statement::new(NUMBERS).bind(self.list.as_str())
    }

    /// Reads the numbers of the named EHRs that exist.
    ///
    /// # Errors
    /// If the row is not as expected.
    pub fn read(&mut self, rows: Vec<Row>) -> Result<(), StoreError> {
        let mut fields = Fields::of_only(rows)?;
        self.numbers = fields.numbers()?;
        self.places = fields.numbers()?;
        let is_paired = self.numbers.len() == self.places.len();
        is_paired.then_some(()).ok_or_else(unexpected)
    }

    /// Returns the ids of the EHRs that exist.
    pub fn existing(&self) -> impl Iterator<Item = &'s str> {
        let ids = self.ids;
        let places = self.places.iter();
        places.filter_map(|place| ids.get(*place as usize).map(String::as_str))
    }

    /// Returns whether a scan of them reads segments in a state, rather than rows.
    pub fn prefers(&self, segments: &SegmentScan, state: Snapshot) -> bool {
        let is_share = (self.ids.len() as u64).saturating_mul(MAX_SHARE) >= state.ehr;
        is_share && segments.len() > 0 && segments.missing(state.version) <= MAX_BEHIND
    }

    /// Restricts segments to these EHRs.
    pub fn restrict(&self, segments: &mut SegmentScan) {
        // Numbers of EHRs are dense, and `NamedEhrs::prefers` limits them to `MAX_SHARE` for each
        // named EHR. So the list of flags is short.
        let greatest = self.numbers.iter().max().copied().unwrap_or(0);
        let mut flags = vec![false; greatest as usize + 1];
        for number in &self.numbers {
            let flag = flags.get_mut(*number as usize);
            flag.into_iter().for_each(|flag| *flag = true);
        }
        for opened in &mut segments.segments {
            let ehrs = (0..).zip(opened.cached.segment.ehrs());
            let is_named = |id: u64| flags.get(id as usize) == Some(&true);
            let named = ehrs.filter_map(|(number, id)| is_named(*id).then_some(number));
            opened.ehrs = Some(named.collect());
        }
    }
}
