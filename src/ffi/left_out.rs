//! The functions of features that this build leaves out (`build.rs` writes them): all are there, and fail with
//! UNIMPLEMENTED.

#[cfg(not(all(feature = "engines", feature = "graph", feature = "kernels")))]
fn left_out(feature: &str) -> crate::base::Error {
    let text = format!("this build was made without the feature '{feature}'");
    crate::base::Error::new(crate::base::Code::Unimplemented, text)
}

#[cfg(not(feature = "engines"))]
#[allow(unused_variables)]
mod engines {
    use super::left_out;
    use crate::abi::*;
    use crate::ffi::argument::{out_const, out_ptr};
    use crate::ffi::guard::guard;
    use std::ffi::{c_char, c_void};

    include!(concat!(env!("OUT_DIR"), "/left_out_engines.rs"));
}

#[cfg(not(feature = "graph"))]
#[allow(unused_variables)]
mod graph {
    use super::left_out;
    use crate::abi::*;
    use crate::ffi::argument::out_ptr;
    use crate::ffi::guard::guard;
    use std::ffi::{c_char, c_void};

    include!(concat!(env!("OUT_DIR"), "/left_out_graph.rs"));
}

#[cfg(not(feature = "kernels"))]
#[allow(unused_variables)]
mod kernels {
    use super::left_out;
    use crate::abi::*;
    use crate::ffi::argument::out_ptr;
    use crate::ffi::guard::guard;
    use crate::ops::*;

    include!(concat!(env!("OUT_DIR"), "/left_out_kernels.rs"));
}
