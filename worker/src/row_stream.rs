//! Results with more rows than a page: the service answers them in parts, which are sent as the
//! client reads them.

use crate::ActiveRequest;
use crate::http;
use crate::memory::Sending;
use aqlite::service::{Request, Response, RowPart};
use futures_util::{StreamExt, stream};
use std::rc::Rc;
use std::time::Duration;
use worker::{Delay, Error, Result, web_sys};

/// The parts of a result that are not sent yet.
struct Rest {
    active: Rc<ActiveRequest>,
    request: Request,
    part: Option<RowPart>,
    /// Prevents the replacement of this instance while parts are being sent.
    _sending: Sending,
}

impl Rest {
    /// Returns the text of the next part; `None` after the last one, and after an error.
    async fn next(&mut self) -> Option<Vec<u8>> {
        self.request.part = Some(self.part.take()?);
        // Waiting requests have their turn between two parts.
        Delay::from(Duration::ZERO).await;
        let Response {
            status,
            mut body,
            rest,
            ..
        } = self.active.answer(&self.request).await;
        // The status is sent already, so the last line is the error.
        if status == 200 {
            self.part = rest;
        } else {
            body.push(b'\n');
        }
        Some(body)
    }
}

/// Sends the first part of a result and all that follow it.
pub fn send(
    active: Rc<ActiveRequest>,
    request: Request,
    first: Response,
) -> Result<web_sys::Response> {
    let headers = http::headers(&first)?;
    let rest = Rest {
        active,
        request,
        part: first.rest,
        _sending: Sending::begin(),
    };
    let parts = stream::unfold(
        rest,
        |mut rest| async move { Some((rest.next().await?, rest)) },
    );
    let body = first.body;
    let all = stream::once(async move { body }).chain(parts);
    let response = worker::Response::from_stream(all.map(Ok::<_, Error>))?;
    Ok(response.with_headers(headers).into())
}
