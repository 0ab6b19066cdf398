//! An HTTP/1.1 client with the features that the tests need.

use aqlite::service::Response;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Sends a request to `host:port`. Waits at most a minute for each part of the answer.
pub fn send(
    authority: &str,
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> std::io::Result<Response> {
    let mut stream = TcpStream::connect(authority)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    let mut head = format!(
        "{method} {target} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\nContent-Length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    stream.write_all(format!("{head}\r\n").as_bytes())?;
    stream.write_all(body)?;
    let mut answer = Vec::new();
    let mut chunk = [0; 16_384];
    loop {
        match stream.read(&mut chunk)? {
            0 => break,
            read => answer.extend_from_slice(chunk.get(..read).unwrap_or_default()),
        }
        if is_whole(method, &answer) {
            break;
        }
    }
    parse(&answer).ok_or_else(|| std::io::Error::other("the answer is not HTTP"))
}

/// Returns whether the answer has its whole body. Servers may keep the connection open although
/// they are asked to close it.
fn is_whole(method: &str, answer: &[u8]) -> bool {
    let answer = final_answer(answer);
    let Some(end) = answer.windows(4).position(|w| w == b"\r\n\r\n") else {
        return false;
    };
    let head = String::from_utf8_lossy(answer.get(..end).unwrap_or_default()).to_ascii_lowercase();
    let body = answer.get(end + 4..).unwrap_or_default();
    if method == "HEAD" {
        return true;
    }
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

/// Skips interim answers such as `100 Continue` (RFC 9110 section 15.2).
fn final_answer(mut answer: &[u8]) -> &[u8] {
    while answer.starts_with(b"HTTP/1.1 1") {
        let Some(end) = answer.windows(4).position(|w| w == b"\r\n\r\n") else {
            return answer;
        };
        answer = answer.get(end + 4..).unwrap_or_default();
    }
    answer
}

fn parse(answer: &[u8]) -> Option<Response> {
    let answer = final_answer(answer);
    let end = answer.windows(4).position(|w| w == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(answer.get(..end)?).into_owned();
    let mut lines = head.lines();
    let status = lines.next()?.split_whitespace().nth(1)?.parse().ok()?;
    let headers: Vec<(String, String)> = lines
        .filter_map(|l| l.split_once(':'))
        .map(|(n, v)| (n.to_owned(), v.trim().to_owned()))
        .collect();
    let body = answer.get(end + 4..)?;
    let chunked = headers.iter().any(|(n, v)| {
        n.eq_ignore_ascii_case("transfer-encoding") && v.eq_ignore_ascii_case("chunked")
    });
    let body = if chunked { joined(body) } else { body.to_vec() };
    Some(Response {
        status,
        headers,
        body,
        ..Response::default()
    })
}

/// Joins the chunks of a body.
fn joined(mut rest: &[u8]) -> Vec<u8> {
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
