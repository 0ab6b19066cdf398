//! Tests of the law that the order of members and white space carry no meaning (RFC 8259, 2 and 4).

use super::*;
use crate::arbitrary::Generator;

/// Writes JSON text again with the members of each object in another order, and white space.
struct Rewriter<'a> {
    scan: Scanner<'a>,
    /// The number of members that are moved to the end of each object.
    moved: usize,
    space: &'static str,
}

impl Rewriter<'_> {
    fn value(&mut self) -> String {
        match self.scan.peek() {
            Some(b'{') => {
                let mut members = self.parts(b'}', |rewriter| {
                    let key = rewriter.scan.key().unwrap();
                    let mut member = String::new();
                    quote_into(&mut member, &key);
                    member + &rewriter.spaced(":") + &rewriter.value()
                });
                let moved = self.moved % members.len().max(1);
                members.rotate_left(moved);
                self.joined("{", &members, "}")
            }
            Some(b'[') => {
                let elements = self.parts(b']', Self::value);
                self.joined("[", &elements, "]")
            }
            _ => self.scan.skip_value(1).unwrap().to_owned(),
        }
    }

    fn parts(&mut self, end: u8, mut part: impl FnMut(&mut Self) -> String) -> Vec<String> {
        self.scan.next_token().unwrap();
        let mut parts = Vec::new();
        while self.scan.peek() != Some(end) {
            parts.push(part(self));
            if self.scan.peek() == Some(b',') {
                self.scan.next_token().unwrap();
            }
        }
        self.scan.next_token().unwrap();
        parts
    }

    fn joined(&self, start: &str, parts: &[String], end: &str) -> String {
        self.spaced(start) + &parts.join(&self.spaced(",")) + &self.spaced(end)
    }

    fn spaced(&self, mark: &str) -> String {
        format!("{}{mark}{}", self.space, self.space)
    }
}

#[test]
fn any_order_of_members_and_any_white_space_give_the_same_document() {
    for seed in 0..200 {
        let tree = Generator::new(seed).tree();
        let canonical = write(tree.root().unwrap());
        for (moved, space) in [(0, " "), (1, ""), (1, " "), (2, "\r\n\t"), (5, "  ")] {
            let scan = Scanner::new(&canonical);
            let text = Rewriter { scan, moved, space }.value();
            let again = read(&text, Cls::ANY).unwrap_or_else(|e| panic!("{text}: {e:?}"));
            assert_eq!(write(again.root().unwrap()), canonical, "{text}");
        }
    }
}
