//! Results with more rows than a page, as hosts send them: part by part, as the client reads them.

use super::http::{Request, Response, RowPart};

/// A result of which the first part is answered.
///
/// A host sends the text of the first response. Then it answers [`RowParts::next_request`], and
/// sends [`RowParts::text_of`] the response, as long as there is a request.
pub struct RowParts {
    request: Request,
    rest: Option<RowPart>,
}

impl RowParts {
    /// Takes the rest of a result from the first response.
    pub fn new(request: Request, first: &mut Response) -> RowParts {
        RowParts {
            request,
            rest: first.rest.take(),
        }
    }

    /// Returns the request for the next part; `None` after the last one, and after an error.
    pub fn next_request(&mut self) -> Option<&Request> {
        self.request.part = Some(self.rest.take()?);
        Some(&self.request)
    }

    /// Returns the text of the response to the last request.
    pub fn text_of(&mut self, response: Response) -> Vec<u8> {
        let mut text = response.body;
        if response.status == 200 {
            self.rest = response.rest;
        } else {
            // The status is sent already, so the last line is the error.
            text.push(b'\n');
        }
        text
    }
}
