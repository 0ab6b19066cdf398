//! A wasm module whose functions stand each beside the one most like it, those that are called most in front, and none twice: so the module
//! packs smaller.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::convert::Infallible;
use wasm_encoder::reencode::{Error, Reencode};
use wasm_encoder::{CodeSection, FunctionSection, Module};
use wasmparser::{BinaryReader, CodeSectionReader, FunctionBody, FunctionSectionReader, Operator, Parser, Payload, TypeRef};

/// The same module; only the numbers of its own functions are others, and functions of equal bytes are one.
///
/// # Errors
/// When it is not a module.
pub fn in_order(wasm: &[u8]) -> Result<Vec<u8>, String> {
    let mut module = wasm.to_vec();
    loop {
        // Callers of what was equal may be equal now.
        let once = reordered(&module, |functions| functions.once())?;
        if once.len() == module.len() {
            return reordered(&module, |functions| functions.alike());
        }
        module = once;
    }
}

fn reordered(wasm: &[u8], order: impl Fn(&Functions<'_>) -> Order) -> Result<Vec<u8>, String> {
    let mut order = order(&Functions::of(wasm).map_err(|e| e.to_string())?);
    let mut module = Module::new();
    order.parse_core_module(&mut module, Parser::new(0), wasm).map_err(|e| e.to_string())?;
    Ok(module.finish())
}

/// The functions of a module: how many it imports, and type and bytes of its own.
#[derive(Default)]
struct Functions<'w> {
    imported: u32,
    own: Vec<(u32, &'w [u8])>,
}

impl<'w> Functions<'w> {
    fn of(wasm: &'w [u8]) -> wasmparser::Result<Functions<'w>> {
        let (mut imported, mut types, mut bodies) = (0, Vec::new(), Vec::new());
        for payload in Parser::new(0).parse_all(wasm) {
            match payload? {
                Payload::ImportSection(imports) => {
                    for import in imports.into_imports() {
                        imported += u32::from(matches!(import?.ty, TypeRef::Func(_)));
                    }
                }
                Payload::FunctionSection(section) => types = section.into_iter().collect::<wasmparser::Result<_>>()?,
                Payload::CodeSectionEntry(body) => bodies.push(body.as_bytes()),
                _ => {}
            }
        }
        Ok(Functions { imported, own: types.into_iter().zip(bodies).collect() })
    }

    /// Each function once, in the order that they have.
    fn once(&self) -> Order {
        let (mut first, mut places, mut same) = (BTreeMap::new(), Vec::new(), Vec::new());
        for (place, function) in self.own.iter().enumerate() {
            let new = *first.entry(function).or_insert(places.len());
            if new == places.len() {
                places.push(place);
            }
            same.push(new);
        }
        let numbers = same.into_iter().enumerate().map(|(old, new)| (self.number(old), self.number(new))).collect();
        Order { places, numbers }
    }

    /// What is called most, then all other functions, each behind the one that it is most like, and where none is left that is, in the order of
    /// their bytes.
    fn alike(&self) -> Order {
        let sketches: Vec<Sketch> = self.own.iter().map(|(_, bytes)| sketch(bytes)).collect();
        let mut places = self.called_most();
        let mut left: Vec<usize> = (0..self.own.len()).filter(|place| !places.contains(place)).collect();
        left.sort_by_key(|place| self.own.get(*place));
        while !left.is_empty() {
            let last = places.last().and_then(|place| sketches.get(*place));
            let likeness = |place: &usize| last.zip(sketches.get(*place)).map_or(0, |(a, b)| in_common(a, b));
            let nearest = (0..left.len()).rev().max_by_key(|at| left.get(*at).map_or(0, likeness));
            places.push(left.remove(nearest.unwrap_or_default()));
        }
        let numbers = places.iter().enumerate().map(|(new, old)| (self.number(*old), self.number(new))).collect();
        Order { places, numbers }
    }

    /// The functions that are called most often, as many as have a number of one byte.
    fn called_most(&self) -> Vec<usize> {
        let mut calls = vec![0_usize; self.own.len()];
        for callee in self.own.iter().flat_map(|(_, bytes)| callees(bytes)) {
            let place = callee.checked_sub(self.imported).and_then(|place| calls.get_mut(place as usize));
            place.into_iter().for_each(|calls| *calls += 1);
        }
        let mut often: Vec<(usize, usize)> = calls.into_iter().enumerate().filter(|(_, calls)| *calls >= OFTEN).collect();
        often.sort_by_key(|(_, calls)| Reverse(*calls));
        often.truncate(128_usize.saturating_sub(self.imported as usize));
        often.into_iter().map(|(place, _)| place).collect()
    }

    fn number(&self, place: usize) -> u32 {
        self.imported + u32::try_from(place).unwrap_or(u32::MAX)
    }
}

/// So many calls are often.
const OFTEN: usize = 100;

/// The numbers of the functions that a function calls, once for each call.
fn callees(function: &[u8]) -> Vec<u32> {
    let body = FunctionBody::new(BinaryReader::new(function, 0));
    let called = |operator| if let Ok(Operator::Call { function_index }) = operator { Some(function_index) } else { None };
    body.get_operators_reader().into_iter().flatten().filter_map(called).collect()
}

/// The least hashes of the runs of bytes in a function: the more of them two functions share, the more runs they do.
type Sketch = [u32; 256];

/// Bytes of a run: about two instructions.
const RUN: usize = 4;

fn sketch(bytes: &[u8]) -> Sketch {
    let mut least = [u32::MAX; 256];
    for run in bytes.windows(RUN) {
        let hash = mixed(run.iter().fold(0, |all, byte| all << 8 | u64::from(*byte)));
        let (high, low) = ((hash >> 32) as u32, hash as u32);
        if let Some(least) = least.get_mut(high as usize % 256) {
            *least = low.min(*least);
        }
    }
    least
}

/// Scatters a number over all bits (the finaliser of MurmurHash3).
fn mixed(number: u64) -> u64 {
    let once = (number ^ number >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let twice = (once ^ once >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    twice ^ twice >> 33
}

fn in_common(a: &Sketch, b: &Sketch) -> usize {
    a.iter().zip(b).filter(|(a, b)| a == b && **a != u32::MAX).count()
}

/// Places in the old code section, in the new order, and new numbers of functions by old ones; imported ones keep theirs.
struct Order {
    places: Vec<usize>,
    numbers: BTreeMap<u32, u32>,
}

impl Order {
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

    /// A module that imports one function and has and exports one for each instruction.
    fn module(instructions: &[Instruction<'static>]) -> Vec<u8> {
        module_of(&instructions.iter().map(|instruction| vec![instruction.clone()]).collect::<Vec<_>>())
    }

    fn module_of(bodies: &[Vec<Instruction<'static>>]) -> Vec<u8> {
        let mut types = TypeSection::new();
        types.ty().function([], [ValType::I32]);
        let (mut imports, mut functions, mut exports, mut code) =
            (ImportSection::new(), FunctionSection::new(), ExportSection::new(), CodeSection::new());
        imports.import("host", "one", EntityType::Function(0));
        for (number, body) in bodies.iter().enumerate() {
            functions.function(0);
            exports.export(&number.to_string(), ExportKind::Func, 1 + u32::try_from(number).unwrap());
            let mut function = Function::new([]);
            body.iter().chain([&Instruction::End]).for_each(|instruction| {
                function.instruction(instruction);
            });
            code.function(&function);
        }
        let mut module = Module::new();
        module.section(&types).section(&imports).section(&functions).section(&exports).section(&code);
        module.finish()
    }

    /// The numbers of the exports, and the bytes of the functions.
    fn told(wasm: &[u8]) -> (Vec<(&str, u32)>, Vec<Vec<u8>>) {
        let (mut exports, mut bodies) = (Vec::new(), Vec::new());
        for payload in Parser::new(0).parse_all(wasm) {
            match payload.unwrap() {
                Payload::ExportSection(section) => exports.extend(section.into_iter().map(|e| e.unwrap()).map(|e| (e.name, e.index))),
                Payload::CodeSectionEntry(body) => bodies.push(body.as_bytes().to_vec()),
                _ => {}
            }
        }
        (exports, bodies)
    }

    #[test]
    fn functions_move_with_their_exports_and_calls() {
        let sorted = in_order(&module(&[Instruction::I32Const(2), Instruction::Call(1)])).unwrap();
        assert_eq!(in_order(&sorted).unwrap(), sorted, "what is in order stays");
        let (exports, bodies) = told(&sorted);
        assert_eq!(exports, [("0", 2), ("1", 1)], "a call (0x10) goes before a constant (0x41)");
        assert_eq!(bodies, [vec![0, 0x10, 2, 0x0b], vec![0, 0x41, 2, 0x0b]]);
    }

    #[test]
    fn equal_functions_are_one_and_so_are_their_callers() {
        let sorted = in_order(&module(&[Instruction::Call(3), Instruction::Call(4), Instruction::I32Const(2), Instruction::I32Const(2)])).unwrap();
        let (exports, bodies) = told(&sorted);
        assert_eq!(exports, [("0", 1), ("1", 1), ("2", 2), ("3", 2)]);
        assert_eq!(bodies, [vec![0, 0x10, 2, 0x0b], vec![0, 0x41, 2, 0x0b]]);
    }

    #[test]
    fn like_stands_beside_like() {
        let long = |number: i32| (0..40).map(|i| Instruction::I32Const(number * 1000 + i)).collect::<Vec<_>>();
        let wasm = module_of(&[long(1), long(2), [long(1), long(3)].concat(), [long(4), long(2)].concat()]);
        let order = Functions::of(&wasm).unwrap().alike();
        let beside = |a: usize, b: usize| order.places.windows(2).any(|pair| pair == [a, b] || pair == [b, a]);
        assert!(beside(0, 2) && beside(1, 3), "{:?}", order.places);
    }

    #[test]
    fn what_is_called_most_stands_in_front() {
        let calls = vec![Instruction::Call(3); OFTEN];
        let sorted = in_order(&module_of(&[calls, vec![Instruction::I32Const(1)], vec![Instruction::I32Const(2)]])).unwrap();
        let (exports, _) = told(&sorted);
        assert_eq!(exports.iter().map(|(_, number)| *number).collect::<Vec<_>>(), [2, 3, 1]);
    }

    #[test]
    fn what_is_no_module_is_refused() {
        assert!(in_order(b"no module").is_err());
    }
}
