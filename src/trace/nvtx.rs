//! NVTX 3: ranges for Nsight Systems and other tools.
//!
//! A tool sets NVTX_INJECTION64_PATH. Its library has `InitializeInjectionNvtx2`, which is given a function that gives
//! tables of ours by their numbers. One of them gives, by the number of a module, an array of addresses of pointers to
//! functions; into those that it implements the library writes its own. Numbers and layouts are those of nvtxTypes.h.

use super::hooks::{BoxedHooks, HookedRun, Hooks};
use super::tool_library::ToolLibrary;
use crate::base::Result;
use crate::sync::{Global, OnceLock, ambient};
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

const SLOTS: usize = 16;
type Slot = AtomicPtr<c_void>;

/// The functions of a module; and where they are, behind a first one that is none, and before a NULL.
struct CallbackModule {
    slots: [Slot; SLOTS],
    table: [AtomicPtr<Slot>; SLOTS + 1],
}

impl CallbackModule {
    const fn new() -> CallbackModule {
        CallbackModule {
            slots: [const { AtomicPtr::new(ptr::null_mut()) }; SLOTS],
            table: [const { AtomicPtr::new(ptr::null_mut()) }; SLOTS + 1],
        }
    }

    fn table(&self) -> *mut *mut Slot {
        for (place, slot) in self.table.iter().zip(&self.slots).skip(1) {
            place.store(ptr::from_ref(slot).cast_mut(), Relaxed);
        }
        self.table.as_ptr().cast_mut().cast()
    }
}

/// Those without a domain, which are not called here but which tools expect to find; and those with one.
static CORE: CallbackModule = CallbackModule::new();
static CORE2: CallbackModule = CallbackModule::new();

const MODULE_CORE: c_int = 1;
const MODULE_CORE2: c_int = 5;
const DOMAIN_RANGE_PUSH: usize = 4;
const DOMAIN_RANGE_POP: usize = 5;
const DOMAIN_CREATE: usize = 12;

#[repr(C)]
struct CallbackTable {
    struct_size: usize,
    get_module: unsafe extern "C" fn(c_int, *mut *mut *mut Slot, *mut c_uint) -> c_int,
}

#[repr(C)]
struct VersionTable {
    struct_size: usize,
    version: u32,
    reserved: u32,
    set_version: unsafe extern "C" fn(u32),
}

static CALLBACKS: CallbackTable = CallbackTable { struct_size: size_of::<CallbackTable>(), get_module };
static VERSIONS: VersionTable =
    VersionTable { struct_size: size_of::<VersionTable>(), version: VERSION, reserved: 0, set_version };
const VERSION: u32 = 3;

unsafe extern "C" fn set_version(_of_tool: u32) {}

unsafe extern "C" fn get_module(module: c_int, out_table: *mut *mut *mut Slot, out_size: *mut c_uint) -> c_int {
    let module = match module {
        MODULE_CORE => &CORE,
        MODULE_CORE2 => &CORE2,
        _ => return 0,
    };
    // SAFETY: NULL, or the tool's own variables.
    unsafe {
        if !out_table.is_null() {
            out_table.write(module.table());
        }
        if !out_size.is_null() {
            out_size.write(SLOTS as c_uint);
        }
    }
    1
}

unsafe extern "C" fn export_table(number: u32) -> *const c_void {
    match number {
        1 => (&raw const CALLBACKS).cast(),
        3 => (&raw const VERSIONS).cast(),
        _ => ptr::null(),
    }
}

type Initialize = unsafe extern "C" fn(unsafe extern "C" fn(u32) -> *const c_void) -> c_int;
type DomainCreate = unsafe extern "C" fn(*const c_char) -> *mut c_void;
type RangePush = unsafe extern "C" fn(*mut c_void, *const EventAttributes) -> c_int;
type RangePop = unsafe extern "C" fn(*mut c_void) -> c_int;

/// nvtxEventAttributes_t, with a text and a number.
#[repr(C)]
struct EventAttributes {
    version: u16,
    size: u16,
    category: u32,
    color_type: i32,
    color: u32,
    payload_type: i32,
    reserved: i32,
    payload: u64,
    message_type: i32,
    message: *const c_char,
}

const PAYLOAD_UNSIGNED: i32 = 1;
const MESSAGE_ASCII: i32 = 1;

/// The tool's functions, and our domain as it knows it. They stay, as its library does.
#[derive(Clone, Copy)]
struct Nvtx {
    domain: *mut c_void,
    push: RangePush,
    pop: RangePop,
}

// SAFETY: the functions of NVTX may be called from any thread; the domain is the tool's.
unsafe impl Send for Nvtx {}
// SAFETY: as above.
unsafe impl Sync for Nvtx {}

static OPEN: OnceLock<Nvtx> = OnceLock::new();
static OPENING: Global<()> = Global::new(|| ());

/// The markers, if the tool's library is there and takes ranges.
pub fn hooks() -> Result<BoxedHooks> {
    let _one_at_a_time = OPENING.lock();
    let nvtx = match OPEN.get() {
        Some(nvtx) => *nvtx,
        None => *OPEN.get_or_init({
            let nvtx = open()?;
            move || nvtx
        }),
    };
    Ok(Box::new(Box::new(nvtx)))
}

fn open() -> Result<Nvtx> {
    let library = ToolLibrary::open("NVTX_INJECTION64_PATH", "a tool for NVTX (nsys profile)")?;
    let function = library.function(c"InitializeInjectionNvtx2")?;
    // SAFETY: the function of this name has this type in every library for NVTX 2 and 3.
    let initialize: Initialize = unsafe { std::mem::transmute(function) };
    // SAFETY: as above; what it is given answers as nvtxTypes.h says.
    if ambient::call(|| unsafe { initialize(export_table) }) == 0 {
        return Err(library.refuses("takes no markers: its InitializeInjectionNvtx2 returned 0"));
    }
    let of = |slot: usize| CORE2.slots[slot].load(Relaxed);
    let (push, pop, create) = (of(DOMAIN_RANGE_PUSH), of(DOMAIN_RANGE_POP), of(DOMAIN_CREATE));
    if push.is_null() || pop.is_null() {
        return Err(library.refuses("takes no ranges"));
    }
    let domain = if create.is_null() {
        // The domain that is always there.
        ptr::null_mut()
    } else {
        // SAFETY: the tool has put its function of this type there.
        let create: DomainCreate = unsafe { std::mem::transmute(create) };
        // SAFETY: a NUL-terminated name.
        ambient::call(|| unsafe { create(c"weir".as_ptr()) })
    };
    // SAFETY: as above.
    let (push, pop) = unsafe {
        (std::mem::transmute::<*mut c_void, RangePush>(push), std::mem::transmute::<*mut c_void, RangePop>(pop))
    };
    Ok(Nvtx { domain, push, pop })
}

impl Nvtx {
    fn push(&self, name: *const c_char, number: u32) {
        let attributes = EventAttributes {
            version: VERSION as u16,
            size: size_of::<EventAttributes>() as u16,
            category: 0,
            color_type: 0,
            color: 0,
            payload_type: PAYLOAD_UNSIGNED,
            reserved: 0,
            payload: u64::from(number),
            message_type: MESSAGE_ASCII,
            message: name,
        };
        // SAFETY: the tool's function; it copies what it keeps.
        unsafe { (self.push)(self.domain, &raw const attributes) };
    }

    fn pop(&self) {
        // SAFETY: the tool's function.
        unsafe { (self.pop)(self.domain) };
    }
}

impl Hooks for Nvtx {
    fn stay_begin(&self, run: &HookedRun<'_>) {
        self.push(run.names.program(), run.number);
    }

    fn stay_end(&self, _run: &HookedRun<'_>) {
        self.pop();
    }

    fn node_begin(&self, run: &HookedRun<'_>, node: u32, _flags: u32) {
        self.push(run.names.node(node), node);
    }

    fn node_end(&self, _run: &HookedRun<'_>, _node: u32, _flags: u32) {
        self.pop();
    }

    fn region_begin(&self, number: u32, is_help: bool) {
        self.push(if is_help { c"help in a region" } else { c"region" }.as_ptr(), number);
    }

    fn region_end(&self, _number: u32, _is_help: bool) {
        self.pop();
    }
}
