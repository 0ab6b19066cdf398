//! Source text in which each mutant is a branch beside the code that it replaces.
//!
//! `a < b` becomes `(if crate::mutation_switch::on(7) { a <= b } else { a < b })`. The branch of a
//! mutant holds the original text of its operands, and the other branch holds their mutants. So the
//! text grows with the depth of nesting, not with its power.

use crate::list::{Genre, Mutant};
use std::ops::Range;
use syn::spanned::Spanned;
use syn::visit::Visit;

/// A file with the branches of its mutants.
pub struct Woven {
    /// The new text.
    pub text: String,
    /// The mutants that have a branch, and the place of the branch in the new text.
    pub branches: Vec<(Range<usize>, u32)>,
}

/// A place of the source at which mutants have branches.
struct Site {
    range: Range<usize>,
    /// The number of each mutant and the text of its branch.
    mutants: Vec<(u32, String)>,
    form: Form,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// An expression: `(if on { … } else { expression })`.
    Expression,
    /// The start of a body: `if on { return …; }`.
    Body,
    /// The end of the pattern of an arm: ` if !on`.
    Arm,
}

/// A text to insert into the source.
struct Insertion {
    at: usize,
    /// Insertions at the same place are sorted by this.
    rank: (u8, usize),
    text: String,
    /// The branches inside the text.
    branches: Vec<(Range<usize>, u32)>,
}

/// Adds the branches of mutants to a text.
pub fn weave(source: &str, mutants: &[&Mutant]) -> Result<Woven, String> {
    let tree = syn::parse_file(source).map_err(|e| e.to_string())?;
    let mut finder = Finder {
        source: Source::new(source),
        mutants,
        sites: Vec::new(),
        constant: 0,
    };
    finder.visit_file(&tree);
    let mut insertions: Vec<Insertion> = finder.sites.iter().flat_map(insertions).collect();
    insertions.sort_by_key(|i| (i.at, i.rank));
    Ok(inserted(source, insertions))
}

fn inserted(source: &str, insertions: Vec<Insertion>) -> Woven {
    let (mut text, mut branches, mut from) = (String::new(), Vec::new(), 0);
    for insertion in insertions {
        text.push_str(&source[from..insertion.at]);
        from = insertion.at;
        let start = text.len();
        text.push_str(&insertion.text);
        branches.extend(
            insertion
                .branches
                .into_iter()
                .map(|(r, id)| (start + r.start..start + r.end, id)),
        );
    }
    text.push_str(&source[from..]);
    Woven { text, branches }
}

/// Returns the texts in front of a site and behind it.
fn insertions(site: &Site) -> Vec<Insertion> {
    let (mut text, mut branches) = (String::new(), Vec::new());
    if site.form == Form::Expression {
        text.push('(');
    }
    for (id, branch) in &site.mutants {
        let start = text.len();
        text.push_str(&match site.form {
            Form::Expression => format!("if crate::mutation_switch::on({id}) {{ {branch} }} else "),
            Form::Body => format!("if crate::mutation_switch::on({id}) {{ return {branch}; }} "),
            Form::Arm => format!(" if !crate::mutation_switch::on({id})"),
        });
        branches.push((start..text.len(), *id));
    }
    let length = site.range.len();
    let insertion = |at, rank, text, branches| Insertion {
        at,
        rank,
        text,
        branches,
    };
    if site.form != Form::Expression {
        // A body starts in front of an expression that starts it, and a guard ends a pattern.
        return vec![insertion(site.range.start, (1, 0), text, branches)];
    }
    text.push_str("{ ");
    vec![
        // Of expressions that start at one place, the longest comes first.
        insertion(site.range.start, (2, usize::MAX - length), text, branches),
        // Of those that end at one place, the shortest comes first.
        insertion(site.range.end, (0, length), " })".to_owned(), Vec::new()),
    ]
}

/// A text with the offsets of its lines.
struct Source<'a> {
    text: &'a str,
    lines: Vec<usize>,
}

impl<'a> Source<'a> {
    fn new(text: &'a str) -> Source<'a> {
        let ends = text.match_indices('\n').map(|(at, _)| at + 1);
        Source {
            text,
            lines: std::iter::once(0).chain(ends).collect(),
        }
    }

    /// Returns the offset of a line, from 1, and a column in characters, from 0.
    fn offset(&self, line: usize, column: usize) -> usize {
        let start = self.lines[line - 1];
        let rest = &self.text[start..];
        start
            + rest
                .char_indices()
                .nth(column)
                .map_or(rest.len(), |(at, _)| at)
    }

    fn range(&self, span: proc_macro2::Span) -> Range<usize> {
        let (start, end) = (span.start(), span.end());
        self.offset(start.line, start.column)..self.offset(end.line, end.column)
    }

    fn range_of(&self, mutant: &Mutant) -> Range<usize> {
        self.offset(mutant.start.0, mutant.start.1 - 1)..self.offset(mutant.end.0, mutant.end.1 - 1)
    }
}

/// Finds the expressions whose parts the mutants replace.
struct Finder<'a> {
    source: Source<'a>,
    mutants: &'a [&'a Mutant],
    sites: Vec<Site>,
    /// The number of constant contexts around the present place. A switch is no constant.
    constant: usize,
}

impl Finder<'_> {
    /// Adds a site whose mutants replace the text at `changed`, a part of `whole`.
    fn site(&mut self, genre: Genre, whole: Range<usize>, changed: Range<usize>, form: Form) {
        let at_place = |m: &&&Mutant| m.genre == genre && self.source.range_of(m) == changed;
        let text = self.source.text;
        let branch = |m: &&Mutant| match form {
            Form::Expression => format!(
                "{}{}{}",
                &text[whole.start..changed.start],
                m.replacement,
                &text[changed.end..whole.end]
            ),
            _ => m.replacement.clone(),
        };
        let mutants: Vec<_> = self
            .mutants
            .iter()
            .filter(at_place)
            .filter(|m| !(form == Form::Body && m.is_opaque))
            .map(|m| (m.id, branch(m)))
            .collect();
        if !mutants.is_empty() && self.constant == 0 {
            self.sites.push(Site {
                range: whole,
                mutants,
                form,
            });
        }
    }

    fn body(&mut self, block: &syn::Block) {
        let (Some(first), Some(last)) = (block.stmts.first(), block.stmts.last()) else {
            return;
        };
        let (start, end) = (
            self.source.range(first.span()),
            self.source.range(last.span()),
        );
        self.site(
            Genre::FnValue,
            start.start..start.start,
            start.start..end.end,
            Form::Body,
        );
    }

    fn constant(&mut self, visit: impl FnOnce(&mut Self)) {
        self.constant += 1;
        visit(self);
        self.constant -= 1;
    }

    fn function(
        &mut self,
        signature: &syn::Signature,
        block: &syn::Block,
        visit: impl FnOnce(&mut Self),
    ) {
        if signature.constness.is_some() {
            return self.constant(visit);
        }
        self.body(block);
        visit(self);
    }
}

/// Returns whether a condition is a chain with `let`, which cannot stand in a branch.
fn has_let(expression: &syn::Expr) -> bool {
    match expression {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.constant(|finder| syn::visit::visit_item_const(finder, item));
    }

    fn visit_impl_item_const(&mut self, item: &'ast syn::ImplItemConst) {
        self.constant(|finder| syn::visit::visit_impl_item_const(finder, item));
    }

    fn visit_item_static(&mut self, item: &'ast syn::ItemStatic) {
        self.constant(|finder| syn::visit::visit_item_static(finder, item));
    }

    fn visit_expr_const(&mut self, item: &'ast syn::ExprConst) {
        self.constant(|finder| syn::visit::visit_expr_const(finder, item));
    }

    fn visit_expr_repeat(&mut self, repeat: &'ast syn::ExprRepeat) {
        self.visit_expr(&repeat.expr);
        self.constant(|finder| finder.visit_expr(&repeat.len));
    }

    fn visit_variant(&mut self, item: &'ast syn::Variant) {
        self.constant(|finder| syn::visit::visit_variant(finder, item));
    }

    fn visit_pat(&mut self, item: &'ast syn::Pat) {
        self.constant(|finder| syn::visit::visit_pat(finder, item));
    }

    fn visit_type(&mut self, item: &'ast syn::Type) {
        self.constant(|finder| syn::visit::visit_type(finder, item));
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig, &item.block, |finder| {
            syn::visit::visit_item_fn(finder, item)
        });
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.sig, &item.block, |finder| {
            syn::visit::visit_impl_item_fn(finder, item)
        });
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        let Some(block) = &item.default else { return };
        self.function(&item.sig, block, |finder| {
            syn::visit::visit_trait_item_fn(finder, item)
        });
    }

    fn visit_expr_binary(&mut self, binary: &'ast syn::ExprBinary) {
        if !has_let(&binary.left) && !has_let(&binary.right) {
            let (whole, operator) = (
                self.source.range(binary.span()),
                self.source.range(binary.op.span()),
            );
            self.site(Genre::BinaryOperator, whole, operator, Form::Expression);
        }
        syn::visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_unary(&mut self, unary: &'ast syn::ExprUnary) {
        let (whole, operator) = (
            self.source.range(unary.span()),
            self.source.range(unary.op.span()),
        );
        self.site(Genre::UnaryOperator, whole, operator, Form::Expression);
        syn::visit::visit_expr_unary(self, unary);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        let pattern = self.source.range(arm.pat.span()).end;
        self.site(
            Genre::MatchArm,
            pattern..pattern,
            self.source.range(arm.span()),
            Form::Arm,
        );
        if let Some((_, guard)) = &arm.guard {
            let guard = self.source.range(guard.span());
            self.site(Genre::MatchArmGuard, guard.clone(), guard, Form::Expression);
        }
        syn::visit::visit_arm(self, arm);
    }

    fn visit_expr_struct(&mut self, literal: &'ast syn::ExprStruct) {
        let whole = self.source.range(literal.span());
        for pair in literal.fields.pairs().filter(|_| literal.rest.is_some()) {
            let mut field = self.source.range(pair.value().span());
            if let Some(comma) = pair.punct() {
                field.end = self.source.range(comma.span()).end;
            }
            self.site(Genre::StructField, whole.clone(), field, Form::Expression);
        }
        syn::visit::visit_expr_struct(self, literal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a mutant of the first occurrence of a text in a source of one line.
    fn mutant(id: u32, genre: Genre, source: &str, replaced: &str, replacement: &str) -> Mutant {
        let at = source.find(replaced).unwrap();
        let column = |at: usize| source[..at].chars().count() + 1;
        Mutant {
            id,
            file: String::new(),
            name: String::new(),
            key: String::new(),
            genre,
            start: (1, column(at)),
            end: (1, column(at + replaced.len())),
            replacement: replacement.to_owned(),
            is_opaque: false,
        }
    }

    fn woven(source: &str, mutants: &[(Genre, &str, &str)]) -> String {
        let mutants: Vec<Mutant> = (1..)
            .zip(mutants)
            .map(|(id, (genre, replaced, replacement))| {
                mutant(id, *genre, source, replaced, replacement)
            })
            .collect();
        let woven = weave(source, &mutants.iter().collect::<Vec<_>>()).unwrap();
        assert!(syn::parse_file(&woven.text).is_ok(), "{}", woven.text);
        for (range, id) in &woven.branches {
            let branch = &woven.text[range.clone()];
            assert!(branch.contains(&format!("on({id})")), "{branch}");
        }
        woven.text.replace("crate::mutation_switch::", "")
    }

    #[test]
    fn an_operator_has_a_branch_with_the_original_operands() {
        let source = "fn f() -> bool { é + b < c }";
        let mutants = [
            (Genre::BinaryOperator, "+", "-"),
            (Genre::BinaryOperator, "<", "<="),
            (Genre::BinaryOperator, "<", ">"),
        ];
        assert_eq!(
            woven(source, &mutants),
            "fn f() -> bool { (if on(2) { é + b <= c } else if on(3) { é + b > c } else { \
             (if on(1) { é - b } else { é + b }) < c }) }"
        );
    }

    #[test]
    fn a_body_returns_early() {
        let source = "fn f() -> u8 { a + 1 }";
        let mutants = [
            (Genre::FnValue, "a + 1", "0"),
            (Genre::BinaryOperator, "+", "*"),
        ];
        assert_eq!(
            woven(source, &mutants),
            "fn f() -> u8 { if on(1) { return 0; } (if on(2) { a * 1 } else { a + 1 }) }"
        );
    }

    #[test]
    fn arms_guards_fields_and_unary_operators_have_branches() {
        let source = "fn f() { match a { 1 => !b, 2 if zz => S { x: 1, ..d }, _ => e } }";
        let mutants = [
            (Genre::MatchArm, "1 => !b,", ""),
            (Genre::UnaryOperator, "!", ""),
            (Genre::MatchArmGuard, "zz", "true"),
            (Genre::StructField, "x: 1,", ""),
        ];
        assert_eq!(
            woven(source, &mutants),
            "fn f() { match a { 1 if !on(1) => (if on(2) { b } else { !b }), \
             2 if (if on(3) { true } else { zz }) => \
             (if on(4) { S {  ..d } } else { S { x: 1, ..d } }), _ => e } }"
        );
    }

    #[test]
    fn constants_and_conditions_with_let_have_no_branch() {
        let source = "const A: u8 = 1 + 2; const fn g() -> u8 { 3 * 4 } \
                      fn f() { if let Some(b) = c && d {} }";
        let mutants = [
            (Genre::BinaryOperator, "+", "-"),
            (Genre::BinaryOperator, "*", "+"),
            (Genre::BinaryOperator, "&&", "||"),
        ];
        assert_eq!(woven(source, &mutants), source);
    }
}
