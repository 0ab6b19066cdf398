//! Results with more rows than a page: the service answers them in parts, which are sent as the
//! client reads them.

use crate::ActiveRequest;
use crate::http;
use crate::memory::Sending;
use aqlite::service::{Request, Response, RowParts};
use futures_util::stream;
use std::rc::Rc;
use std::time::Duration;
use worker::{Delay, Error, Result, web_sys};

/// The parts of a result that are not sent yet.
struct Rest {
    active: Rc<ActiveRequest>,
    parts: RowParts,
    /// Prevents the replacement of this instance while parts are being sent.
    _sending: Sending,
}

impl Rest {
    /// Returns the text of the next part; `None` after the last one, and after an error.
    async fn next(&mut self) -> Option<Result<Vec<u8>>> {
        let request = self.parts.next_request()?;
        // Other requests get a turn of the event loop between two parts.
        Delay::from(Duration::ZERO).await;
        let response = self.active.answer(request).await;
        let text = self.parts.text_of(response);
        Some(text.map_err(|incomplete| Error::RustError(incomplete.to_string())))
    }
}

/// Sends the first part of a result and all that follow it.
pub fn send(
    active: Rc<ActiveRequest>,
    request: Request,
    mut first: Response,
) -> Result<web_sys::Response> {
    let rest = Rest {
        active,
        parts: RowParts::new(request, &mut first),
        _sending: Sending::begin(),
    };
    let parts = stream::unfold(
        rest,
        |mut rest| async move { Some((rest.next().await?, rest)) },
    );
    http::write_parts(first, parts)
}
