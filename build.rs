//! Generates `include/weir.h` from `src/abi` and `src/ffi`, compresses the modules of CUDA kernels, and gives the shared
//! library its soname.
//!
//! The header is always written to OUT_DIR. It is copied to `include/` when it differs; with WEIR_HEADER_CHECK=1
//! (tests, packaging) a difference is an error instead.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// The sources of the header, in header order. `cbindgen` reads this list and nothing else, so no constant of
/// another module leaks.
const HEADER_SOURCES: &[&str] = &[
    "src/abi/status.rs",
    "src/abi/handles.rs",
    "src/abi/runtime.rs",
    "src/abi/memory.rs",
    "src/abi/threadpool.rs",
    "src/abi/conformance.rs",
    "src/abi/stream.rs",
    "src/abi/notice.rs",
    "src/abi/emulation.rs",
    "src/abi/tensor.rs",
    "src/abi/recording.rs",
    "src/abi/recipe.rs",
    "src/abi/region.rs",
    "src/abi/device.rs",
    "src/abi/cuda.rs",
    "src/abi/kernel.rs",
    "src/abi/kernel_cache.rs",
    "src/abi/elements.rs",
    "src/abi/movement.rs",
    "src/abi/reduction.rs",
    "src/abi/norm.rs",
    "src/abi/gemm.rs",
    "src/abi/conv.rs",
    "src/abi/cell.rs",
    "src/abi/packed.rs",
    "src/abi/run.rs",
    "src/abi/resource.rs",
    "src/abi/dlpack.rs",
    "src/ffi/version.rs",
    "src/ffi/threadpool.rs",
    "src/ffi/threadpool_attr.rs",
    "src/ffi/task_group.rs",
    "src/ffi/conformance.rs",
    "src/ffi/engine.rs",
    "src/ffi/device.rs",
    "src/ffi/emulation.rs",
    "src/ffi/native.rs",
    "src/ffi/memory.rs",
    "src/ffi/stream.rs",
    "src/ffi/event.rs",
    "src/ffi/sync.rs",
    "src/ffi/domain.rs",
    "src/ffi/buffer.rs",
    "src/ffi/tensor.rs",
    "src/ffi/pinned.rs",
    "src/ffi/transfer.rs",
    "src/ffi/kernel_attr.rs",
    "src/ffi/kernel.rs",
    "src/ffi/kernel_named.rs",
    "src/ffi/cuda.rs",
    "src/ffi/ops_elements.rs",
    "src/ffi/ops_movement.rs",
    "src/ffi/ops_reduction.rs",
    "src/ffi/ops_norm.rs",
    "src/ffi/ops_conv.rs",
    "src/ffi/ops_cell.rs",
    "src/ffi/ops_packed.rs",
    "src/ffi/kernel_cache.rs",
    "src/ffi/kernel_context.rs",
    "src/ffi/dynamic.rs",
    "src/ffi/gemm.rs",
    "src/ffi/graph.rs",
    "src/ffi/control.rs",
    "src/ffi/frames.rs",
    "src/ffi/placement.rs",
    "src/ffi/program.rs",
    "src/ffi/program_stats.rs",
    "src/ffi/segments.rs",
    "src/ffi/run.rs",
    "src/ffi/run_options.rs",
    "src/ffi/partial.rs",
    "src/ffi/concurrent.rs",
    "src/ffi/failure.rs",
    "src/ffi/dlpack.rs",
    "src/ffi/resource.rs",
    "src/ffi/variable.rs",
    "src/ffi/table.rs",
];

/// The number in the soname: libweir.so.0.<ABI>. The same as WEIR_ABI_VERSION.
const SONAME: &str = "libweir.so.0.1";

/// A banner in front of the first call of each noun: the call, the title, the concept.
const SECTIONS: &[(&str, &str, &str)] = &[
    (
        "weir_version",
        "Library",
        "Which library this is, what the last failure was, and what the library has started and holds.",
    ),
    (
        "weir_threadpool_create",
        "Thread pool",
        "A pool is yours: fill a weir_threadpool_vtable with parallel_for, schedule or both, and weir runs all work on it. NULL stands for \"the calling thread\" wherever a pool is asked for, but for an engine whose thread mode says otherwise. What counts first: the pool of the call, then of the stream, then of the engine, then the caller. weir never waits for a closure that your pool has not begun.",
    ),
    (
        "weir_threadpool_conformance",
        "Conformance",
        "Does a pool, or a device, keep its side of the contract? The program weir_conformance asks this of pools and of plug-ins in shared objects, and a pool in checking mode (weir_threadpool_attr_set_checking) is asked all the time.",
    ),
    (
        "weir_engine_attr_create",
        "Engine",
        "An engine is a device: memory, and the means to run kernels. A CPU engine may carry a pool: one of yours, or one that weir starts because its thread mode says so. What the settings leave open the environment may decide, read once per process. WEIR_THREAD_MODE: global, private, kind or caller, in any case of letters; for engines that were given neither a mode nor a pool. WEIR_THREAD_COUNT: 0 to 256, as in weir_engine_attr_set_thread_count. Any other value is INVALID_ARGUMENT where it would be used.",
    ),
    (
        "weir_engine_kind_from_name",
        "Device",
        "Engines of one kind stand on devices that somebody makes: weir itself, or a plug-in, which is a vtable of C functions (weir_device_vtable) that a program registers, or a library that weir_device_load opens. A plug-in's engines have streams, events, tensors and kernels like all others. After a fork the child leaves plug-ins alone; a library that was loaded is never unloaded. docs/devices.md is the contract.",
    ),
    (
        "weir_engine_attr_set_emulation",
        "Emulated devices",
        "A device for tests where there is none: streams that work on their own, memory that the host cannot touch, kernels that run as host functions on a thread of the device's. A seed decides the order of its work, and decides it again; faults come when they are asked for; a checker reports operations that use the same bytes and that nothing orders (docs/emulated.md).",
    ),
    (
        "weir_engine_get_native_handle",
        "Native handles",
        "What the interface below a device calls an engine, a stream or an event of weir's, for work of the host's own beside it.",
    ),
    (
        "weir_cuda_get_device_info",
        "CUDA",
        "Engines of kind WEIR_ENGINE_CUDA stand on the devices of the CUDA driver, which is looked for at run time: a machine without one, or with one older than CUDA 12.0, has no such engines, and the failure of weir_engine_create says why. They work in the primary context, as the runtime library of CUDA does, or in one of yours; streams and events go both ways. The streams of weir do not wait for the legacy default stream, nor it for them. The environment variable WEIR_CUDA_SYNC=1 has each call wait for its work, to find what fails. Matrix products are those of cuBLASLt where that is installed; WEIR_CUDA_BLAS=0 leaves it alone, and with WEIR_CUDA_BLAS=1 a kernel of products is not made without it (UNAVAILABLE). docs/cuda.md has the rules.",
    ),
    (
        "weir_allocator_create",
        "Memory",
        "An engine's tensors, scratch and the values of runs lie in regions that it gets from the system, or from an allocator of yours, and cuts into blocks. What comes back is kept for the next, so that in the steady state nothing is asked for. A limit bounds the regions; beyond it a call fails with RESOURCE_EXHAUSTED, at once, and says what holds the memory. The environment variable WEIR_MEMORY_MODE, pooled or direct, read once per process, is for engines that were given no mode; any other value is INVALID_ARGUMENT where it would be used.",
    ),
    (
        "weir_stream_attr_create",
        "Stream",
        "A stream is an in-order queue on an engine. On the CPU it is synchronous unless asked otherwise: calls run in the calling thread and return their own errors. An asynchronous stream that fails keeps its first error, skips what is queued behind it, reports it once when it is waited for, and refuses new work until the error is cleared. The queue has no bound: whoever submits faster than the stream works fills the memory.",
    ),
    (
        "weir_event_create",
        "Event",
        "An event marks a point in a stream, for other streams and threads to wait for, and for time.",
    ),
    ("weir_sync_devices", "Everything at once", "One call before you read the clock."),
    (
        "weir_domain_create",
        "Domain",
        "Two users of the library in one process, a framework and a plug-in of it, say, need not wait for each other nor be told of each other's failures: each makes a domain, its engines in it, and waits for the domain. Who asks for none is in the default domain. A late failure is told once by its stream, once by its engine, once by its domain and once by weir_sync_devices; none of them takes it away from another. docs/waiting.md has the rules.",
    ),
    (
        "weir_buffer_create",
        "Buffer",
        "A buffer is memory without a shape: of the engine's, or of yours, which is given back to you by a callback. Tensors lie in it where you say.",
    ),
    (
        "weir_dtype_name",
        "Tensor",
        "A tensor is a dense, row-major array in an engine's memory, or over memory of yours.",
    ),
    (
        "weir_kernel_attr_create",
        "Kernel",
        "A kernel is a function over tensors with a checked signature: one of the built-in ones, or a C function of yours, which sees its call through a weir_kernel_context.",
    ),
    (
        "weir_kernel_cache_set_capacity",
        "Kernel cache",
        "Who creates a built-in kernel that was created before, for the same device and with the same settings, is given the same kernel in a handle of its own: name, cost and engine are the handle's. The cache keeps no engine, pool or packed weights alive, and is empty when the last engine is released. Kernels of the host are not in it. The environment variable WEIR_KERNEL_CACHE_CAPACITY, 0 to 1048576, says how many kernels are kept if weir_kernel_cache_set_capacity does not; it is read once per process, and any other value is INVALID_ARGUMENT where a built-in kernel is created.",
    ),
    (
        "weir_kernel_context_allocate_output",
        "Shapes that a run decides",
        "An output may have a shape that only its kernel knows, when it runs: what a tokenizer, a filter or a search finds. Such dimensions are WEIR_DIM_DYNAMIC in every description; the kernel says what they are and gets memory, those behind it see them in their views, and the host reads them from a dynamic tensor.",
    ),
    (
        "weir_sgemm",
        "Matrix products without an engine",
        "Functions in the style of BLAS, for code that has arrays and a pool and wants nothing else. Each call says which pool shares its work; NULL is the calling thread alone. The results do not depend on it. They use the best instruction set of the processor up to the one that the environment variable WEIR_MAX_ISA names when the first product is made: portable, neon, avx2, avx512, avx512_vnni or amx. The registers of AMX are given by the system to a whole process, which costs it larger signal frames: weir asks for them only if the variable says amx, and uses them too if the process has asked before (docs/kernels.md).",
    ),
    (
        "weir_graph_create",
        "Graph",
        "A graph is built once, from inputs, constants, kernels, tasks and control edges, and compiled. Nodes have names, and every refusal uses them.",
    ),
    ("weir_compile_options_create", "Program", "A program is a compiled graph: immutable, shared, and re-entrant."),
    (
        "weir_tensor_to_dlpack",
        "Exchange",
        "Tensors to and from other libraries, by DLPack: the same memory, with an owner that is told once when it is not used any more. The structs are those of dlpack.h, or of weir/dlpack.h.",
    ),
    (
        "weir_resource_lookup",
        "Resources",
        "What an engine keeps by name between runs: variables, lookup tables, objects of yours. A name is in a container, NULL = \"default\". Names of resources have at most 127 bytes, those of containers 63: letters, digits, '.', '_', '-' and '/', not beginning with '_', '-' or '/'. Creating with name NULL makes a resource without one. A resource is counted: its name holds one reference, handles, programs and queued work hold others. See docs/resources.md.",
    ),
    (
        "weir_variable_create",
        "Variable",
        "A tensor that lives between runs. Kernels read it, assign to it and add to it, as nodes of graphs and with weir_enqueue. In a graph edges must say in which order; two runs at once, or a run and the host, are kept apart by the variable: an exclusive one by a lock that never blocks a worker of a pool, an optimistic one by versions.",
    ),
    ("weir_table_create", "Lookup table", "64-bit integers or byte strings to rows of one type and shape."),
    (
        "weir_run_options_create",
        "Run",
        "A run reads the program's inputs and writes its outputs. It allocates nothing from the second time on.",
    ),
];

/// Whether a stale header is an error.
fn checking() -> bool {
    env::var_os("WEIR_HEADER_CHECK").is_some_and(|v| v != "0")
}

/// Turns comments of one line into one line.
fn one_line_comments(header: &str) -> String {
    let mut out = Vec::new();
    let lines: Vec<&str> = header.lines().collect();
    let mut at = 0;
    while at < lines.len() {
        let text = lines.get(at + 1).and_then(|line| line.trim_start().strip_prefix("* "));
        match text {
            Some(text) if lines[at].trim() == "/**" && lines.get(at + 2).is_some_and(|l| l.trim() == "*/") => {
                let indent = &lines[at][..lines[at].len() - lines[at].trim_start().len()];
                out.push(format!("{indent}/** {text} */"));
                at += 3;
            }
            _ => {
                out.push(lines[at].to_owned());
                at += 1;
            }
        }
    }
    out.join("\n") + "\n"
}

/// Breaks text at spaces.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.len() - 1;
        if !lines[last].is_empty() && lines[last].len() + 1 + word.len() > width {
            lines.push(word.to_owned());
        } else {
            if !lines[last].is_empty() {
                lines[last].push(' ');
            }
            lines[last].push_str(word);
        }
    }
    lines
}

/// Puts the banners in front of the comments of their calls.
fn with_sections(header: &str) -> Result<String, String> {
    let mut lines: Vec<String> = header.lines().map(str::to_owned).collect();
    for (call, title, concept) in SECTIONS {
        let declared = lines
            .iter()
            .position(|line| line.contains(&format!("{call}(")) && !line.trim_start().starts_with('*'))
            .ok_or_else(|| format!("section '{title}': {call} is not declared"))?;
        let comment = lines[..declared].iter().rposition(|line| line.starts_with("/**")).ok_or("no comment")?;
        let rule = "-".repeat(108 - title.len());
        let mut banner = vec![String::new(), format!("/* ---- {title} {rule}")];
        banner.extend(wrapped(concept, 110).into_iter().map(|line| format!(" * {line}")));
        banner.extend([" */".to_owned(), String::new()]);
        lines.splice(comment..comment, banner);
    }
    Ok(lines.join("\n") + "\n")
}

fn main() {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"));
    for source in HEADER_SOURCES.iter().chain(&["build.rs", "cbindgen.toml", "include/weir.h"]) {
        println!("cargo::rerun-if-changed={source}");
    }
    println!("cargo::rerun-if-env-changed=WEIR_HEADER_CHECK");
    if let Err(error) = header(&root) {
        // A syntax error in a source is rustc's to report.
        let level = if checking() { "error" } else { "warning" };
        println!("cargo::{level}=weir.h was not generated: {error}");
    }
    #[cfg(feature = "cuda")]
    compress_modules(&root).expect("the modules of gpu/kernels can be read, and OUT_DIR written");
    if env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,{SONAME}");
        // Threads may still be inside the library, and thread-local destructors point into it: it is never unloaded.
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}

/// The text of the CUDA kernels is the larger part of what the library would carry for them.
#[cfg(feature = "cuda")]
fn compress_modules(root: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let folder = root.join("gpu/kernels");
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    println!("cargo::rerun-if-changed={}", folder.display());
    for file in fs::read_dir(folder)? {
        let path = file?.path();
        if path.extension().is_some_and(|extension| extension == "ptx") {
            let compressed = miniz_oxide::deflate::compress_to_vec(&fs::read(&path)?, 9);
            fs::write(out.join(path.file_name().ok_or("no name")?).with_extension("ptx.deflate"), compressed)?;
        }
    }
    Ok(())
}

fn header(root: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml"))?;
    let mut builder = cbindgen::Builder::new().with_config(config);
    for source in HEADER_SOURCES {
        builder = builder.with_src(root.join(source));
    }
    let fresh = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?).join("weir.h");
    builder.generate()?.write_to_file(&fresh);
    let new = with_sections(&one_line_comments(&fs::read_to_string(&fresh)?))?;
    let kept = root.join("include/weir.h");
    if fs::read_to_string(&kept).ok().as_ref() != Some(&new) {
        if checking() {
            println!("cargo::error=include/weir.h is stale: build once without WEIR_HEADER_CHECK and commit it");
        } else if let Err(error) = fs::write(&kept, new) {
            println!("cargo::warning=include/weir.h is stale and cannot be written: {error}");
        }
    }
    Ok(())
}
