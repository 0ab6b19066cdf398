//! Authentication and authorization.
//!
//! | step | file |
//! |---|---|
//! | credentials of a request → caller | `authentication`; `token` for JSON Web Tokens, `users` for passwords, `passwords` for limiting the cost of verification |
//! | checks before the body is read | `admit` |
//! | permission of an operation; scopes and roles, which grant it | `scope` |
//! | access log | `trail` for the data of a request, `log`; counts of requests without authentication: `refusals` |
//! | an authenticated caller and its permissions | `caller` |
//!
//! A host authenticates the caller and passes it to [`Service::serve`](super::Service::serve).
//! Every route has a permission. Permissions that depend on the content (the template of a
//! composition, the EHR of a query) are checked where the content is read.

mod admit;
mod authentication;
mod caller;
mod host;
#[cfg(feature = "server")]
mod log;
mod passwords;
#[cfg(test)]
mod patterns;
#[cfg(feature = "server")]
mod refusals;
mod scope;
#[cfg(test)]
mod ticks;
mod token;
mod trail;
mod users;

pub use authentication::{Authenticator, Issuer, KeyCache};
pub use caller::{Caller, Denied};
pub(crate) use caller::{Reach, Subject};
pub use host::AuthenticationHost;
#[cfg(feature = "server")]
pub(crate) use refusals::RefusalCounts;
pub(crate) use scope::{Action, Permission, Resource};
pub use token::Algorithm;
pub(crate) use trail::AccessTrail;
pub use users::Users;
