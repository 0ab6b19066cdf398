//! Constraints on values in templates of ADL 1.4: numbers, texts, codes, quantities, dates, and the
//! rules of slots.

use super::super::pattern::Pattern;
use super::super::slot::rules;
use super::super::tree::{Constraint, Interval, Multiplicity, OrdinalItem, QuantityItem, Validity};
use super::super::xml::{Xml, truth};
use super::OptReader;
use aqlite_rm::diag::Diagnostic;
use aqlite_rm::number::TextForm;
use aqlite_rm::time::TemporalKind;

impl OptReader<'_> {
    pub(super) fn constraint(&mut self, xml: Xml<'_>) -> Constraint {
        let constraint = self.constraint_here(xml);
        constraint.measure(xml, &mut self.meter);
        constraint
    }

    fn constraint_here(&mut self, xml: Xml<'_>) -> Constraint {
        match xml.xsi_type() {
            Some("ARCHETYPE_SLOT") => self.slot(xml),
            Some("C_PRIMITIVE_OBJECT") => xml
                .child("item")
                .map_or(Constraint::Open, |item| self.primitive(item)),
            Some("C_CODE_PHRASE") => codes(xml),
            Some("C_CODE_REFERENCE") => code_set(xml, "referenceSetUri"),
            Some("CONSTRAINT_REF") => code_set(xml, "reference"),
            Some("C_DV_QUANTITY") => Constraint::Quantity {
                property: xml
                    .text_along(&["property", "code_string"])
                    .map(str::to_owned),
                list: xml.all("list").map(|item| self.quantity(item)).collect(),
            },
            Some("C_DV_ORDINAL" | "C_DV_SCALE") => Constraint::Ordinal {
                list: xml.all("list").filter_map(|i| self.ordinal(i)).collect(),
            },
            None
            | Some(
                "C_COMPLEX_OBJECT"
                | "C_ARCHETYPE_ROOT"
                | "T_COMPLEX_OBJECT"
                | "ARCHETYPE_INTERNAL_REF",
            ) => Constraint::Open,
            Some(other) => {
                let message = format!("constraints of type `{other}` are not checked");
                self.warn("TPL0402", xml, message);
                Constraint::Open
            }
        }
    }

    fn primitive(&mut self, item: Xml<'_>) -> Constraint {
        match item.xsi_type() {
            Some("C_BOOLEAN") => Constraint::Boolean {
                true_valid: self.flag(item, "true_valid").unwrap_or(true),
                false_valid: self.flag(item, "false_valid").unwrap_or(true),
            },
            Some("C_STRING") => Constraint::Text {
                pattern: pattern_of(item).and_then(|p| self.pattern(item, p)),
                list: item
                    .all("list")
                    .map(|l| listed_text(l).to_owned())
                    .collect(),
                open: self.flag(item, "list_open").unwrap_or(false),
            },
            Some("C_INTEGER") => Constraint::Integer {
                range: item.child("range").map(|r| self.interval(r)),
                list: self.numbers(item),
            },
            Some("C_REAL") => Constraint::Real {
                range: item.child("range").map(|r| self.interval(r)),
                list: self.numbers(item),
            },
            Some("C_DATE") => self.temporal(item, TemporalKind::Date),
            Some("C_TIME") => self.temporal(item, TemporalKind::Time),
            Some("C_DATE_TIME") => self.temporal(item, TemporalKind::DateTime),
            Some("C_DURATION") => self.temporal(item, TemporalKind::Duration),
            _ => Constraint::Open,
        }
    }

    fn temporal(&mut self, item: Xml<'_>, kind: TemporalKind) -> Constraint {
        let range = item.child("range").map(|r| self.interval(r));
        for limit in range.iter().flat_map(|range| range.unreadable(kind)) {
            let message = format!("the limit `{limit}` is not understood: it is not checked");
            self.warn("TPL0402", item, message);
        }
        Constraint::Temporal {
            kind,
            pattern: pattern_of(item).map(str::to_owned),
            range,
            fraction: match self.flag(item, "fractional_seconds_allowed") {
                Some(false) => Validity::Prohibited,
                _ => validity(item, "millisecond_validity"),
            },
            zone: validity(item, "timezone_validity"),
        }
    }

    fn quantity(&mut self, item: Xml<'_>) -> QuantityItem {
        QuantityItem {
            units: item.text_along(&["units"]).unwrap_or_default().to_owned(),
            magnitude: item.child("magnitude").map(|m| self.interval(m)),
            precision: item.child("precision").map(|p| self.interval(p)),
        }
    }

    fn ordinal(&mut self, item: Xml<'_>) -> Option<OrdinalItem> {
        let Some((value, symbol)) = item.child("value").zip(item.child("symbol")) else {
            let problem = Diagnostic::error(
                "TPL0302",
                item.span(),
                "an ordinal of a list lacks `value` or `symbol`",
            );
            self.errors
                .push(problem.with_help("write the number and its symbol"));
            return None;
        };
        let code = symbol.child("defining_code").unwrap_or(symbol);
        Some(OrdinalItem {
            value: self.number(value)?,
            terminology: code
                .text_along(&["terminology_id", "value"])
                .unwrap_or_default()
                .to_owned(),
            code: code
                .text_along(&["code_string"])
                .unwrap_or_default()
                .to_owned(),
        })
    }

    /// Reads a slot. If its inclusions are not understood, any archetype is permitted: its exclusions
    /// may be those of the rest.
    fn slot(&mut self, xml: Xml<'_>) -> Constraint {
        let includes = self.rules(xml, "includes");
        let excludes = self.rules(xml, "excludes").filter(|_| includes.is_some());
        Constraint::Slot {
            includes: includes.unwrap_or_default(),
            excludes: excludes.unwrap_or_default(),
        }
    }

    fn rules<'d>(&mut self, slot: Xml<'d>, side: &'d str) -> Option<Vec<Pattern>> {
        let rules = rules(slot, side, &mut self.meter);
        let unknown = |at| {
            let message = String::from("a rule of a slot is not understood and not checked");
            self.warn("TPL0403", at, message);
        };
        rules.map_err(unknown).ok()
    }

    fn pattern(&mut self, at: Xml<'_>, text: &str) -> Option<Pattern> {
        let text = text
            .strip_prefix('/')
            .and_then(|t| t.strip_suffix('/'))
            .unwrap_or(text);
        let pattern = self.meter.compile(at, text);
        if pattern.is_none() {
            let message = format!("the expression `{text}` is not understood and not checked");
            self.warn("TPL0403", at, message);
        }
        pattern
    }

    pub(super) fn multiplicity(&mut self, xml: Xml<'_>, what: &str) -> Multiplicity {
        let interval: Interval<u32> = self.interval(xml);
        let lower = interval.lower.map_or(0, |lower| {
            if interval.lower_included {
                lower
            } else {
                lower.saturating_add(1)
            }
        });
        let upper = interval.upper.map(|upper| {
            if interval.upper_included {
                upper
            } else {
                upper.saturating_sub(1)
            }
        });
        let count = Multiplicity { lower, upper };
        self.meter.count(xml, what, count);
        count
    }

    fn interval<T: TextForm>(&mut self, xml: Xml<'_>) -> Interval<T> {
        Interval {
            lower: self.limit(xml, "lower", "lower_unbounded"),
            upper: self.limit(xml, "upper", "upper_unbounded"),
            lower_included: self.flag(xml, "lower_included").unwrap_or(true),
            upper_included: self.flag(xml, "upper_included").unwrap_or(true),
        }
    }

    /// Reads a limit of an interval. A limit beside `unbounded` is ignored.
    fn limit<T: TextForm>(
        &mut self,
        xml: Xml<'_>,
        name: &'static str,
        unbounded: &str,
    ) -> Option<T> {
        let is_unbounded = self.flag(xml, unbounded).unwrap_or(false);
        let written = xml.child(name).filter(|_| !is_unbounded)?;
        self.number(written)
    }

    /// Reads a child element of the type `xs:boolean`. An empty one counts as absent, and an
    /// unreadable one as an error.
    pub(super) fn flag(&mut self, xml: Xml<'_>, name: &str) -> Option<bool> {
        let flag = xml.child(name).filter(|flag| !flag.text().is_empty())?;
        let read = truth(flag.text());
        if read.is_none() {
            let message = format!("`{name}` is `{}`, expected a boolean", flag.text());
            let problem = Diagnostic::error("TPL0305", flag.span(), message);
            self.errors
                .push(problem.with_help("write `true` or `false`"));
        }
        read
    }

    fn numbers<T: TextForm>(&mut self, item: Xml<'_>) -> Vec<T> {
        item.all("list").filter_map(|l| self.number(l)).collect()
    }

    fn number<T: TextForm>(&mut self, xml: Xml<'_>) -> Option<T> {
        let number = T::from_text(xml.text());
        if number.is_none() {
            let problem = Diagnostic::error(
                "TPL0302",
                xml.span(),
                format!("`{}` is `{}`, expected a number", xml.name(), xml.text()),
            );
            self.errors
                .push(problem.with_help("write a number, or take the limit away"));
        }
        number
    }
}

/// Reads a VALIDITY_KIND: 1001 is mandatory, 1003 is prohibited.
fn validity(item: Xml<'_>, name: &str) -> Validity {
    match item.text_along(&[name]) {
        Some("1001" | "mandatory") => Validity::Mandatory,
        Some("1003" | "disallowed" | "prohibited") => Validity::Prohibited,
        _ => Validity::Optional,
    }
}

/// Returns the pattern of a constraint, unless it is empty.
fn pattern_of<'d>(item: Xml<'d>) -> Option<&'d str> {
    item.text_along(&["pattern"]).filter(|p| !p.is_empty())
}

/// Returns a text of a list as the template has it. White space with line breaks is that of the
/// layout of the XML text.
fn listed_text<'d>(item: Xml<'d>) -> &'d str {
    let exact = item.exact_text();
    match exact.contains(['\n', '\r']) {
        true => item.text(),
        false => exact,
    }
}

/// Reads a list of codes.
fn codes(xml: Xml<'_>) -> Constraint {
    let terminology = xml
        .text_along(&["terminology_id", "value"])
        .or_else(|| xml.text_along(&["terminology_id"]));
    let codes = xml.all("code_list").map(Xml::text);
    Constraint::Code {
        terminology: terminology.unwrap_or_default().to_owned(),
        codes: codes.filter(|c| !c.is_empty()).map(str::to_owned).collect(),
        open: false,
    }
}

/// Reads a reference to a value set.
fn code_set(xml: Xml<'_>, name: &str) -> Constraint {
    Constraint::CodeSet {
        reference: xml.text_along(&[name]).unwrap_or_default().to_owned(),
    }
}
