//! Division of the documents of a scan into parts, which several threads read at once.

use super::scan::Snapshot;

/// A part of the documents of a scan: consecutive versions in the order of commits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScanPart {
    /// The part begins behind the version with this number.
    pub after: u64,
    /// The number of the last version of the part.
    pub until: u64,
}

impl ScanPart {
    /// All documents.
    pub const ALL: ScanPart = ScanPart {
        after: 0,
        until: u64::MAX,
    };

    /// Returns whether the part has all versions of a range.
    pub fn includes(self, first: u64, last: u64) -> bool {
        self.after < first && last <= self.until
    }
}

/// A scan that was divided.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Division {
    /// The state that all parts must read.
    pub snapshot: Snapshot,
    /// At least two parts in the order of commits, which together have each document once.
    pub parts: Vec<ScanPart>,
}

/// Versions that one thread must read together: those of a segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct SegmentExtent {
    /// The number of the last version.
    pub last: u64,
    /// The number of documents.
    pub documents: u64,
}

/// Divides segments, which are ascending, into at most `count` parts of about equal size with at
/// least about `least` documents each. The last part also has all versions behind the last segment.
pub(super) fn divide(segments: &[SegmentExtent], count: usize, least: u64) -> Vec<ScanPart> {
    let total: u64 = segments.iter().map(|segment| segment.documents).sum();
    let count = (count as u64).min(total / least.max(1));
    let (mut parts, mut after, mut documents) = (Vec::new(), 0, 0);
    // The last part ends with the last segment or behind it.
    for segment in segments.split_last().map_or(&[][..], |(_, before)| before) {
        documents += segment.documents;
        let next = parts.len() as u64 + 1;
        // A part ends with the segment that completes its share.
        if next < count && documents * count >= total * next {
            let until = segment.last;
            parts.push(ScanPart { after, until });
            after = until;
        }
    }
    let until = ScanPart::ALL.until;
    parts.push(ScanPart { after, until });
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Divides segments with these numbers of documents, whose versions have twice as many numbers.
    /// Returns the number of documents of each part.
    fn sizes(documents: &[u64], count: usize, least: u64) -> Vec<u64> {
        let mut last = 0;
        let segments = documents.iter().map(|documents| {
            last += 2 * documents;
            let documents = *documents;
            SegmentExtent { last, documents }
        });
        let segments: Vec<SegmentExtent> = segments.collect();
        let parts = divide(&segments, count, least);
        let ends = parts.iter().map(|part| part.until);
        let begins = parts.iter().skip(1).map(|part| part.after);
        assert!(begins.eq(ends.take(parts.len() - 1)), "{parts:?}");
        let ends = (parts.first(), parts.last());
        assert_eq!(ends.0.map(|part| part.after), Some(0));
        assert_eq!(ends.1.map(|part| part.until), Some(u64::MAX));
        let size = |part: &ScanPart| {
            let own = segments.iter();
            let own = own.filter(|p| part.after < p.last && p.last <= part.until);
            own.map(|segment| segment.documents).sum()
        };
        parts.iter().map(size).collect()
    }

    #[test]
    fn parts_have_about_equal_sizes_and_whole_segments() {
        assert_eq!(sizes(&[10, 10, 10, 10], 2, 10), [20, 20]);
        assert_eq!(sizes(&[10, 10, 10, 1], 2, 10), [20, 11]);
        assert_eq!(sizes(&[5; 9], 4, 1), [15, 10, 10, 10]);
        assert_eq!(sizes(&[90, 1, 1, 8], 2, 1), [90, 10]);
    }

    #[test]
    fn there_are_no_more_parts_than_requested_or_than_pay() {
        assert_eq!(sizes(&[10, 10], 4, 1), [10, 10]);
        assert_eq!(sizes(&[10; 4], 4, 20), [20, 20]);
        assert_eq!(sizes(&[10; 4], 4, 30), [40]);
        assert_eq!(sizes(&[10; 4], 1, 1), [40]);
        assert_eq!(sizes(&[10; 4], 0, 0), [40]);
        assert_eq!(sizes(&[], 4, 1), [0]);
        assert_eq!(sizes(&[100], 4, 1), [100]);
    }
}
