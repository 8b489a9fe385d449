//! ITT: tasks for VTune and other tools.
//!
//! A tool sets INTEL_LIBITTNOTIFY64. Its library has `__itt_api_init`, which is given what a program that is linked
//! with ITT's static part has: a struct (`IttGlobal`) with a list of functions by their names, and writes its own into
//! those that it implements. Layouts are those of ittnotify_config.h.

use super::hooks::{BoxedHooks, HookedRun, Hooks};
use super::tool_library::ToolLibrary;
use crate::base::Result;
use crate::sync::{Global, OnceLock, ambient};
use std::ffi::{c_char, c_int, c_long, c_uint, c_ulong, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering::*};

/// A function that the tool may implement.
#[repr(C)]
struct ApiFunction {
    name: *const c_char,
    place: *mut *mut c_void,
    init: *mut c_void,
    null: *mut c_void,
    group: c_int,
}

const ALL_GROUPS: c_int = -1;

#[repr(C)]
struct IttGlobal {
    magic: [u8; 8],
    version: [c_ulong; 3],
    is_api_initialized: c_long,
    is_mutex_initialized: c_long,
    counter: c_long,
    mutex: libc::pthread_mutex_t,
    library: *mut c_void,
    error_handler: *mut c_void,
    library_path: *mut *const c_char,
    functions: *mut ApiFunction,
    next: *mut IttGlobal,
    threads: *mut c_void,
    domains: *mut c_void,
    strings: *mut c_void,
    state: c_int,
    counters: *mut c_void,
    collects_events: c_uint,
    histograms: *mut c_void,
    /// Lists of newer versions.
    newer: [*mut c_void; 4],
}

const MAGIC: [u8; 8] = [0xED, 0xAB, 0xAB, 0xEC, 0x0D, 0xEE, 0xDA, 0x30];

#[repr(C)]
struct Domain {
    /// 0 = nobody collects what is of this domain.
    flags: AtomicI32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Id([u64; 3]);

/// A task needs none.
const NO_ID: Id = Id([0; 3]);

type Init = unsafe extern "C" fn(*mut IttGlobal, c_int);
type DomainCreate = unsafe extern "C" fn(*const c_char) -> *const Domain;
type StringCreate = unsafe extern "C" fn(*const c_char) -> *mut c_void;
type TaskBegin = unsafe extern "C" fn(*const Domain, Id, Id, *mut c_void);
type TaskEnd = unsafe extern "C" fn(*const Domain);

/// The tool's functions, and our domain as it knows it. They stay, as its library does.
#[derive(Clone, Copy)]
struct Itt {
    domain: *const Domain,
    string: StringCreate,
    begin: TaskBegin,
    end: TaskEnd,
}

// SAFETY: the functions of ITT may be called from any thread; the domain stays, and its flags are atomic.
unsafe impl Send for Itt {}
// SAFETY: as above.
unsafe impl Sync for Itt {}

static OPEN: OnceLock<Itt> = OnceLock::new();
static OPENING: Global<()> = Global::new(|| ());

/// What a tool has made of the names of regions.
static REGION: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// The markers, if the tool's library is there and takes tasks.
pub fn hooks() -> Result<BoxedHooks> {
    let _one_at_a_time = OPENING.lock();
    let itt = match OPEN.get() {
        Some(itt) => *itt,
        None => *OPEN.get_or_init({
            let itt = open()?;
            move || itt
        }),
    };
    Ok(Box::new(Box::new(itt)))
}

/// Makes a mutex that its owner may lock once more, as the tool does.
fn make_recursive(mutex: &mut libc::pthread_mutex_t) {
    let mut attr = MaybeUninit::uninit();
    // SAFETY: the attribute is initialised first, and destroyed when the mutex has been made; neither can fail here.
    unsafe {
        libc::pthread_mutexattr_init(attr.as_mut_ptr());
        libc::pthread_mutexattr_settype(attr.as_mut_ptr(), libc::PTHREAD_MUTEX_RECURSIVE);
        libc::pthread_mutex_init(mutex, attr.as_ptr());
        libc::pthread_mutexattr_destroy(attr.as_mut_ptr());
    }
}

fn open() -> Result<Itt> {
    let library = ToolLibrary::open("INTEL_LIBITTNOTIFY64", "a tool for ITT (VTune)")?;
    let function = library.function(c"__itt_api_init")?;
    // SAFETY: the function of this name has this type in every library for ITT 3.
    let init: Init = unsafe { std::mem::transmute(function) };
    let names = [c"__itt_domain_create", c"__itt_string_handle_create", c"__itt_task_begin", c"__itt_task_end"];
    // The tool keeps what it is given: it stays, whether the tool is of use or not.
    let places: &'static mut [*mut c_void; 4] = Box::leak(Box::new([ptr::null_mut(); 4]));
    let places = places.as_mut_ptr();
    let end = ApiFunction {
        name: ptr::null(),
        place: ptr::null_mut(),
        init: ptr::null_mut(),
        null: ptr::null_mut(),
        group: 0,
    };
    let mut functions = Box::new([const { MaybeUninit::<ApiFunction>::uninit() }; 5]);
    for (i, name) in names.iter().enumerate() {
        let place = places.wrapping_add(i);
        functions[i].write(ApiFunction { name: name.as_ptr(), place, group: ALL_GROUPS, ..end });
    }
    functions[4].write(end);
    let global = Box::leak(Box::new(IttGlobal {
        magic: MAGIC,
        version: [3, 26, 0],
        is_api_initialized: 1,
        is_mutex_initialized: 1,
        counter: 0,
        mutex: libc::PTHREAD_MUTEX_INITIALIZER,
        library: library.handle(),
        error_handler: ptr::null_mut(),
        library_path: ptr::null_mut(),
        functions: Box::leak(functions).as_mut_ptr().cast(),
        next: ptr::null_mut(),
        threads: ptr::null_mut(),
        domains: ptr::null_mut(),
        strings: ptr::null_mut(),
        state: 0,
        counters: ptr::null_mut(),
        collects_events: 0,
        histograms: ptr::null_mut(),
        newer: [ptr::null_mut(); 4],
    }));
    make_recursive(&mut global.mutex);
    // SAFETY: as above; the struct is as the tool expects it, and stays.
    ambient::call(|| unsafe { init(global, ALL_GROUPS) });
    // SAFETY: as many places as are read; the tool has returned.
    let [create, string, begin, end] = unsafe { places.cast::<[*mut c_void; 4]>().read() };
    if [create, string, begin, end].iter().any(|function| function.is_null()) {
        return Err(library.refuses("takes no tasks"));
    }
    // SAFETY: the tool has put its functions of these types there.
    let (create, string, begin, end) = unsafe {
        (
            std::mem::transmute::<*mut c_void, DomainCreate>(create),
            std::mem::transmute::<*mut c_void, StringCreate>(string),
            std::mem::transmute::<*mut c_void, TaskBegin>(begin),
            std::mem::transmute::<*mut c_void, TaskEnd>(end),
        )
    };
    // SAFETY: a NUL-terminated name.
    let domain = ambient::call(|| unsafe { create(c"weir".as_ptr()) });
    if domain.is_null() {
        return Err(library.refuses("makes no domain"));
    }
    Ok(Itt { domain, string, begin, end })
}

impl Itt {
    fn is_collected(&self) -> bool {
        // SAFETY: a domain that the tool has made, which stays. ORDERING: Relaxed; the tool switches it at any time.
        unsafe { (*self.domain).flags.load(Relaxed) != 0 }
    }

    fn begin(&self, name: *const c_char, made: Option<&AtomicUsize>) {
        let Some(made) = made.filter(|_| self.is_collected()) else { return };
        // ORDERING: Acquire pairs with the Release below: the tool reads what it has made in another thread.
        let mut handle: *mut c_void = ptr::with_exposed_provenance_mut(made.load(Acquire));
        if handle.is_null() {
            // SAFETY: a NUL-terminated name. The tool makes one thing of a name, however often it is asked.
            handle = unsafe { (self.string)(name) };
            made.store(handle.expose_provenance(), Release);
        }
        // SAFETY: the domain and the name are the tool's own.
        unsafe { (self.begin)(self.domain, NO_ID, NO_ID, handle) };
    }

    fn end(&self) {
        if self.is_collected() {
            // SAFETY: as above.
            unsafe { (self.end)(self.domain) };
        }
    }
}

impl Hooks for Itt {
    fn stay_begin(&self, run: &HookedRun<'_>) {
        self.begin(run.names.program(), run.names.handle(None));
    }

    fn stay_end(&self, _run: &HookedRun<'_>) {
        self.end();
    }

    fn node_begin(&self, run: &HookedRun<'_>, node: u32, _flags: u32) {
        self.begin(run.names.node(node), run.names.handle(Some(node)));
    }

    fn node_end(&self, _run: &HookedRun<'_>, _node: u32, _flags: u32) {
        self.end();
    }

    fn region_begin(&self, _number: u32, is_help: bool) {
        let name = if is_help { c"help in a region" } else { c"region" };
        self.begin(name.as_ptr(), REGION.get(usize::from(is_help)));
    }

    fn region_end(&self, _number: u32, _is_help: bool) {
        self.end();
    }
}
