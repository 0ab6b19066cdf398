//! Who calls, and what they may do.
//!
//! | step | file |
//! |---|---|
//! | credentials of a request → caller | `gate`; `token` for JSON Web Tokens, `users` for passwords, `passwords` for what verifying them may cost |
//! | what must hold before anything is read | `admit` |
//! | what is needed for an operation; scopes and roles, which grant it | `scope` |
//! | who did what, when, to which EHR | `log`; requests of strangers, counted: `refusals` |
//! | someone who was recognised, and what they have leave for | `caller` |
//!
//! A host recognises the caller and hands it to [`Service::serve`](super::Service::serve). Every
//! line of the route table says what it needs; what only the content tells (the template of a
//! composition, the EHR of a query) is checked where it is read.

mod admit;
mod caller;
mod gate;
mod log;
mod passwords;
mod refusals;
mod scope;
mod token;
mod users;

pub use caller::{Caller, Denied};
pub(crate) use caller::{Reach, Subject};
pub use gate::{Gate, Issuer, KeyRing, Keys};
pub(crate) use log::Trail;
pub(crate) use refusals::Refusals;
pub(crate) use scope::{Act, Need, Resource};
pub use token::Algorithm;
pub use users::Users;
