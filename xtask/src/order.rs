//! A wasm module with its functions in the order of their bytes: what is alike stands together, and so the module packs smaller.

use std::collections::BTreeMap;
use std::convert::Infallible;
use wasm_encoder::reencode::{Error, Reencode};
use wasm_encoder::{CodeSection, FunctionSection, Module};
use wasmparser::{CodeSectionReader, FunctionBody, FunctionSectionReader, Parser, Payload, TypeRef};

/// The same module; only the numbers of its own functions are others.
///
/// # Errors
/// When it is not a module.
pub fn in_order(wasm: &[u8]) -> Result<Vec<u8>, String> {
    let mut order = Order::of(wasm).map_err(|e| e.to_string())?;
    let mut module = Module::new();
    order.parse_core_module(&mut module, Parser::new(0), wasm).map_err(|e| e.to_string())?;
    Ok(module.finish())
}

/// Old numbers of functions and new ones.
#[derive(Default)]
struct Order {
    imported: u32,
    /// Places in the old code section, in the new order.
    places: Vec<usize>,
    /// New numbers by old ones; imported functions keep theirs.
    numbers: BTreeMap<u32, u32>,
}

impl Order {
    fn of(wasm: &[u8]) -> wasmparser::Result<Order> {
        let (mut order, mut bodies) = (Order::default(), Vec::new());
        for payload in Parser::new(0).parse_all(wasm) {
            match payload? {
                Payload::ImportSection(imports) => {
                    for import in imports.into_imports() {
                        order.imported += u32::from(matches!(import?.ty, TypeRef::Func(_)));
                    }
                }
                Payload::CodeSectionEntry(body) => bodies.push(body),
                _ => {}
            }
        }
        order.places = (0..bodies.len()).collect();
        order.places.sort_by_key(|place| bodies.get(*place).map(FunctionBody::as_bytes));
        let number = |place: usize| order.imported + u32::try_from(place).unwrap_or(u32::MAX);
        order.numbers = order.places.iter().enumerate().map(|(new, old)| (number(*old), number(new))).collect();
        Ok(order)
    }

    fn ordered<T: Clone>(&self, items: &[T]) -> Vec<T> {
        self.places.iter().filter_map(|place| items.get(*place).cloned()).collect()
    }
}

impl Reencode for Order {
    type Error = Infallible;

    fn function_index(&mut self, function: u32) -> Result<u32, Error> {
        Ok(self.numbers.get(&function).copied().unwrap_or(function))
    }

    fn parse_function_section(&mut self, functions: &mut FunctionSection, section: FunctionSectionReader<'_>) -> Result<(), Error> {
        let types = section.into_iter().collect::<Result<Vec<u32>, _>>()?;
        for ty in self.ordered(&types) {
            functions.function(self.type_index(ty)?);
        }
        Ok(())
    }

    fn parse_code_section(&mut self, code: &mut CodeSection, section: CodeSectionReader<'_>) -> Result<(), Error> {
        let bodies = section.into_iter().collect::<Result<Vec<FunctionBody<'_>>, _>>()?;
        self.ordered(&bodies).into_iter().try_for_each(|body| self.parse_function_body(code, body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wasm_encoder::{EntityType, ExportKind, ExportSection, Function, ImportSection, Instruction, TypeSection, ValType};

    /// A module that imports one function and has two, which give 2 and what the other gives.
    fn small() -> Vec<u8> {
        let mut types = TypeSection::new();
        types.ty().function([], [ValType::I32]);
        let (mut imports, mut functions, mut exports, mut code) =
            (ImportSection::new(), FunctionSection::new(), ExportSection::new(), CodeSection::new());
        imports.import("host", "one", EntityType::Function(0));
        functions.function(0).function(0);
        exports.export("two", ExportKind::Func, 1).export("same", ExportKind::Func, 2);
        for instruction in [Instruction::I32Const(2), Instruction::Call(1)] {
            let mut function = Function::new([]);
            function.instruction(&instruction).instruction(&Instruction::End);
            code.function(&function);
        }
        let mut module = Module::new();
        module.section(&types).section(&imports).section(&functions).section(&exports).section(&code);
        module.finish()
    }

    #[test]
    fn functions_move_with_their_exports_and_calls() {
        let sorted = in_order(&small()).unwrap();
        assert_eq!(in_order(&sorted).unwrap(), sorted, "what is in order stays");
        let mut exports = Vec::new();
        let mut bodies = Vec::new();
        for payload in Parser::new(0).parse_all(&sorted) {
            match payload.unwrap() {
                Payload::ExportSection(section) => exports.extend(section.into_iter().map(|e| e.unwrap()).map(|e| (e.name, e.index))),
                Payload::CodeSectionEntry(body) => bodies.push(body.as_bytes().to_vec()),
                _ => {}
            }
        }
        assert_eq!(exports, [("two", 2), ("same", 1)], "a call (0x10) goes before a constant (0x41)");
        assert_eq!(bodies, [vec![0, 0x10, 2, 0x0b], vec![0, 0x41, 2, 0x0b]]);
    }

    #[test]
    fn what_is_no_module_is_refused() {
        assert!(in_order(b"no module").is_err());
    }
}
