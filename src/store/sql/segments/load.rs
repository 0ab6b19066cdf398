//! Loading the wanted parts of segments: one read of a blob for all parts of a value.

use super::{BLOBS_AT_ONCE, BlobReads, Opened, SegmentScan, Segments, count_blob, value_key};
use futures_util::stream::{self, StreamExt};
use std::cell::Cell;
use std::collections::BTreeMap;

/// A value of one of the segments of a scan.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ValueOfSegment {
    /// The index of the segment in the scan.
    segment: usize,
    /// The number of the value in the segment.
    value: u32,
}

/// The numbers of the wanted parts, by the value that holds them.
pub(super) type WantedParts = BTreeMap<ValueOfSegment, Vec<u32>>;

impl SegmentScan {
    /// Returns the wanted parts.
    pub(super) fn wanted(&self) -> WantedParts {
        let mut wanted = WantedParts::new();
        for (segment, Opened { cached, batch, .. }) in self.segments.iter().enumerate() {
            for part in batch.wanted() {
                let value = cached
                    .segment
                    .place(part)
                    // No value has this number, so that loading the part fails and rows are read.
                    .map_or(u32::MAX, |place| place.value);
                let of = ValueOfSegment { segment, value };
                wanted.entry(of).or_default().push(part);
            }
        }
        wanted
    }

    /// Returns the bytes of memory that parts need when they are loaded.
    fn bytes_of(&self, wanted: &WantedParts) -> usize {
        let memory = |segment: usize, part: u32| {
            let place = self.segments.get(segment)?.cached.segment.place(part)?;
            Some(place.memory as usize)
        };
        let parts = wanted
            .iter()
            .flat_map(|(of, parts)| parts.iter().map(move |part| (of.segment, *part)));
        parts
            .filter_map(|(segment, part)| memory(segment, part))
            .fold(0, usize::saturating_add)
    }
}

impl Segments {
    /// Returns whether these parts and those that are loaded fit into the memory of a query.
    pub(super) fn has_room(&self, scan: &SegmentScan, wanted: &WantedParts) -> bool {
        let other = self.cache(scan.source).borrow().forgotten_bytes();
        let need = scan.loaded_bytes().saturating_add(scan.bytes_of(wanted));
        need.saturating_add(other) <= self.memory.1
    }

    /// Loads parts. Instead of a segment whose parts cannot be read, rows are read.
    pub(super) async fn load(&self, scan: &mut SegmentScan, wanted: WantedParts) {
        let all = &scan.segments;
        let blobs = Cell::new(scan.blobs);
        let reads = &blobs;
        let read = |(of, parts): (ValueOfSegment, Vec<u32>)| async move {
            let loaded = match all.get(of.segment) {
                Some(opened) => self.load_value(opened, of.value, &parts, reads).await,
                None => None,
            };
            loaded.is_none().then_some(of.segment)
        };
        let outcomes = stream::iter(wanted)
            .map(read)
            .buffer_unordered(BLOBS_AT_ONCE);
        let lost: Vec<usize> = outcomes.filter_map(std::future::ready).collect().await;
        scan.blobs = blobs.get();
        if scan.keeps {
            // The batch of later queries may be another one, of a newer state.
            for Opened { cached, batch, .. } in &scan.segments {
                cached.keep_parts(batch);
            }
        }
        let mut number = 0;
        scan.segments.retain(|_| {
            number += 1;
            !lost.contains(&(number - 1))
        });
    }

    /// Loads parts of a segment from the value that holds them; `None` if it cannot be read.
    async fn load_value(
        &self,
        opened: &Opened,
        value: u32,
        parts: &[u32],
        reads: &BlobReads,
    ) -> Option<()> {
        let Opened { cached, batch, .. } = opened;
        let read = self.blobs.get(&value_key(&cached.id, value)).await;
        let bytes = self.count_absent(&cached.id, read)?;
        count_blob(reads, &bytes);
        self.count_unreadable(&cached.id, cached.load(batch, parts, &bytes).ok())
    }
}
