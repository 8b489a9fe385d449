//! The library's functions, by their names.

use crate::driver::Loaded;
use crate::multiply::{Algorithm, Operands, Problem};
use crate::objects::{Layout, Object, Operation, Preference};
use crate::state::{INVALID_VALUE, State, Status, enter, lock, stop};
use std::ffi::{CStr, c_char, c_void};

type Pointer = *mut c_void;

/// What is proposed.
#[repr(C)]
pub struct Proposal {
    algorithm: Algorithm,
    workspace: usize,
    state: Status,
    waves: f32,
    reserved: [i32; 4],
}

fn make(name: &str, out: *mut Pointer, object: impl FnOnce() -> Result<Object, Status>) -> Status {
    enter(name, |state| {
        let object = object()?;
        unsafe { out.write(state.add(object) as Pointer) };
        Ok(())
    })
}

fn destroy(name: &str, handle: Pointer, is_of_sort: fn(&Object) -> bool) -> Status {
    enter(name, |state| {
        if !is_of_sort(state.object(handle as usize)) {
            stop(&format!("{name}: another sort of object"));
        }
        match state.objects.remove(&(handle as usize)) {
            Some(Object::Handle(loaded)) => loaded.unload(),
            _ => Ok(()),
        }
    })
}

fn set(
    name: &str,
    handle: Pointer,
    attribute: i32,
    value: *const c_void,
    bytes: usize,
    is_of_sort: fn(&Object) -> bool,
) -> Status {
    enter(name, |state| {
        let object = state.object(handle as usize);
        if !is_of_sort(object) {
            stop(&format!("{name}: another sort of object"));
        }
        object.set(attribute, unsafe { std::slice::from_raw_parts(value.cast(), bytes) })
    })
}

fn handle(state: &mut State, of: Pointer) -> Loaded {
    match state.object(of as usize) {
        Object::Handle(loaded) => *loaded,
        _ => stop("what should be a handle is none"),
    }
}

fn operation(state: &mut State, of: Pointer) -> Operation {
    match state.object(of as usize) {
        Object::Operation(operation) => operation.clone(),
        _ => stop("what should be an operation is none"),
    }
}

fn layout(state: &mut State, of: Pointer) -> Layout {
    match state.object(of as usize) {
        Object::Layout(layout) => layout.clone(),
        _ => stop("what should be a layout is none"),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cublasLtGetVersion() -> usize {
    let text = std::env::var("FAKE_BLAS_VERSION").unwrap_or_else(|_| "130000".to_owned());
    text.parse().unwrap_or_else(|_| stop(&format!("FAKE_BLAS_VERSION is '{text}'")))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtCreate(out: *mut Pointer) -> Status {
    make("cublasLtCreate", out, || Loaded::new().map(Object::Handle))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtDestroy(of: Pointer) -> Status {
    destroy("cublasLtDestroy", of, |object| matches!(object, Object::Handle(_)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatmulDescCreate(out: *mut Pointer, compute: i32, scale: i32) -> Status {
    let operation = Operation { compute, scale, transpose_a: false, transpose_b: false, epilogue: 1, bias: 0 };
    make("cublasLtMatmulDescCreate", out, || Ok(Object::Operation(operation)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatmulDescDestroy(of: Pointer) -> Status {
    destroy("cublasLtMatmulDescDestroy", of, |object| matches!(object, Object::Operation(_)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatmulDescSetAttribute(
    of: Pointer,
    attribute: i32,
    value: *const c_void,
    bytes: usize,
) -> Status {
    let is_operation = |object: &Object| matches!(object, Object::Operation(_));
    set("cublasLtMatmulDescSetAttribute", of, attribute, value, bytes, is_operation)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatrixLayoutCreate(
    out: *mut Pointer,
    of: i32,
    rows: u64,
    columns: u64,
    ld: i64,
) -> Status {
    make("cublasLtMatrixLayoutCreate", out, || {
        Ok(Object::Layout(Layout { of, rows, columns, ld, batch: 1, stride: 0 }))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatrixLayoutDestroy(of: Pointer) -> Status {
    destroy("cublasLtMatrixLayoutDestroy", of, |object| matches!(object, Object::Layout(_)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatrixLayoutSetAttribute(
    of: Pointer,
    attribute: i32,
    value: *const c_void,
    bytes: usize,
) -> Status {
    let is_layout = |object: &Object| matches!(object, Object::Layout(_));
    set("cublasLtMatrixLayoutSetAttribute", of, attribute, value, bytes, is_layout)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatmulPreferenceCreate(out: *mut Pointer) -> Status {
    // Whatever is not said: no workspace, any reduction, addresses of memory as it is allocated.
    let preference = Preference { workspace: 0, reductions: 7, alignment: [256; 4] };
    make("cublasLtMatmulPreferenceCreate", out, || Ok(Object::Preference(preference)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatmulPreferenceDestroy(of: Pointer) -> Status {
    destroy("cublasLtMatmulPreferenceDestroy", of, |object| matches!(object, Object::Preference(_)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatmulPreferenceSetAttribute(
    of: Pointer,
    attribute: i32,
    value: *const c_void,
    bytes: usize,
) -> Status {
    let is_preference = |object: &Object| matches!(object, Object::Preference(_));
    set("cublasLtMatmulPreferenceSetAttribute", of, attribute, value, bytes, is_preference)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatmulAlgoGetHeuristic(
    of: Pointer,
    op: Pointer,
    a: Pointer,
    b: Pointer,
    c: Pointer,
    d: Pointer,
    preference: Pointer,
    wanted: i32,
    proposals: *mut Proposal,
    count: *mut i32,
) -> Status {
    enter("cublasLtMatmulAlgoGetHeuristic", |state| {
        handle(state, of);
        let (operation, [a, b, c, d]) = (operation(state, op), [a, b, c, d].map(|of| layout(state, of)));
        let Object::Preference(preference) = state.object(preference as usize) else { stop("no preference") };
        if wanted < 1 {
            return Err(INVALID_VALUE);
        }
        unsafe { count.write(0) };
        let problem = Problem { operation: &operation, a: &a, b: &b, c: &c, d: &d };
        let (algorithm, workspace) = problem.propose(preference)?;
        let proposal = Proposal { algorithm, workspace: workspace as usize, state: 0, waves: 1.0, reserved: [0; 4] };
        unsafe {
            proposals.write(proposal);
            count.write(1);
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatmul(
    of: Pointer,
    op: Pointer,
    alpha: *const c_void,
    a: *const c_void,
    of_a: Pointer,
    b: *const c_void,
    of_b: Pointer,
    beta: *const c_void,
    c: *const c_void,
    of_c: Pointer,
    d: Pointer,
    of_d: Pointer,
    algorithm: *const Algorithm,
    workspace: Pointer,
    workspace_bytes: usize,
    stream: Pointer,
) -> Status {
    enter("cublasLtMatmul", |state| {
        let loaded = handle(state, of);
        let (operation, layouts) = (operation(state, op), [of_a, of_b, of_c, of_d].map(|of| layout(state, of)));
        // One is the same number in both types but not the same bits.
        let one = if operation.scale == 10 { 1 } else { 1f32.to_bits() };
        let [alpha, beta] = [alpha, beta].map(|scalar| unsafe { scalar.cast::<u32>().read() });
        if alpha != one || ![0, one].contains(&beta) || algorithm.is_null() {
            stop("factors other than 0 and 1, or no algorithm");
        }
        let problem = Problem { operation: &operation, a: &layouts[0], b: &layouts[1], c: &layouts[2], d: &layouts[3] };
        let operands = Operands {
            a: a as u64,
            b: b as u64,
            c: c as u64,
            d: d as u64,
            has_beta: beta == one,
            workspace: workspace as u64,
            workspace_bytes: workspace_bytes as u64,
        };
        problem.enqueue(&loaded, unsafe { &*algorithm }, &operands, stream)
    })
}

unsafe fn text(text: *const c_char) -> String {
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// How often a function was called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fakeBlasCount(name: *const c_char) -> u64 {
    let name = unsafe { text(name) };
    lock().count(&name)
}

/// The n-th call of a function from now on gives this status; 0 = each one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fakeBlasFail(name: *const c_char, call: u64, status: Status) {
    let name = unsafe { text(name) };
    lock().fail(&name, call, status);
}

/// Objects that the program has not given back.
#[unsafe(no_mangle)]
pub extern "C" fn fakeBlasLive() -> u64 {
    lock().objects.len() as u64
}
