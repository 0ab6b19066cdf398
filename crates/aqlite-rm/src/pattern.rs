//! Regular expressions of archetypes (slots, text constraints) and queries, matched in linear time.
//!
//! A match covers the whole text. Supported are `.`, classes, groups, alternation, `* + ? {m,n}`,
//! `\d \w \s` and their negations, escapes (also `\xHH`, `\uHHHH`, `\Q…\E`), POSIX classes such as
//! `[[:alpha:]]`, names of groups, and a leading `(?i)`. An expression outside this subset does not
//! compile, and neither does a reversed range (`[z-a]`, `a{3,2}`). A constraint whose
//! expression does not compile is not enforced.
//!
//! `.` matches every character, also a line feed: a constraint describes whole texts, and one of
//! several lines must not break `.*`. `(?i)` ignores the case of ASCII letters only.

use crate::order;
use crate::xml;
use std::iter::Peekable;
use std::str::Chars;

/// A compiled regular expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    source: String,
    program: Vec<Step>,
    /// The sets of the expression. The steps of a repetition share them.
    sets: Vec<Set>,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    /// A character of the set with this index.
    One(u32),
    Split(usize, usize),
    Jump(usize),
    Done,
}

#[derive(Clone, Debug, PartialEq, Default)]
struct Set {
    negated: bool,
    /// In ascending order, without common characters.
    ranges: Vec<(char, char)>,
    /// The first character of the first range that was written, for examples.
    first: Option<char>,
}

#[derive(Clone, Debug)]
enum Expr {
    One(u32),
    Sequence(Vec<Expr>),
    Either(Vec<Expr>),
    Repeat(Box<Expr>, u32, Option<u32>),
}

/// The POSIX classes with their characters.
const POSIX: [(&str, &[(char, char)]); 9] = [
    ("alpha", &[('a', 'z'), ('A', 'Z')]),
    ("digit", &[('0', '9')]),
    ("alnum", &[('a', 'z'), ('A', 'Z'), ('0', '9')]),
    ("upper", &[('A', 'Z')]),
    ("lower", &[('a', 'z')]),
    ("xdigit", &[('0', '9'), ('a', 'f'), ('A', 'F')]),
    ("space", &[(' ', ' '), ('\t', '\r')]),
    ("blank", &[(' ', ' '), ('\t', '\t')]),
    ("punct", &[('!', '/'), (':', '@'), ('[', '`'), ('{', '~')]),
];

// Nested repetitions multiply, so a short source could become a very large program.
const MAX_STEPS: usize = 20_000;
const MAX_REPEAT: u32 = 1_000;
// The reader is recursive, so the nesting of groups is limited, and that of the repetitions of one
// part, as in `a{2}{3}`.
const MAX_DEPTH: usize = 32;
const MAX_REPETITIONS: usize = 8;
/// The maximum number of bytes of an expression.
const MAX_SOURCE: usize = 100_000;

impl Pattern {
    /// Compiles an expression, or returns `None` if it is outside the supported subset.
    pub fn compile(source: &str) -> Option<Pattern> {
        if source.len() > MAX_SOURCE {
            return None;
        }
        let (ignores_case, rest) = source
            .strip_prefix("(?i)")
            .map_or((false, source), |rest| (true, rest));
        let mut reader = Reader {
            chars: rest.chars().peekable(),
            depth: 0,
            sets: Vec::new(),
        };
        let expr = reader.either()?;
        if reader.chars.next().is_some() {
            return None;
        }
        let mut program = Vec::new();
        emit(&expr, &mut program)?;
        program.push(Step::Done);
        let mut sets = reader.sets;
        if ignores_case {
            sets.iter_mut().for_each(Set::ignore_case);
        }
        sets.iter_mut().for_each(Set::merge);
        Some(Pattern {
            source: source.to_owned(),
            program,
            sets,
        })
    }

    /// Returns the source of the expression.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns the number of states of the compiled expression. Matching costs at most this number
    /// of units of work for each character.
    pub fn steps(&self) -> usize {
        self.program.len()
    }

    /// Returns the shortest text that matches and is not empty, else the empty text if it matches.
    pub fn example(&self) -> Option<String> {
        let mut empty = None;
        let mut found: Vec<(usize, String)> = vec![(0, String::new())];
        // Each state is entered once, by the shortest text. The empty text does not count.
        let mut seen = vec![false; self.program.len()];
        while !found.is_empty() {
            let mut next = Vec::new();
            for (start, text) in found {
                let mut now = Threads {
                    seen: std::mem::take(&mut seen),
                    list: Vec::new(),
                };
                now.add(&self.program, start);
                seen = now.seen;
                for at in now.list {
                    match self.program.get(at) {
                        Some(Step::Done) if text.is_empty() => empty = Some(String::new()),
                        Some(Step::Done) => return Some(text),
                        Some(Step::One(set)) => {
                            let example = self.set(*set).and_then(Set::example);
                            next.extend(example.map(|c| (at + 1, format!("{text}{c}"))))
                        }
                        _ => {}
                    }
                }
                if text.is_empty() {
                    seen.fill(false);
                }
            }
            found = next;
        }
        empty
    }

    fn set(&self, index: u32) -> Option<&Set> {
        self.sets.get(usize::try_from(index).ok()?)
    }

    /// Returns whether the whole text matches.
    pub fn matches(&self, text: &str) -> bool {
        let (mut now, mut next) = (
            Threads::new(self.program.len()),
            Threads::new(self.program.len()),
        );
        now.add(&self.program, 0);
        for c in text.chars() {
            next.clear();
            for at in &now.list {
                if let Some(Step::One(set)) = self.program.get(*at)
                    && self.set(*set).is_some_and(|set| set.contains(c))
                {
                    next.add(&self.program, at + 1);
                }
            }
            std::mem::swap(&mut now, &mut next);
        }
        now.list
            .iter()
            .any(|at| self.program.get(*at) == Some(&Step::Done))
    }
}

struct Threads {
    seen: Vec<bool>,
    list: Vec<usize>,
}

impl Threads {
    fn new(size: usize) -> Threads {
        Threads {
            seen: vec![false; size],
            list: Vec::new(),
        }
    }

    fn clear(&mut self) {
        self.seen.fill(false);
        self.list.clear();
    }

    fn add(&mut self, program: &[Step], start: usize) {
        let mut stack = vec![start];
        while let Some(at) = stack.pop() {
            match self.seen.get_mut(at) {
                Some(seen) if !*seen => *seen = true,
                _ => continue,
            }
            match program.get(at) {
                // The stack is last in, first out: `a` is entered before `b`.
                Some(Step::Split(a, b)) => stack.extend([*b, *a]),
                Some(Step::Jump(to)) => stack.push(*to),
                _ => self.list.push(at),
            }
        }
    }
}

impl Set {
    fn of(c: char) -> Set {
        Set {
            ranges: vec![(c, c)],
            ..Set::default()
        }
    }

    fn contains(&self, c: char) -> bool {
        let behind = self.ranges.partition_point(|(low, _)| *low <= c);
        let range = behind.checked_sub(1).and_then(|at| self.ranges.get(at));
        // The comparison with `negated` inverts the result for a negated class.
        range.is_some_and(|(_, high)| c <= *high) != self.negated
    }

    /// Sorts the ranges and unites those with common characters.
    fn merge(&mut self) {
        self.first = self.ranges.first().map(|(low, _)| *low);
        order::sort(&mut self.ranges);
        self.ranges.dedup_by(|(low, high), (_, before)| {
            let is_common = *low <= *before;
            if is_common {
                *before = (*before).max(*high);
            }
            is_common
        });
        self.ranges.shrink_to_fit();
    }

    /// Returns a character of the set that a document may contain, preferring an unsurprising one
    /// if the set is large.
    fn example(&self) -> Option<char> {
        let lows = self.first.into_iter();
        let lows = lows.chain(self.ranges.iter().map(|(low, _)| *low));
        // A negated set contains a neighbor of one of its ranges, or every character.
        let next = |high: &char| char::from_u32(u32::from(*high) + 1);
        let neighbors = self.ranges.iter().filter_map(|(_, high)| next(high));
        lows.chain(['a', 'A', '1', ' ', '-'])
            .chain('!'..='~')
            .chain(neighbors)
            .find(|c| self.contains(*c) && xml::not_in_xml(c.encode_utf8(&mut [0; 4])).is_none())
    }

    /// Adds the other case of each letter to the set.
    fn ignore_case(&mut self) {
        let (lower, upper) = (('a', 'z', 'A'), ('A', 'Z', 'a'));
        for (from, to) in self.ranges.clone() {
            for (first, last, other) in [lower, upper] {
                let swapped =
                    |c: char| char::from_u32(u32::from(c) - u32::from(first) + u32::from(other));
                let common = Some((from.max(first), to.min(last))).filter(|(from, to)| from <= to);
                self.ranges
                    .extend(common.and_then(|(from, to)| swapped(from).zip(swapped(to))));
            }
        }
    }

    fn escape(c: char) -> Option<Set> {
        let ranges: &[(char, char)] = match c.to_ascii_lowercase() {
            'd' => &[('0', '9')],
            'w' => &[('a', 'z'), ('A', 'Z'), ('0', '9'), ('_', '_')],
            's' => &[(' ', ' '), ('\t', '\t'), ('\n', '\n'), ('\r', '\r')],
            _ => {
                return Some(Set::of(match c {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    other if other.is_ascii_alphanumeric() => return None,
                    other => other,
                }));
            }
        };
        Some(Set {
            negated: c.is_ascii_uppercase(),
            ranges: ranges.to_vec(),
            ..Set::default()
        })
    }
}

struct Reader<'a> {
    chars: Peekable<Chars<'a>>,
    depth: usize,
    sets: Vec<Set>,
}

impl Reader<'_> {
    fn one(&mut self, set: Set) -> Option<Expr> {
        let index = u32::try_from(self.sets.len()).ok()?;
        self.sets.push(set);
        Some(Expr::One(index))
    }

    fn either(&mut self) -> Option<Expr> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let mut options = vec![self.sequence()?];
        while self.chars.next_if_eq(&'|').is_some() {
            options.push(self.sequence()?);
        }
        self.depth -= 1;
        Some(if options.len() == 1 {
            options.pop()?
        } else {
            Expr::Either(options)
        })
    }

    fn sequence(&mut self) -> Option<Expr> {
        let mut parts = Vec::new();
        while let Some(c) = self
            .chars
            .peek()
            .copied()
            .filter(|c| !matches!(c, '|' | ')'))
        {
            self.chars.next();
            // A match covers the whole text anyway, so anchors are ignored.
            if matches!(c, '^' | '$') {
                continue;
            }
            if c == '\\' && self.chars.next_if(|c| matches!(c, 'A' | 'z')).is_some() {
                continue;
            }
            if c == '\\' && self.chars.next_if_eq(&'Q').is_some() {
                for c in self.quoted() {
                    parts.push(self.one(Set::of(c))?);
                }
                // A quantifier repeats the last character.
                if let Some(last) = parts.pop() {
                    parts.push(self.repeated(last)?);
                }
                continue;
            }
            let part = self.atom(c)?;
            parts.push(self.repeated(part)?);
        }
        Some(Expr::Sequence(parts))
    }

    fn atom(&mut self, c: char) -> Option<Expr> {
        Some(match c {
            // The negation of no range contains every character.
            '.' => self.one(Set {
                negated: true,
                ..Set::default()
            })?,
            '[' => {
                let class = self.class()?;
                self.one(class)?
            }
            '\\' => {
                let escaped = self.escaped()?;
                self.one(escaped)?
            }
            '*' | '+' | '?' => return None,
            '(' => {
                if self.chars.next_if_eq(&'?').is_some() {
                    self.group()?;
                }
                let inner = self.either()?;
                self.chars.next_if_eq(&')')?;
                inner
            }
            other => self.one(Set::of(other))?,
        })
    }

    /// Reads the beginning of a group behind `(?`: `:`, or its name as in `<name>` and `P<name>`. No
    /// other group is supported.
    fn group(&mut self) -> Option<()> {
        if self.chars.next_if_eq(&':').is_some() {
            return Some(());
        }
        self.chars.next_if_eq(&'P');
        self.chars.next_if_eq(&'<')?;
        let mut name = String::new();
        while let Some(c) = self
            .chars
            .next_if(|c| c.is_ascii_alphanumeric() || *c == '_')
        {
            name.push(c);
        }
        self.chars.next_if_eq(&'>')?;
        (!name.is_empty()).then_some(())
    }

    /// Reads the characters up to `\E`, or up to the end.
    fn quoted(&mut self) -> Vec<char> {
        let mut quoted = Vec::new();
        while let Some(c) = self.chars.next() {
            if c == '\\' && self.chars.next_if_eq(&'E').is_some() {
                break;
            }
            quoted.push(c);
        }
        quoted
    }

    /// Reads an escape behind its backslash.
    fn escaped(&mut self) -> Option<Set> {
        let digits = match self.chars.next()? {
            'x' => 2,
            'u' => 4,
            other => return Set::escape(other),
        };
        let mut code = 0;
        for _ in 0..digits {
            code = code * 16 + self.chars.next()?.to_digit(16)?;
        }
        char::from_u32(code).map(Set::of)
    }

    /// Reads a POSIX class behind `[:`. Its characters are those of ASCII.
    fn posix(&mut self) -> Option<&'static [(char, char)]> {
        let mut name = String::new();
        while let Some(c) = self.chars.next_if(char::is_ascii_lowercase) {
            name.push(c);
        }
        self.chars.next_if_eq(&':')?;
        self.chars.next_if_eq(&']')?;
        let class = POSIX.iter().find(|(class, _)| *class == name);
        class.map(|(_, ranges)| *ranges)
    }

    fn class(&mut self) -> Option<Set> {
        let mut set = Set {
            negated: self.chars.next_if_eq(&'^').is_some(),
            ..Set::default()
        };
        loop {
            let low = match self.chars.next()? {
                // A bracket that comes first in a class is an ordinary character.
                ']' if !set.ranges.is_empty() => return Some(set),
                '[' if self.chars.next_if_eq(&':').is_some() => {
                    set.ranges.extend_from_slice(self.posix()?);
                    continue;
                }
                '\\' => {
                    let escaped = self.escaped()?;
                    if escaped.negated {
                        return None;
                    }
                    match escaped.ranges.as_slice() {
                        [(a, b)] if a == b => *a,
                        ranges => {
                            set.ranges.extend_from_slice(ranges);
                            continue;
                        }
                    }
                }
                c => c,
            };
            if self.chars.next_if_eq(&'-').is_none() {
                set.ranges.push((low, low));
                continue;
            }
            let high = match self.chars.next()? {
                // A hyphen that comes last in a class is an ordinary character.
                ']' => {
                    set.ranges.extend([(low, low), ('-', '-')]);
                    return Some(set);
                }
                '\\' => match self.escaped()?.ranges.as_slice() {
                    [(a, b)] if a == b => *a,
                    // A class is no limit of a range.
                    _ => return None,
                },
                high => high,
            };
            // A reversed range contains no character, and is an error in Perl.
            if high < low {
                return None;
            }
            set.ranges.push((low, high));
        }
    }

    fn repeated(&mut self, mut part: Expr) -> Option<Expr> {
        let mut repetitions = 0;
        while let Some(c) = self.chars.next_if(|c| matches!(c, '*' | '+' | '?' | '{')) {
            let (min, max) = match c {
                '*' => (0, None),
                '+' => (1, None),
                '?' => (0, Some(1)),
                _ => self.bounds()?,
            };
            repetitions += 1;
            if repetitions > MAX_REPETITIONS {
                return None;
            }
            part = Expr::Repeat(Box::new(part), min, max);
            // A match covers the whole text, so `*?` matches the same texts as `*`.
            self.chars.next_if_eq(&'?');
            // `*+` would give back no character.
            if matches!(self.chars.peek(), Some('*' | '+')) {
                return None;
            }
        }
        Some(part)
    }

    fn bounds(&mut self) -> Option<(u32, Option<u32>)> {
        let mut text = String::new();
        loop {
            match self.chars.next()? {
                '}' => break,
                c => text.push(c),
            }
        }
        let (low, high) = match text.split_once(',') {
            None => (text.parse().ok()?, Some(text.parse().ok()?)),
            Some((low, "")) => (low.parse().ok()?, None),
            Some((low, high)) => (low.parse().ok()?, Some(high.parse().ok()?)),
        };
        (low <= MAX_REPEAT && high.is_none_or(|h| low <= h && h <= MAX_REPEAT))
            .then_some((low, high))
    }
}

fn emit(expr: &Expr, program: &mut Vec<Step>) -> Option<()> {
    if program.len() > MAX_STEPS {
        return None;
    }
    match expr {
        Expr::One(set) => program.push(Step::One(*set)),
        Expr::Sequence(parts) => parts.iter().try_for_each(|p| emit(p, program))?,
        Expr::Either(options) => emit_either(options, program)?,
        Expr::Repeat(inner, min, max) => {
            for _ in 0..*min {
                let before = program.len();
                emit(inner, program)?;
                // Repetitions of nothing would not grow, so no limit would end them.
                if program.len() == before {
                    break;
                }
            }
            match max {
                None => emit_loop(inner, program)?,
                Some(max) => {
                    let optional = max - min;
                    let mut splits = Vec::new();
                    for _ in 0..optional {
                        splits.push(program.len());
                        // A placeholder. Its target is known only after the inner steps.
                        program.push(Step::Done);
                        emit(inner, program)?;
                    }
                    let end = program.len();
                    splits
                        .into_iter()
                        .for_each(|at| set(program, at, Step::Split(at + 1, end)));
                }
            }
        }
    }
    Some(())
}

fn emit_loop(inner: &Expr, program: &mut Vec<Step>) -> Option<()> {
    let start = program.len();
    // A placeholder. Its target is known only after the inner steps.
    program.push(Step::Done);
    emit(inner, program)?;
    program.push(Step::Jump(start));
    let end = program.len();
    set(program, start, Step::Split(start + 1, end));
    Some(())
}

fn emit_either(options: &[Expr], program: &mut Vec<Step>) -> Option<()> {
    let mut jumps = Vec::new();
    for (i, option) in options.iter().enumerate() {
        let split = (i + 1 < options.len()).then_some(program.len());
        if split.is_some() {
            // A placeholder. Its target is known only after the option.
            program.push(Step::Done);
        }
        emit(option, program)?;
        if let Some(split) = split {
            jumps.push(program.len());
            // A placeholder. Its target is known only after all options.
            program.push(Step::Done);
            let next = program.len();
            set(program, split, Step::Split(split + 1, next));
        }
    }
    let end = program.len();
    jumps
        .into_iter()
        .for_each(|at| set(program, at, Step::Jump(end)));
    Some(())
}

fn set(program: &mut [Step], at: usize, step: Step) {
    if let Some(slot) = program.get_mut(at) {
        *slot = step;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_slots_and_texts() {
        for (pattern, text, expected) in [
            (".*", "anything", true),
            ("a+?b", "b", false),
            ("a+?b", "aab", true),
            ("a??b{1,2}?", "bb", true),
            ("a{2}{2}", "aaaa", true),
            (
                "openEHR-EHR-CLUSTER\\.device(-[a-zA-Z0-9_]+)*\\.v1",
                "openEHR-EHR-CLUSTER.device-pump.v1",
                true,
            ),
            (
                "openEHR-EHR-CLUSTER\\.device(-[a-zA-Z0-9_]+)*\\.v1",
                "openEHR-EHR-CLUSTER.device.v12",
                false,
            ),
            (
                "openEHR-EHR-CLUSTER\\.(a|b)\\.v0|openEHR-EHR-CLUSTER\\.c\\.v1",
                "openEHR-EHR-CLUSTER.c.v1",
                true,
            ),
            (
                "openEHR-EHR-CLUSTER\\.(a|b)\\.v0|openEHR-EHR-CLUSTER\\.c\\.v1",
                "openEHR-EHR-CLUSTER.a.v1",
                false,
            ),
            ("[A-F0-9]{2,3}", "F00", true),
            ("[A-F0-9]{2,3}", "F000", false),
            ("[^-]+", "a-b", false),
            ("\\d{3}(\\.\\d)?", "123.4", true),
            ("", "", true),
            ("(a*)*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac", false),
            ("(?i)heart[- ]rate", "Heart Rate", true),
            ("(?i)[^a-f]X", "Ex", false),
            ("[a-a]", "a", true),
            ("[z-]+", "z-", true),
            ("(?i)\u{e5}", "\u{c5}", false),
            ("a.b", "a\nb", true),
            ("a+?b*?", "aab", true),
            ("\\x41\\u00e9", "A\u{e9}", true),
            ("[\\x41-\\x43]+", "ABC", true),
            ("[\\x41-\\x43]+", "x", false),
            ("[[:alpha:]_]+", "a_Z", true),
            ("[^[:digit:]]", "7", false),
            ("[[:space:]]", "\u{b}", true),
            ("\\Afoo\\z", "foo", true),
            ("\\Afoo\\z", "xfoo", false),
            ("\\Qa.b\\E+c", "a.bbc", true),
            ("\\Qa.b\\E", "axb", false),
            ("\\Q(", "(", true),
            ("x\\Q\\E", "x", true),
            ("(?<year>\\d{2})+", "1926", true),
            ("(?P<a>b|c)", "c", true),
        ] {
            assert_eq!(
                Pattern::compile(pattern).unwrap().matches(text),
                expected,
                "{pattern} on {text}"
            );
        }
        for (pattern, expected) in [
            ("[A-F0-9]{2,3}x?", "AA"),
            ("[^a]|bb", "A"),
            ("openEHR\\.(a|b)\\.v\\d+", "openEHR.a.v0"),
            (".*", "a"),
            ("a|b|", "a"),
            ("(|ab)(c?)", "c"),
            ("(x{2})*", "xx"),
            ("[^a-zA-Z0-9 -]?", "!"),
            ("[^\u{1}-~]*", "\u{7f}"),
            ("[\u{1}-~]", "a"),
            ("()|", ""),
            ("", ""),
        ] {
            assert_eq!(
                Pattern::compile(pattern).unwrap().example().as_deref(),
                Some(expected),
                "{pattern}"
            );
        }
        assert!(
            [
                "(?=look)ahead",
                "\\bword",
                "(a)\\1",
                "\\x4",
                "\\ud800",
                "a(?i)b",
                "[[:letter:]]",
                "[a-\\d]",
                "(?<>a)",
                "(?<=a)b",
                "(?P=a)",
                "\\Qa\\E**",
                "[z-a]",
                "[a9-0]",
                "[b-\\a]",
                "a{3,2}"
            ]
            .iter()
            .all(|other| Pattern::compile(other).is_none())
        );
        assert_eq!(Pattern::compile("((a{1000}){1000}){1000}"), None);
    }

    #[test]
    fn ranges_are_united() {
        for (pattern, text, expected) in [
            ("[a-fd-zb]", "y", true),
            ("[xa-f]", "b", true),
            ("[xa-f]", "g", false),
            ("[^xa-fc-h]", "g", false),
            ("[^xa-fc-h]", "i", true),
            ("(?i)[X-Za]", "A", true),
            ("[\\w\\d_-]", "-", true),
            ("a(b{0}){1000}{1000}{1000}c", "ac", true),
        ] {
            assert_eq!(
                Pattern::compile(pattern).unwrap().matches(text),
                expected,
                "{pattern} on {text}"
            );
        }
        let wide = Pattern::compile(&format!("[{}]{{1000}}", "\\w".repeat(4_900))).unwrap();
        let sizes: Vec<usize> = wide.sets.iter().map(|set| set.ranges.len()).collect();
        assert_eq!(sizes, [4]);
    }

    #[test]
    fn long_and_deep_expressions_do_not_compile() {
        assert!(Pattern::compile(&format!("a{}", "{1}".repeat(8))).is_some());
        for source in [
            format!("a{}", "{1}".repeat(9)),
            format!("a{}", "?*".repeat(20_000)),
            "(".repeat(40_000),
            "a".repeat(7_000_000),
            format!("[{}]", "\\w".repeat(200_000)),
        ] {
            assert_eq!(Pattern::compile(&source), None);
        }
    }
}
