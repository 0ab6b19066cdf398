//! Results with more rows than a page, as hosts send them: part by part, as the client reads them.

use super::http::{Request, Response, RowPart};

/// A result of which the first part is answered.
///
/// A host sends the text of the first response. Then it answers [`RowParts::next_request`], and
/// sends [`RowParts::text_of`] the response, as long as there is a request.
pub struct RowParts {
    request: Request,
    rest: Option<RowPart>,
    /// Whether an error can be a line of the body.
    has_lines: bool,
}

/// The error of a body that cannot be completed: the host must not end it as if it were complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IncompleteBody;

impl std::fmt::Display for IncompleteBody {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("a part of the result has failed")
    }
}

impl std::error::Error for IncompleteBody {}

impl RowParts {
    /// Takes the rest of a result from the first response.
    pub fn new(request: Request, first: &mut Response) -> RowParts {
        let rest = first.rest.take();
        RowParts {
            request,
            has_lines: rest.as_ref().is_none_or(RowPart::has_lines),
            rest,
        }
    }

    /// Returns the request for the next part; `None` after the last one, and after an error.
    pub fn next_request(&mut self) -> Option<&Request> {
        self.request.part = Some(self.rest.take()?);
        Some(&self.request)
    }

    /// Returns the text of the response to the last request.
    ///
    /// # Errors
    /// If the response is an error, and the format of the body cannot represent errors.
    pub fn text_of(&mut self, response: Response) -> Result<Vec<u8>, IncompleteBody> {
        let mut text = response.body;
        if response.status == 200 {
            self.rest = response.rest;
            return Ok(text);
        }
        if !self.has_lines {
            return Err(IncompleteBody);
        }
        // The status is sent already, so the last line is the error.
        text.push(b'\n');
        Ok(text)
    }
}
