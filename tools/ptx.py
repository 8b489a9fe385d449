#!/usr/bin/env python3
"""Compiles gpu/kernels/*.cu to the .ptx beside them, with NVRTC 12.0: PTX ISA 8.0 for compute_75.

    tools/ptx.py [--nvrtc libnvrtc.so.12] [--ptxas ptxas] [kernel ...]

Without --nvrtc it is looked for in the installed wheel nvidia-cuda-nvrtc-cu12==12.0.140, then by the loader. A later version
would write a later ISA, which drivers of 12.0 refuse; so another version is an error. With --ptxas each result is assembled
as well, for the architectures that this ptxas knows, and registers and spills are listed.

The first line of a .ptx holds the SHA-256 of what it was made from, which a test compares.
"""
import argparse
import ctypes
import glob
import hashlib
import os
import re
import subprocess
import sys
import tempfile

KERNELS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "gpu", "kernels")
OPTIONS = ["--gpu-architecture=compute_75", "--fmad=false", "--std=c++17", "--device-as-default-execution-space"]
VERSION = (12, 0)
ARCHITECTURES = ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"]


def sources(path):
    """The file and what it includes, each once, in the order of their first use."""
    found = []

    def visit(name):
        if name in found:
            return
        found.append(name)
        with open(os.path.join(KERNELS, name)) as file:
            for include in re.findall(r'^#include "(.*)"', file.read(), re.M):
                visit(include)

    visit(path)
    return found


def digest(names):
    """SHA-256 of the options and of all sources."""
    total = hashlib.sha256(" ".join(OPTIONS).encode())
    for name in names:
        with open(os.path.join(KERNELS, name), "rb") as file:
            total.update(b"\n" + name.encode() + b"\n" + file.read())
    return total.hexdigest()


def load(path):
    candidates = [path] if path else []
    for folder in sys.path:
        candidates += glob.glob(os.path.join(folder, "nvidia", "cuda_nvrtc", "lib", "libnvrtc.so.12"))
    candidates.append("libnvrtc.so.12")
    for candidate in candidates:
        try:
            library = ctypes.CDLL(candidate)
        except OSError:
            continue
        major, minor = ctypes.c_int(), ctypes.c_int()
        library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        if (major.value, minor.value) == VERSION:
            return library
        print(f"{candidate} is NVRTC {major.value}.{minor.value}, wanted {VERSION[0]}.{VERSION[1]}")
    sys.exit("no NVRTC 12.0: pip install nvidia-cuda-nvrtc-cu12==12.0.140")


def compile_one(nvrtc, name):
    names = sources(name)
    texts = [open(os.path.join(KERNELS, n), "rb").read() for n in names]
    program = ctypes.c_void_p()
    headers = (ctypes.c_char_p * (len(names) - 1))(*texts[1:])
    includes = (ctypes.c_char_p * (len(names) - 1))(*[n.encode() for n in names[1:]])
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), texts[0], name.encode(), len(names) - 1, headers, includes)
    options = (ctypes.c_char_p * len(OPTIONS))(*[o.encode() for o in OPTIONS])
    result = nvrtc.nvrtcCompileProgram(program, len(OPTIONS), options)
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    if log.value.strip():
        print(log.value.decode())
    if result != 0:
        sys.exit(f"{name}: NVRTC error {result}")
    nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size))
    ptx = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetPTX(program, ptx)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    lines = [line.rstrip() for line in ptx.value.decode().split("\n")]
    # What the compiler says of itself is no part of the module.
    lines = [line for line in lines if line and not line.startswith(("//", ".global .align 8 .u64 _ZN"))]
    to = os.path.join(KERNELS, name[:-3] + ".ptx")
    with open(to, "w") as file:
        file.write(f"// sha256 {digest(names)} {' '.join(names)}\n" + "\n".join(lines) + "\n")
    return to


def assemble(ptxas, path):
    known = subprocess.run([ptxas, "--help"], capture_output=True, text=True).stdout
    for architecture in [a for a in ARCHITECTURES if f"'{a}'" in known]:
        with tempfile.TemporaryDirectory() as folder:
            command = [ptxas, "-v", f"-arch={architecture}", "-c", path, "-o", os.path.join(folder, "out.cubin")]
            done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{path} for {architecture}:\n{done.stderr}")
        registers = [int(n) for n in re.findall(r"Used (\d+) registers", done.stderr)]
        spills = sum(int(n) for n in re.findall(r"(\d+) bytes spill stores", done.stderr))
        stacks = sum(int(n) for n in re.findall(r"(\d+) bytes stack frame", done.stderr))
        print(
            f"{os.path.basename(path)} {architecture}: {len(registers)} kernels, at most {max(registers, default=0)} registers,"
            f" {spills} bytes spilled, {stacks} bytes of stack"
        )


def check():
    """1 if a .ptx is missing or was not made from what is beside it."""
    wrong = 0
    for path in sorted(glob.glob(os.path.join(KERNELS, "*.cu"))):
        names = sources(os.path.basename(path))
        made = path[:-2] + "ptx"
        first = open(made).readline().split() if os.path.exists(made) else []
        if first[:3] != ["//", "sha256", digest(names)]:
            print(f"{os.path.basename(made)} was not made from {' '.join(names)}: run tools/ptx.py")
            wrong = 1
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nvrtc", help="libnvrtc.so.12 of version 12.0")
    parser.add_argument("--ptxas", help="assemble for all architectures, too")
    parser.add_argument("--check", action="store_true", help="only compare the hashes; 1 if one is not right")
    parser.add_argument("kernel", nargs="*", help="names without .cu; default: all")
    given = parser.parse_args()
    if given.check:
        sys.exit(check())
    nvrtc = load(given.nvrtc)
    all_names = sorted(os.path.basename(path)[:-3] for path in glob.glob(os.path.join(KERNELS, "*.cu")))
    for name in given.kernel or all_names:
        path = compile_one(nvrtc, name + ".cu")
        print(f"{os.path.relpath(path)}: {os.path.getsize(path)} bytes")
        if given.ptxas:
            assemble(given.ptxas, path)
    by_hand = [path for path in glob.glob(os.path.join(KERNELS, "*.ptx")) if not os.path.exists(path[:-3] + "cu")]
    for path in by_hand if given.ptxas and not given.kernel else []:
        assemble(given.ptxas, path)


if __name__ == "__main__":
    main()
