//! Stored documents: structure once, values many.
//!
//! A document is cut into *fragments*: entries and repeated nodes stand alone, the rest stays together. A fragment is
//! an exact [`Shape`] (its skeleton with the constant texts; shared by all fragments that have it) and *slots* (its own
//! values). Shapes hold only texts that a template, an archetype or the RM knows, so no patient's text is ever shared.
//! A [`Batch`] holds the fragments of many documents as columns, one table for all shapes that unite.

mod batch;
mod column;
mod digest;
mod form;
mod pack;
mod rule;
mod shape;
mod superset;

pub use batch::{Batch, Bits, Container, Doc, DocRow, DocState, EhrRow, Flag, Fragment, Lane, ObjectKind, Table};
pub use column::{Column, Dictionary, Leaf, Number, Words};
pub use digest::{checksum, digest_of_text, fnv, sha256, short_digest};
pub use form::Form;
pub use pack::{Packed, pack};
pub use rule::{Known, NothingKnown, Texts};
pub use shape::{Item, ItemKind, Shape, Shapes};
