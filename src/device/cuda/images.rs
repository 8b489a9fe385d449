//! The modules that ship with the library, and their kernels.
#![forbid(unsafe_code)]

use crate::base::{Error, Result};
use std::ffi::CStr;

/// A module that ships with the library: PTX, compressed by `build.rs`.
#[derive(Debug)]
pub struct Image {
    pub name: &'static str,
    compressed: &'static [u8],
}

impl Image {
    pub fn ptx(&self) -> Result<String> {
        let text = miniz_oxide::inflate::decompress_to_vec(self.compressed).ok();
        let text = text.and_then(|text| String::from_utf8(text).ok());
        text.ok_or_else(|| Error::internal(format!("module '{}' of the library is damaged", self.name)))
    }
}

/// A kernel of a module.
#[derive(Debug)]
pub struct KernelEntry {
    pub image: &'static Image,
    pub name: &'static CStr,
    /// Its place in `ENTRIES`.
    pub index: usize,
}

impl KernelEntry {
    /// PTX of this kernel alone: what its module declares, all of which stands before the first kernel, and the kernel.
    pub fn ptx(&self) -> Result<String> {
        const BEGIN: &str = ".visible .entry ";
        let (text, name) = (self.image.ptx()?, self.name.to_string_lossy());
        let mut parts = text.split(BEGIN);
        let declared = parts.next().unwrap_or_default();
        let own = parts.find(|part| part.split(['(', '\n']).next().map(str::trim) == Some(&name));
        let own = own.ok_or_else(|| Error::internal(format!("module '{}' has no kernel '{name}'", self.image.name)))?;
        Ok([declared, BEGIN, own].concat())
    }
}

macro_rules! image {
    ($name:literal) => {
        Image { name: $name, compressed: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".ptx.deflate")) }
    };
}

macro_rules! images {
    ($($image:ident $file:literal { $($entry:ident $name:literal)* })*) => {
        $(pub static $image: Image = image!($file);)*

        #[allow(non_camel_case_types, clippy::upper_case_acronyms, reason = "numbers of the statics below")]
        enum EntryNumber { $($($entry,)*)* }

        $($(pub static $entry: KernelEntry =
            KernelEntry { image: &$image, name: $name, index: EntryNumber::$entry as usize };)*)*

        /// All modules of operations.
        pub static IMAGES: &[&Image] = &[$(&$image),*];
        /// All kernels of operations, by their index.
        pub static ENTRIES: &[&KernelEntry] = &[$($(&$entry),*),*];
    };
}

images! {
    CELL_MODULE "cell" {
        GRU c"weir_gru"
        GRU_LINEAR c"weir_gru_linear"
        LSTM c"weir_lstm"
    }
    CONV_MODULE "conv" {
        CONV_16 c"weir_conv_16"
        CONV_64 c"weir_conv_64"
        CONV_DIRECT c"weir_conv_direct"
        CONV_DOT c"weir_conv_dot"
    }
    ELEMENTS_MODULE "elements" {
        BINARY c"weir_binary"
        BINARY_INTEGERS c"weir_binary_integers"
        CONVERT c"weir_convert"
        DEQUANTIZE c"weir_dequantize"
        ELTWISE c"weir_eltwise"
        QUANTIZE c"weir_quantize"
        SELECT c"weir_select"
    }
    GATHER_MODULE "gather" {
        GATHER_1 c"weir_gather_1"
        GATHER_16 c"weir_gather_16"
        GATHER_2 c"weir_gather_2"
        GATHER_4 c"weir_gather_4"
        GATHER_8 c"weir_gather_8"
    }
    MATMUL_MODULE "matmul" {
        MATMUL_128_F32 c"weir_matmul_128_f32"
        MATMUL_16_BF16 c"weir_matmul_16_bf16"
        MATMUL_16_F16 c"weir_matmul_16_f16"
        MATMUL_16_F32 c"weir_matmul_16_f32"
        MATMUL_64_BF16 c"weir_matmul_64_bf16"
        MATMUL_64_F16 c"weir_matmul_64_f16"
        MATMUL_64_F32 c"weir_matmul_64_f32"
    }
    MATMUL_INT8_MODULE "matmul_int8" {
        MATMUL_INT8 c"weir_matmul_int8"
    }
    MOVEMENT_MODULE "movement" {
        COPY_1 c"weir_copy_1"
        COPY_16 c"weir_copy_16"
        COPY_2 c"weir_copy_2"
        COPY_4 c"weir_copy_4"
        COPY_8 c"weir_copy_8"
        PAD_1 c"weir_pad_1"
        PAD_2 c"weir_pad_2"
        PAD_4 c"weir_pad_4"
        PAD_8 c"weir_pad_8"
        TURN_1 c"weir_turn_1"
        TURN_2 c"weir_turn_2"
        TURN_4 c"weir_turn_4"
        TURN_8 c"weir_turn_8"
    }
    NORM_MODULE "norm" {
        NORM_CHANNELS c"weir_norm_channels"
        NORM_ROWS c"weir_norm_rows"
    }
    POOLING_MODULE "pooling" {
        POOLING c"weir_pooling"
    }
    REDUCE_MODULE "reduce" {
        PLACE_COLUMNS c"weir_place_columns"
        PLACE_ROWS c"weir_place_rows"
        PLACE_WHOLE_COLUMNS c"weir_place_whole_columns"
        PLACE_WHOLE_ROWS c"weir_place_whole_rows"
        REDUCE_COLUMNS c"weir_reduce_columns"
        REDUCE_ROWS c"weir_reduce_rows"
        REDUCE_WHOLE_COLUMNS c"weir_reduce_whole_columns"
        REDUCE_WHOLE_ROWS c"weir_reduce_whole_rows"
    }
    SOFTMAX_MODULE "softmax" {
        SOFTMAX_COLUMNS c"weir_softmax_columns"
        SOFTMAX_ROWS c"weir_softmax_rows"
    }
}

/// Control flow inside of CUDA graphs. Drivers before 12.3 do not load it.
pub static CONTROL_MODULE: Image = image!("control");
/// The names of its kernels; their parameters are said in the module.
pub const SET_IF: &CStr = c"weir_set_if";
pub const SET_CASE: &CStr = c"weir_set_case";
pub const SET_SWITCH: &CStr = c"weir_set_switch";
pub const WHILE_STEP: &CStr = c"weir_while_step";
pub const WHILE_COMPARE: &CStr = c"weir_while_compare";
pub const FILL: &CStr = c"weir_fill";
