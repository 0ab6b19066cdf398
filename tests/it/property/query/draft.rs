//! The parts of a random query: printed as text, and reduced one part at a time.

use aqlite::aql::Parameters;

#[derive(Clone)]
pub struct Draft {
    pub parameters: Parameters,
    pub select: Vec<String>,
    pub distinct: bool,
    pub top: Option<String>,
    pub from: From,
    pub condition: Option<Condition>,
    pub order: Vec<String>,
    pub limit: Option<String>,
}

#[derive(Clone)]
pub enum From {
    Class(String, Option<(bool, Box<From>)>),
    And(Box<From>, Box<From>),
    Or(Box<From>, Box<From>),
}

#[derive(Clone)]
pub enum Condition {
    Plain(String),
    Not(Box<Condition>),
    And(Box<Condition>, Box<Condition>),
    Or(Box<Condition>, Box<Condition>),
}

impl Draft {
    pub fn text(&self) -> String {
        let distinct = if self.distinct { "DISTINCT " } else { "" };
        let top = self
            .top
            .as_ref()
            .map(|t| format!("{t} "))
            .unwrap_or_default();
        let mut out = format!(
            "SELECT {distinct}{top}{}\nFROM {}",
            self.select.join(", "),
            self.from.text()
        );
        if let Some(condition) = &self.condition {
            out += &format!("\nWHERE {}", condition.text());
        }
        if !self.order.is_empty() {
            out += &format!("\nORDER BY {}", self.order.join(", "));
        }
        if let Some(limit) = &self.limit {
            out += &format!("\n{limit}");
        }
        out
    }

    /// Returns drafts that lack one part.
    pub fn smaller(&self) -> Vec<Draft> {
        let mut out = vec![
            Draft {
                condition: None,
                ..self.clone()
            },
            Draft {
                order: Vec::new(),
                ..self.clone()
            },
            Draft {
                distinct: false,
                ..self.clone()
            },
            Draft {
                top: None,
                limit: None,
                ..self.clone()
            },
        ];
        out.retain(|d| d.text() != self.text());
        for i in 0..self.select.len() {
            let mut smaller = self.clone();
            smaller.select.remove(i);
            if !smaller.select.is_empty() {
                out.push(smaller);
            }
        }
        for i in 0..self.order.len() {
            let mut smaller = self.clone();
            smaller.order.remove(i);
            out.push(smaller);
        }
        out.extend(self.from.smaller().into_iter().map(|from| Draft {
            from,
            ..self.clone()
        }));
        out.extend(
            self.condition
                .iter()
                .flat_map(Condition::smaller)
                .map(|condition| Draft {
                    condition: Some(condition),
                    ..self.clone()
                }),
        );
        out
    }
}

impl From {
    fn text(&self) -> String {
        match self {
            From::Class(head, None) => head.clone(),
            From::Class(head, Some((negated, inner))) => format!(
                "{head}{} CONTAINS ({})",
                if *negated { " NOT" } else { "" },
                inner.text()
            ),
            From::And(left, right) => format!("({}) AND ({})", left.text(), right.text()),
            From::Or(left, right) => format!("({}) OR ({})", left.text(), right.text()),
        }
    }

    fn smaller(&self) -> Vec<From> {
        match self {
            From::Class(head, contains) => {
                let mut out: Vec<From> = contains
                    .iter()
                    .map(|(_, inner)| (**inner).clone())
                    .collect();
                if let Some((negated, inner)) = contains {
                    out.push(From::Class(head.clone(), None));
                    out.extend(
                        inner
                            .smaller()
                            .into_iter()
                            .map(|i| From::Class(head.clone(), Some((*negated, Box::new(i))))),
                    );
                }
                if let Some((plain, _)) = head.split_once('[') {
                    out.push(From::Class(plain.to_owned(), contains.clone()));
                }
                out
            }
            From::And(left, right) | From::Or(left, right) => {
                let is_and = matches!(self, From::And(..));
                let both = |l: From, r: From| {
                    if is_and {
                        From::And(Box::new(l), Box::new(r))
                    } else {
                        From::Or(Box::new(l), Box::new(r))
                    }
                };
                let mut out = vec![(**left).clone(), (**right).clone()];
                out.extend(
                    left.smaller()
                        .into_iter()
                        .map(|l| both(l, (**right).clone())),
                );
                out.extend(
                    right
                        .smaller()
                        .into_iter()
                        .map(|r| both((**left).clone(), r)),
                );
                out
            }
        }
    }
}

impl Condition {
    pub fn text(&self) -> String {
        match self {
            Condition::Plain(text) => text.clone(),
            Condition::Not(inner) => format!("NOT ({})", inner.text()),
            Condition::And(left, right) => format!("({}) AND ({})", left.text(), right.text()),
            Condition::Or(left, right) => format!("({}) OR ({})", left.text(), right.text()),
        }
    }

    fn smaller(&self) -> Vec<Condition> {
        match self {
            Condition::Plain(_) => Vec::new(),
            Condition::Not(inner) => {
                let mut out = vec![(**inner).clone()];
                out.extend(
                    inner
                        .smaller()
                        .into_iter()
                        .map(|i| Condition::Not(Box::new(i))),
                );
                out
            }
            Condition::And(left, right) | Condition::Or(left, right) => {
                let is_and = matches!(self, Condition::And(..));
                let both = |l: Condition, r: Condition| {
                    if is_and {
                        Condition::And(Box::new(l), Box::new(r))
                    } else {
                        Condition::Or(Box::new(l), Box::new(r))
                    }
                };
                let mut out = vec![(**left).clone(), (**right).clone()];
                out.extend(
                    left.smaller()
                        .into_iter()
                        .map(|l| both(l, (**right).clone())),
                );
                out.extend(
                    right
                        .smaller()
                        .into_iter()
                        .map(|r| both((**left).clone(), r)),
                );
                out
            }
        }
    }
}
