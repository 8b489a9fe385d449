//! Each operation with all types: which of them the processor's kernel takes, a CUDA device's takes too, with the same
//! results. What is found is the table in docs/cuda_kernels.md; WEIR_TYPES_WRITE=1 writes it.

use crate::kit::{Create, Distance, Tensor, check_outputs, infer, plan};
use std::path::Path;
use weir_core::base::{Desc, dtype};
use weir_core::ops::{Descriptor, Op};

pub const ALL: [u32; 8] =
    [dtype::F32, dtype::F16, dtype::BF16, dtype::S32, dtype::S8, dtype::U8, dtype::BOOL, dtype::S64];

/// What the elements of an input are.
#[derive(Clone, Copy)]
pub enum Values {
    Random,
    /// Above zero.
    Positive,
    /// Every magnitude, and what is no number.
    Special,
    /// Indices of so many rows.
    Index(i64),
}

/// An input: the types that are tried, and the shape.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    pub types: &'a [u32],
    pub dims: &'a [i64],
    pub values: Values,
}

pub fn any(dims: &[i64]) -> Input<'_> {
    Input { types: &ALL, dims, values: Values::Random }
}

impl<'a> Input<'a> {
    pub fn with(self, values: Values) -> Input<'a> {
        Input { values, ..self }
    }

    pub fn of(self, types: &'a [u32]) -> Input<'a> {
        Input { types, ..self }
    }

    fn tensor(&self, of: u32, seed: u64) -> Tensor {
        let random = || Tensor::random(of, self.dims, seed);
        match (self.values, of) {
            (Values::Special, dtype::F32) => crate::elements::special(self.dims, seed),
            (Values::Special, dtype::F16 | dtype::BF16) => special_halves(of, self.dims, seed),
            (Values::Positive, dtype::F32) => Tensor::f32(self.dims, |i| 0.25 + i as f32),
            (Values::Index(rows), dtype::S32) => Tensor::s32(self.dims, |i| (i as i64 * 7 % rows) as i32),
            (Values::Index(rows), dtype::S64) => Tensor::s64(self.dims, |i| i as i64 * 7 % rows),
            _ => random(),
        }
    }
}

/// Halves of any bits: zeros, the least and the greatest, infinities, NaNs, subnormal ones, then some of all.
fn special_halves(of: u32, dims: &[i64], seed: u64) -> Tensor {
    const F16: [u16; 8] = [0x7c00, 0xfc00, 0x7e01, 0x7bff, 0xfbff, 0x0400, 0x0001, 0x83ff];
    const BF16: [u16; 8] = [0x7f80, 0xff80, 0x7fc1, 0x7f7f, 0xff7f, 0x0080, 0x0001, 0x807f];
    let ends = if of == dtype::F16 { F16 } else { BF16 };
    let mut tensor = Tensor::zeroed(Desc::new(of, dims));
    for (i, half) in tensor.bytes.chunks_exact_mut(2).enumerate() {
        let bits = match i {
            0 => 0,
            1 => 0x8000,
            2..10 => ends[i - 2],
            // A step that is odd reaches all.
            _ => (i as u16).wrapping_mul(9377).wrapping_add(seed as u16),
        };
        half.copy_from_slice(&bits.to_le_bytes());
    }
    tensor
}

/// The types of a call's inputs, and of its first output.
type Types = (Vec<u32>, u32);

struct Row {
    operation: String,
    settings: String,
    types: Vec<Types>,
    refused: Vec<(Types, String)>,
}

/// The table, row by row.
#[derive(Default)]
pub struct Table(Vec<Row>);

impl Table {
    /// Tries all types. Calls of one operation with the same words for their settings are one row. `distance` is asked
    /// for the types of the inputs and of the output.
    pub fn case<D: Descriptor<Operator: Into<Op>>>(
        &mut self,
        (operation, settings): (&str, &str),
        create: Create<D>,
        desc: &D,
        inputs: &[Input<'_>],
        num_outputs: usize,
        distance: impl Fn(u32, u32) -> Distance,
    ) {
        let place = self.0.iter().position(|row| row.operation == operation && row.settings == settings);
        let place = place.unwrap_or_else(|| {
            let (operation, settings) = (operation.to_owned(), settings.to_owned());
            self.0.push(Row { operation, settings, types: vec![], refused: vec![] });
            self.0.len() - 1
        });
        let row = &mut self.0[place];
        let combinations = inputs.iter().map(|input| input.types.len()).product::<usize>();
        let mut taken = 0;
        for number in 0..combinations {
            let mut rest = number;
            let types = inputs.iter().rev().map(|input| {
                let at = rest % input.types.len();
                rest /= input.types.len();
                input.types[at]
            });
            let mut types: Vec<u32> = types.collect();
            types.reverse();
            let descs: Vec<Desc> = inputs.iter().zip(&types).map(|(input, &of)| Desc::new(of, input.dims)).collect();
            let Some(outputs) = infer(create, desc, &descs, num_outputs) else { continue };
            taken += 1;
            let tensors: Vec<Tensor> =
                inputs.iter().zip(&types).zip(1..).map(|((input, &of), seed)| input.tensor(of, seed)).collect();
            let (of, to) = (types[0], outputs[0].dtype);
            match plan(operation, &crate::kit::described(desc), &tensors, &outputs) {
                Ok(_) => {
                    let distance = distance(of, to);
                    check_outputs(operation, create, desc, &tensors, num_outputs, distance);
                    if !row.types.contains(&(types.clone(), to)) {
                        row.types.push((types, to));
                    }
                }
                Err(why) => row.refused.push(((types, to), why)),
            }
        }
        assert!(taken > 0, "{operation} {settings}: the processor takes no types at all");
    }

    fn text(&self) -> String {
        let mut text = String::from("| Operation | Settings | Types |\n|---|---|---|\n");
        for row in &self.0 {
            assert!(row.refused.is_empty(), "{} {}: {:?}", row.operation, row.settings, row.refused);
            text += &format!("| `{}` | {} | {} |\n", row.operation, row.settings, in_words(&row.types));
        }
        text
    }

    /// Compares with the section of the documentation.
    pub fn compare(&self) {
        const BEGIN: &str = "<!-- types: begin -->\n";
        const END: &str = "<!-- types: end -->";
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/cuda_kernels.md");
        let page = std::fs::read_to_string(&path).unwrap();
        let (before, rest) = page.split_once(BEGIN).expect("the section begins");
        let (written, after) = rest.split_once(END).expect("the section ends");
        let table = self.text();
        if std::env::var_os("WEIR_TYPES_WRITE").is_some() {
            std::fs::write(&path, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
        } else {
            assert!(
                written == table,
                "docs/cuda_kernels.md has another table of types; WEIR_TYPES_WRITE=1 writes\n{table}"
            );
        }
    }
}

/// One of several sets at each place, if every choice of them is there.
fn product(types: &[Vec<u32>]) -> Option<String> {
    let mut sets: Vec<Vec<u32>> = vec![vec![]; types[0].len()];
    for of in types {
        for (set, &of) in sets.iter_mut().zip(of) {
            if !set.contains(&of) {
                set.push(of);
            }
        }
    }
    let choices = sets.iter().map(Vec::len).product::<usize>();
    let names = |set: &Vec<u32>| set.iter().map(|&of| dtype::name(of).to_owned()).collect::<Vec<_>>().join(" or ");
    (choices == types.len()).then(|| {
        let (to, from) = sets.split_last().unwrap();
        let from: Vec<String> = from.iter().map(names).collect();
        format!("{} to {}", from.join(" with "), names(to))
    })
}

fn in_words(types: &[Types]) -> String {
    let is_alike = types.iter().all(|(from, _)| from.iter().all(|of| *of == from[0]));
    let list =
        |of: &mut dyn Iterator<Item = u32>| of.map(|of| dtype::name(of).to_owned()).collect::<Vec<_>>().join(", ");
    if is_alike && types.iter().all(|(from, to)| from[0] == *to) {
        return list(&mut types.iter().map(|(_, to)| *to));
    }
    let places = |(from, to): &Types| {
        let from = if is_alike { &from[..1] } else { &from[..] };
        [from, &[*to]].concat()
    };
    let all: Vec<Vec<u32>> = types.iter().map(places).collect();
    if let Some(words) = product(&all) {
        return words;
    }
    let mut words = Vec::new();
    for to in ALL {
        let group: Vec<Vec<u32>> = all.iter().filter(|types| types.last() == Some(&to)).cloned().collect();
        match group.is_empty() {
            true => {}
            false => words.push(product(&group).unwrap_or_else(|| {
                group.iter().map(|one| product(std::slice::from_ref(one)).unwrap()).collect::<Vec<_>>().join("; ")
            })),
        }
    }
    words.join("; ")
}
