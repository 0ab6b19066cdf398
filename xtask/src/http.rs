//! A client for a server on this machine: one request per connection, no TLS.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A status and a body.
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The body as text.
    pub body: String,
}

/// Sends a request to `127.0.0.1:port` and reads the whole answer.
pub fn send(
    port: u16,
    method: &str,
    path: &str,
    content_type: &str,
    body: &[u8],
) -> Result<Answer, String> {
    let failed = |error: std::io::Error| format!("{method} {path}: {error}");
    let mut stream = TcpStream::connect(("127.0.0.1", port)).map_err(failed)?;
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .map_err(failed)?;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\naccept: application/json\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream
        .write_all(head.as_bytes())
        .and_then(|()| stream.write_all(body))
        .map_err(failed)?;
    let (mut answer, mut chunk) = (Vec::new(), [0; 16_384]);
    while !is_whole(&answer) {
        match stream.read(&mut chunk).map_err(failed)? {
            0 => break,
            read => answer.extend_from_slice(chunk.get(..read).unwrap_or_default()),
        }
    }
    parse(&answer).ok_or(format!("{method} {path}: the answer is not HTTP"))
}

/// Returns whether the answer has its whole body. workerd keeps connections open for seconds even
/// if it is asked to close them.
fn is_whole(answer: &[u8]) -> bool {
    let Some(end) = answer.windows(4).position(|w| w == b"\r\n\r\n") else {
        return false;
    };
    let head = String::from_utf8_lossy(answer.get(..end).unwrap_or_default()).to_ascii_lowercase();
    let body = answer.get(end + 4..).unwrap_or_default();
    let length = head
        .lines()
        .find_map(|l| l.strip_prefix("content-length:"))
        .and_then(|l| l.trim().parse::<usize>().ok());
    match length {
        Some(length) => body.len() >= length,
        None if head.contains("transfer-encoding: chunked") => body.ends_with(b"0\r\n\r\n"),
        None => head
            .split_whitespace()
            .nth(1)
            .is_some_and(|status| matches!(status, "204" | "304")),
    }
}

fn parse(answer: &[u8]) -> Option<Answer> {
    let end = answer.windows(4).position(|w| w == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(answer.get(..end)?).to_ascii_lowercase();
    let status = head.split_whitespace().nth(1)?.parse().ok()?;
    let body = answer.get(end + 4..)?;
    let body = if head.contains("transfer-encoding: chunked") {
        dechunk(body)
    } else {
        body.to_vec()
    };
    Some(Answer {
        status,
        body: String::from_utf8_lossy(&body).into_owned(),
    })
}

fn dechunk(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|w| w == b"\r\n") {
        let size = rest
            .get(..end)
            .and_then(|s| std::str::from_utf8(s).ok())
            .and_then(|s| usize::from_str_radix(s.trim(), 16).ok());
        let Some(chunk) = size
            .filter(|s| *s > 0)
            .and_then(|s| rest.get(end + 2..end + 2 + s))
        else {
            break;
        };
        body.extend_from_slice(chunk);
        rest = rest.get(end + 4 + chunk.len()..).unwrap_or_default();
    }
    body
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn reads_plain_and_chunked_bodies() {
        let plain = parse(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").unwrap();
        assert_eq!((plain.status, plain.body.as_str()), (200, "ok"));
        let chunked = parse(b"HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n").unwrap();
        assert_eq!((chunked.status, chunked.body.as_str()), (404, "abc"));
    }
}
