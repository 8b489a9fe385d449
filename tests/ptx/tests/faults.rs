//! What is refused, at reading and at running, and what the texts say.

use weir_ptx::{Call, Calls, Fault, FaultKind, Module, NoCalls, Slice};

fn text(parameters: &str, body: &str) -> String {
    format!(".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry k({parameters})\n{{\n{body}\n}}\n")
}

const REGISTERS: &str =
    ".reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<4>; .shared .align 4 .b8 s[64];";

/// Runs a body with the block's threads; one parameter is the address of eight words.
fn launch(threads: u32, body: &str) -> Result<[u32; 8], Fault> {
    let module = Module::parse(&text(".param .u64 data", &format!("{REGISTERS}\n{body}"))).unwrap();
    let mut words = [0u32; 8];
    let mut memory = Slice::new();
    memory.add(0x1000, &mut words);
    let entry = module.entry("k").unwrap().with_limit(5_000_000);
    entry.run([1, 1, 1], [threads, 1, 1], 0, &0x1000u64.to_le_bytes(), &mut memory, &mut NoCalls)?;
    Ok(words)
}

#[track_caller]
fn faults(kind: FaultKind, threads: u32, body: &str, expected: &[&str]) {
    let fault = launch(threads, body).expect_err("the launch succeeded");
    assert_eq!(fault.kind, kind, "{fault}");
    for part in expected {
        assert!(fault.text.contains(part), "'{part}' is not in: {fault}");
    }
}

#[test]
fn what_is_not_known_is_refused_with_its_line() {
    let refused = |body: &str| Module::parse(&text("", &format!("{REGISTERS}\n{body}"))).unwrap_err();
    for (body, expected) in [
        ("frobnicate.b32 %r1, %r2;", "line 7: frobnicate.b32: unknown instruction"),
        ("add.wild.u32 %r1, %r2, %r3;", "line 7: add.wild.u32: modifier .wild is not known here"),
        ("add.u32 %r1, %r2;", "2 operands, not 3"),
        ("add.u32 %r1, %r2, %r77;", "'%r77' is neither declared nor a special register"),
        ("add.u64 %rd1, %rd2, %r3;", "'%r3' is of type b32, which does not go with u64"),
        ("bra NOWHERE;", "line 7: there is no label 'NOWHERE'"),
        ("@%r1 bra L; L:", "'%r1' is of type b32, not a predicate"),
        ("call missing, ();", "there is no function 'missing'"),
        ("ld.global.u32 %r1, [%f1;", "expected ']'"),
        ("div.f32 %f1, %f2, %f3;", "there is no such operation on this type"),
        ("shfl.down.b32 %r1, %r2, 1, 31;", "only shfl.sync is known"),
        ("wmma.load.a.sync %r1, [%rd1];", "unknown instruction"),
        (".reg .b32 %r1; .reg .b32 %r1;", "'%r1' is declared twice"),
        ("mov.u32 %r1, %tid.w;", "unknown special register %tid.w"),
        ("ld.shared.u32 %r1, [k_param];", "'k_param' is not declared"),
        (".shared .align 9223372036854775808 .b8 t[9223372036854775807];", "aligned to 9223372036854775808"),
        (".shared .b8 t[300000];", "more than 227 KiB of shared memory"),
        ("cvt.s32.f32 %r1, %f1;", "a rounding to integer is missing"),
    ] {
        let found = refused(body);
        assert!(found.contains(expected), "{body}: {found}");
        assert!(found.starts_with("line "), "{found}");
    }
    assert!(Module::parse("").unwrap_err().contains("no .version"));
    assert!(Module::parse(".version 7.0\n.target sm_75\n.address_size 32").unwrap_err().contains("64-bit"));
}

#[test]
fn addresses_out_of_range_name_the_thread_and_the_instruction() {
    let index =
        "ld.param.u64 %rd1, [data]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2;\n";
    faults(
        FaultKind::IllegalAddress,
        16,
        &format!("{index}st.global.u32 [%rd3], %r1;\nret;"),
        &[
            "kernel 'k'",
            "block [0, 0, 0]",
            "thread [8, 0, 0]",
            "line 8",
            "st.global.u32 [%rd3], %r1;",
            "0x1020",
            "write of 4",
        ],
    );
    faults(
        FaultKind::IllegalAddress,
        1,
        "ld.shared.u32 %r1, [s+64];",
        &["4 bytes at 0x40 of shared memory, which has 64 bytes"],
    );
    faults(FaultKind::IllegalAddress, 1, "ld.global.u32 %r1, [0];", &["read of 4 bytes at 0x0: no memory is there"]);
    faults(
        FaultKind::IllegalAddress,
        1,
        ".local .b8 l[8];\nmov.u64 %rd1, l; ld.local.u32 %r1, [%rd1+16];",
        &["local memory"],
    );
    faults(
        FaultKind::IllegalAddress,
        1,
        "mov.u64 %rd1, data; ld.param.u64 %rd1, [%rd1+8];",
        &["the kernel's parameters"],
    );
    faults(
        FaultKind::MisalignedAddress,
        1,
        "ld.param.u64 %rd1, [data]; ld.global.v2.u32 {%r1, %r2}, [%rd1+4];",
        &["0x1004 is not a multiple of the 8 bytes"],
    );
    faults(FaultKind::MisalignedAddress, 1, "st.shared.u32 [s+2], 1;", &["address 0x2"]);
}

#[test]
fn generic_addresses_reach_every_window() {
    let words = launch(
        2,
        ".local .align 8 .b8 l[8];
         ld.param.u64 %rd1, [data];
         mov.u32 %r1, %tid.x;
         mov.u64 %rd2, s;
         cvta.shared.u64 %rd3, %rd2;
         mov.u64 %rd4, l;
         cvta.local.u64 %rd5, %rd4;
         st.u32 [%rd5+4], %r1;
         st.u32 [%rd3], 70;
         ld.local.u32 %r2, [l+4];
         ld.shared.u32 %r3, [s];
         add.u32 %r3, %r2, %r3;
         isspacep.shared %p1, %rd3;
         isspacep.local %p2, %rd3;
         isspacep.global %p3, %rd1;
         selp.u32 %r4, 1000, 0, %p1;
         @%p2 add.u32 %r4, %r4, 1;
         @%p3 add.u32 %r4, %r4, 100;
         add.u32 %r3, %r3, %r4;
         cvta.to.shared.u64 %rd6, %rd3;
         setp.eq.u64 %p1, %rd6, %rd2;
         @!%p1 trap;
         mul.wide.u32 %rd7, %r1, 4;
         add.u64 %rd7, %rd7, %rd1;
         st.u32 [%rd7], %r3;",
    )
    .unwrap();
    assert_eq!(words[..2], [1170, 1171]);
}

#[test]
fn barriers_that_cannot_be_passed_are_named() {
    let branch = "mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 8;\n@%p1 bra L;\n";
    faults(
        FaultKind::Deadlock,
        64,
        &format!("{branch}bar.sync 1;\nL: bar.sync 2;\n"),
        &["deadlock", "barrier 1, line 9", "barrier 2, line 10", "56 wait", "8 wait"],
    );
    faults(
        FaultKind::Deadlock,
        32,
        &format!("{branch}shfl.sync.idx.b32 %r2, %r1, 0, 31, -1;\nret;\nL: bar.sync 0;\n"),
        &["24 wait at mask 0xffffffff", "8 wait at barrier 0"],
    );
    // By another instruction of the same warp, which a GPU does not promise anything for.
    faults(
        FaultKind::Trap,
        32,
        &format!("{branch}bar.sync 0;\nret;\nL: bar.sync 0;\n"),
        &["of the same warp is at the barrier by another instruction"],
    );
    faults(FaultKind::Deadlock, 32, "bar.sync 0, 64;", &["32 wait at barrier 0"]);
    faults(FaultKind::Trap, 32, "bar.sync 16;", &["there is no barrier 16"]);
    faults(FaultKind::Trap, 32, "bar.warp.sync 1;", &["does not name the lane itself, 1"]);
    // Threads that have exited are not awaited.
    launch(64, &format!("{branch}bar.sync 0;\nret;\nL: ret;\n")).unwrap();
}

#[test]
fn loops_traps_and_depth() {
    faults(FaultKind::Endless, 1, "L: bra L;", &["kernel 'k'", "5000000 operations"]);
    faults(FaultKind::Endless, 32, "L: bar.warp.sync -1; bra L;", &["5000000 operations"]);
    faults(FaultKind::Endless, 64, "L: bar.sync 0; bra L;", &["5000000 operations"]);
    faults(
        FaultKind::Trap,
        3,
        "mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 2; @%p1 trap;",
        &["thread [2, 0, 0]", "trap"],
    );
    let recursion = ".version 7.0\n.target sm_75\n.address_size 64\n.func down() { .local .b8 l[64];\ncall down, ();\nret; }\n\
                     .entry k() { call down, (); }";
    let module = Module::parse(recursion).unwrap();
    let fault = module.entry("k").unwrap().run([1; 3], [1; 3], 0, &[], &mut Slice::new(), &mut NoCalls).unwrap_err();
    assert_eq!(fault.kind, FaultKind::Stack, "{fault}");
    assert!(fault.text.contains("line 5 in 'down'"), "{fault}");
    let jump = ".reg .b64 %rd; mov.u64 %rd, 5; call %rd, (), p; p: .callprototype _ ();";
    let module = Module::parse(&text("", jump)).unwrap();
    let fault = module.entry("k").unwrap().run([1; 3], [1; 3], 0, &[], &mut Slice::new(), &mut NoCalls).unwrap_err();
    assert!(fault.text.contains("0x5 is the address of no function"), "{fault}");
}

#[test]
fn launches_are_checked() {
    let module = Module::parse(&text(".param .u32 a, .param .u64 b", ".shared .b8 s[1024]; ret;")).unwrap();
    let entry = module.entry("k").unwrap();
    assert_eq!((entry.parameter_bytes(), entry.static_shared(), entry.max_threads()), (16, 1024, 1024));
    let run = |grid, block, shared, bytes: usize| {
        entry.run(grid, block, shared, &vec![0; bytes], &mut Slice::new(), &mut NoCalls).map_err(|fault| {
            assert_eq!(fault.kind, FaultKind::Launch);
            fault.text
        })
    };
    assert!(run([1; 3], [32, 1, 1], 0, 16).is_ok());
    for (result, expected) in [
        (run([1; 3], [1025, 1, 1], 0, 16), "a block of [1025, 1, 1] threads"),
        (run([1; 3], [0, 1, 1], 0, 16), "a block of [0, 1, 1] threads"),
        (run([1, 0, 1], [1; 3], 0, 16), "a grid of [1, 0, 1] blocks"),
        (run([1; 3], [1; 3], 0, 12), "12 bytes of parameters, not 16"),
        (run([1; 3], [1; 3], 227 << 10, 16), "1024 and 232448 bytes of shared memory"),
    ] {
        assert!(result.as_ref().is_err_and(|text| text.contains(expected)), "{result:?}");
    }
    let exact = text("", "ret;").replace("k()", "k() .reqntid 64, 2");
    let fault = Module::parse(&exact).unwrap().entry("k").unwrap();
    let fault = fault.run([1; 3], [64, 1, 1], 0, &[], &mut Slice::new(), &mut NoCalls).unwrap_err();
    assert!(fault.text.contains("it must be [64, 2, 1]"), "{fault}");
    assert!(module.entry("other").is_none());
}

/// Remembers the calls, and answers with the sum of the arguments.
#[derive(Default)]
struct Outside(Vec<String>);

impl Calls for Outside {
    fn call(&mut self, call: &mut Call<'_>) -> Result<(), String> {
        match call.function {
            "cudaGraphSetConditional" => {
                self.0.push(format!("set {:#x} to {} by {:?}", call.argument(0)?, call.argument(1)?, call.thread));
                Ok(())
            }
            "say" => {
                let text = call.argument(0)?;
                let text = call.text(text)?;
                self.0.push(text);
                let sum = call.argument(1)? + 1;
                call.result.copy_from_slice(&(sum as u32).to_le_bytes());
                Ok(())
            }
            other => Err(format!("what is '{other}'?")),
        }
    }
}

#[test]
fn functions_from_outside() {
    let source = ".version 7.0\n.target sm_75\n.address_size 64
        .extern .func cudaGraphSetConditional(.param .b64 a, .param .b32 b);
        .extern .func (.param .b32 r) say(.param .b64 a, .param .b32 b);
        .extern .func strange();
        .global .align 1 .b8 hello[6] = {104, 101, 108, 108, 111, 0};
        .visible .entry k(.param .u64 handle, .param .u32 strangely)
        {
            .reg .b64 %rd<3>; .reg .b32 %r<4>; .reg .pred %p1;
            ld.param.u64 %rd1, [handle];
            mov.u64 %rd2, hello;
            { .param .b64 p0; .param .b32 p1; .param .b32 r0;
              st.param.b64 [p0], %rd2; st.param.b32 [p1], 41;
              call.uni (r0), say, (p0, p1);
              ld.param.b32 %r1, [r0]; }
            { .param .b64 p0; .param .b32 p1;
              st.param.b64 [p0+0], %rd1; st.param.b32 [p1+0], %r1;
              call.uni cudaGraphSetConditional, (p0, p1); }
            ld.param.u32 %r2, [strangely];
            setp.ne.u32 %p1, %r2, 0;
            @%p1 call strange, ();
            ret;
        }";
    let mut module = Module::parse(source).unwrap();
    assert_eq!(module.globals().len(), 1);
    module.place("hello", 0x4000).unwrap();
    let mut hello = module.image("hello").unwrap();
    assert_eq!(hello, b"hello\0");
    let mut memory = Slice::new();
    memory.add(0x4000, &mut hello);
    let entry = module.entry("k").unwrap();
    let parameters = |strangely: u8| [0xCD, 0xAB, 0, 0, 0, 0, 0, 0, strangely, 0, 0, 0];
    let mut outside = Outside::default();
    entry.run([1; 3], [1; 3], 0, &parameters(0), &mut memory, &mut outside).unwrap();
    assert_eq!(outside.0, ["hello", "set 0xabcd to 42 by [0, 0, 0]"]);
    let fault = entry.run([1; 3], [1; 3], 0, &parameters(1), &mut memory, &mut outside).unwrap_err();
    assert_eq!(fault.kind, FaultKind::Call);
    assert!(fault.text.contains("what is 'strange'?") && fault.text.contains("line 22"), "{fault}");
    let fault = entry.run([1; 3], [1; 3], 0, &parameters(0), &mut memory, &mut NoCalls).unwrap_err();
    assert!(fault.text.contains("there is no function 'say'"), "{fault}");
}

#[test]
fn variables_must_be_placed() {
    let source = ".version 7.0\n.target sm_75\n.address_size 64\n.global .u32 x = 7;\n.global .u64 to_x = generic(x)+4;\n\
                  .entry k() { .reg .u32 %r1; ld.global.u32 %r1, [x]; ret; }";
    let mut module = Module::parse(source).unwrap();
    let fault = module.entry("k").unwrap().run([1; 3], [1; 3], 0, &[], &mut Slice::new(), &mut NoCalls).unwrap_err();
    assert!(fault.text.contains("the variable 'x' has not been placed"), "{fault}");
    assert!(module.image("to_x").unwrap_err().contains("'x', which has not been placed"));
    module.place("x", 0x800).unwrap();
    assert_eq!(module.image("to_x").unwrap(), 0x804u64.to_le_bytes());
    assert!(module.place("y", 0).unwrap_err().contains("no variable 'y'"));
}
