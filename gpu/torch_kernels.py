#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""What `gpu_bench kernels` measures, by PyTorch on the same device.

    torch_kernels.py [--fake] [--self-test] <what gpu_bench has printed>

Each row of the table names an operation, types and shapes; here PyTorch does what they say, in calls one behind the
other between two waits for the device, as there. Prints both times in one table. Rows that weir refuses are measured,
too. Without PyTorch or a GPU, and with --fake, it says SKIPPED and leaves with 77. --self-test makes the calls on the
processor, with small shapes: whether they can be made, and nothing about time.
"""

import os
import re
import statistics
import sys
import time

# Seconds for all rows, and for the batches of one.
MOST_SECONDS = 18
BATCH_SECONDS, BATCHES, MOST_CALLS = 0.01, 7, 200
SHAPE = re.compile(r"(f32|bf16|s8)\[([\d,]*)\](\^T)?")


def rows_of(path):
    """The names of the table of kernels, each with weir's time in us, or with what is there instead."""
    rows, is_table = [], False
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if line.startswith("| kernel | us |"):
                is_table = True
            elif is_table and line.startswith("| ") and len(cells) >= 2:
                try:
                    rows.append((cells[0], float(cells[1]), cells[1]))
                except ValueError:
                    rows.append((cells[0], None, cells[1]))
            elif is_table and not line.startswith(("|", "WRONG")):
                is_table = False
    return rows


def tensors(torch, name, device):
    """Random tensors of the shapes that the name has, with those of [..., N, K] as they lie in memory."""
    made = []
    for kind, dims, _ in SHAPE.findall(name):
        dims = [int(dim) for dim in dims.split(",") if dim]
        if kind == "s8":
            made.append(torch.randint(-128, 128, dims, dtype=torch.int8, device=device))
        else:
            kind = torch.float32 if kind == "f32" else torch.bfloat16
            made.append(torch.rand(dims, dtype=kind, device=device) * 2 - 1)
    return made


def call_of(torch, name, device):
    """What a row's name says, as a function that makes the call."""
    functional = torch.nn.functional
    given = tensors(torch, name, device)
    x = given[0]
    if name.startswith("copy "):
        y = torch.empty_like(x)
        return lambda: y.copy_(x)
    if name.startswith("add "):
        other, y = torch.rand_like(x), torch.empty_like(x)
        return lambda: torch.add(x, other, out=y)
    if name.startswith("gelu "):
        return lambda: functional.gelu(x)
    if name.startswith("softmax "):
        return lambda: torch.softmax(x, -1)
    if name.startswith("layer norm "):
        scale, shift = torch.rand_like(x[0]), torch.rand_like(x[0])
        return lambda: functional.layer_norm(x, scale.shape, scale, shift)
    if name.startswith("sum of all "):
        return lambda: torch.sum(x)
    if name.startswith("sum of rows "):
        return lambda: torch.sum(x, -1)
    if name.startswith("conv "):
        weights, stride = given[1], int(re.search(r"stride (\d+)", name).group(1))
        return lambda: functional.conv2d(x, weights, stride=stride, padding=weights.shape[-1] // 2)
    if name.startswith("scaled to "):
        weights = given[1].t()
        scales = torch.rand(weights.shape[1], device=device) * 2**-12
        if name.startswith("scaled to f32"):
            return lambda: torch._int_mm(x, weights) * scales
        return lambda: (torch._int_mm(x, weights) * scales).round_().clamp_(-128, 127).to(torch.int8)
    if name.startswith("linear with gelu "):
        weights = given[1]
        bias = torch.rand(weights.shape[0], dtype=x.dtype, device=device)
        return lambda: functional.gelu(functional.linear(x, weights, bias))
    if name.startswith("product "):
        other = given[1].transpose(-1, -2) if "^T" in name else given[1]
        return lambda: torch.matmul(x, other)
    raise ValueError("it is not known here")


def microseconds(call, wait):
    """The median time of a call, in batches between two waits."""

    def took(calls):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        wait()
        return time.perf_counter() - start

    # Two for libraries that choose and load, one to know how many more.
    took(1)
    took(1)
    once = took(1)
    calls = max(1, min(MOST_CALLS, int(BATCH_SECONDS / once)))
    batches = 3 if once > 0.05 else BATCHES
    return statistics.median(took(calls) / calls for _ in range(batches)) * 1e6


def smaller(name):
    """The same with dimensions of 24 at most."""
    return re.sub(r"(?<=[\[,])\d+", lambda size: str(min(int(size.group()), 24)), name)


def table(torch, rows, device, wait):
    """Prints the table, and gives the number of rows that PyTorch did not do."""
    print("| kernel | weir, us | torch, us | torch / weir |\n|---|---|---|---|")
    begun, ratios, failed = time.perf_counter(), [], 0
    for name, weir_us, text in rows:
        shown = text if weir_us is None else f"{weir_us:.2f}"
        if time.perf_counter() - begun > MOST_SECONDS:
            print(f"| {name} | {shown} | left out: no time left | |")
            continue
        try:
            with torch.inference_mode():
                torch_us = microseconds(call_of(torch, name, device), wait)
        except (RuntimeError, ValueError, AttributeError) as error:
            failed += 1
            reason = str(error).split("\n")[0].replace("|", "/")[:100]
            print(f"| {name} | {shown} | {type(error).__name__}: {reason} | |")
            continue
        ratio = ""
        if weir_us:
            ratio = f"{torch_us / weir_us:.2f}"
            ratios.append(torch_us / weir_us)
        print(f"| {name} | {shown} | {torch_us:.2f} | {ratio} |")
    if ratios:
        took = time.perf_counter() - begun
        print(f"\nMedian of torch / weir over {len(ratios)} rows: {statistics.median(ratios):.2f}; {took:.1f} s.")
    return failed


def main():
    arguments = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    rows = rows_of(arguments[0]) if arguments and os.path.exists(arguments[0]) else []
    if not rows:
        print("SKIPPED: there is no table of gpu_bench kernels")
        return 77
    if "--fake" in sys.argv:
        print(f"SKIPPED: the driver is the fake one, which is weir's alone; {len(rows)} rows were there to be measured")
        return 77
    try:
        import torch
    except ImportError as error:
        print(f"SKIPPED: no PyTorch ({error})")
        return 77
    if "--self-test" in sys.argv:
        return 1 if table(torch, [(smaller(name), us, text) for name, us, text in rows], "cpu", lambda: None) else 0
    if not torch.cuda.is_available():
        print("SKIPPED: PyTorch sees no GPU")
        return 77
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    print(f"\n## The same kernels by PyTorch {torch.__version__}\n")
    print(f"CUDA {torch.version.cuda}, cuDNN {torch.backends.cudnn.version()}, {torch.cuda.get_device_name(0)}.")
    print("Each row is one call of weir's; PyTorch makes two and more of some. TF32 is off: f32 has all its bits on both sides.")
    print("torch / weir above 1: weir takes less time.\n")
    table(torch, rows, "cuda", torch.cuda.synchronize)
    return 0


if __name__ == "__main__":
    sys.exit(main())
