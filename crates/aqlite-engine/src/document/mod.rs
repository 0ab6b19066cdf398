//! Packed documents and batches.
//!
//! A document is cut into *fragments*: each entry and each repeated node is a fragment, and so is
//! the remainder. A fragment consists of an exact [`Layout`] (its structure with the constant
//! texts, shared by all fragments that have it) and its own *leaf values*. Layouts hold only texts
//! that a template, an archetype or the Reference Model defines, so no text of a patient is ever
//! shared. A [`Batch`] holds the fragments of many documents as columns: one table for all layouts
//! that merge.

mod batch;
mod codec;
mod column;
mod digest;
mod json_pattern;
mod layout;
mod merge;
mod moment;
mod pack;
mod part;
mod part_file;
mod rule;
mod segment;
mod sparse;
mod text_index;
mod zone_map;

pub use batch::{
    Batch, Bitmap, ColumnView, Doc, DocRow, DocState, EhrRow, Fragment, ObjectKind, PresenceBitmap,
    Ranges, Table, UnionPart, VersionedObject,
};
pub use codec::{ByteReader, ByteWriter, Codec};
pub use column::{Column, Dictionary, DictionaryTexts, Leaf, Number};
pub use digest::{checksum, digest_of_text, fnv, sha256, sha256_of, short_digest};
pub use json_pattern::JsonPattern;
pub use layout::{Item, ItemKind, Layout, LayoutStore};
pub use moment::{DateTimeColumn, MomentText, TimeText};
pub use pack::{Packed, pack};
pub use part::absent_reads;
pub use part_file::{PartFile, ReadBytes, Region};
pub use rule::{Known, NothingKnown, Texts};
pub use segment::{
    CheckpointWriter, EncodedSegment, PartPlace, PastState, Segment, SegmentState,
    decode_with_checksum, encode_with_checksum, share_parts,
};
pub use text_index::TextIndex;
pub use zone_map::ZoneMap;
