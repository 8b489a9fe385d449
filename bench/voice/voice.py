#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""weir beside ONNX Runtime on the voice model: the same weights, the same sound, the same machine, in turn.

    python3 voice.py <folder with voice_bench.so> <silero_vad wheel> [--quick] [back-to-back | paced | loaded]...

Each contender has a process of its own, and only one works at a time, in blocks that take turns: steps back to back, a step every
32 ms as from a microphone, and that with two busy processes beside it. ./dev bench voice prepares all that it needs.
"""

import contextlib
import multiprocessing
import os
import pathlib
import platform
import sys
import tempfile
import zipfile

import contenders
import onnxruntime

MODELS = ("silero_vad.onnx", "silero_vad_op18_ifless.onnx", "silero_vad_16k_op15.onnx")
PACE_NS = 32_000_000
# Of each scenario: blocks per contender, steps of a block, nanoseconds from step to step, busy processes.
SCENARIOS = {
    "back-to-back": (10, 300, 0, 0),
    "paced": (4, 60, PACE_NS, 0),
    "loaded": (4, 60, PACE_NS, 2),
}
TOLERANCE = 1e-4

spawn = multiprocessing.get_context("spawn")


def settings():
    """Name -> (kind, arguments). Those of ONNX Runtime are every model with one thread, and with two, spinning or not."""
    found = {"weir, 1 thread": ("weir", (0,)), "weir, pool of 2": ("weir", (2,))}
    for model in MODELS:
        for threads, spinning in ((1, False), (2, True), (2, False)):
            how = "1 thread" if threads == 1 else f"2 threads, {'' if spinning else 'not '}spinning"
            found[f"ONNX Runtime, {model.removesuffix('.onnx')}, {how}"] = ("onnx", (model, threads, spinning))
    found["ONNX Runtime, a model that does nothing"] = ("identity", ())
    found["nothing (the loop)"] = ("nothing", ())
    return found


@contextlib.contextmanager
def process(target, *arguments):
    child = spawn.Process(target=target, args=arguments, daemon=True)
    child.start()
    try:
        yield
    finally:
        child.terminate()
        child.join()


@contextlib.contextmanager
def contender(paths, kind, arguments, preload=None):
    """A function that gives an order to a contender's process and waits for the answer."""
    mine, other = spawn.Pipe()
    if preload:
        os.environ["LD_PRELOAD"] = str(preload)
    child = spawn.Process(target=contenders.serve, args=(other, paths, kind, arguments), daemon=True)
    child.start()
    os.environ.pop("LD_PRELOAD", None)
    other.close()

    def ask(order):
        mine.send(order)
        return mine.recv()

    try:
        yield ask
    finally:
        with contextlib.suppress(OSError):
            mine.send(None)
        child.join()


def measure(paths, names, scenario, quick):
    blocks, steps, pace, busy = SCENARIOS[scenario]
    blocks = 2 if quick else blocks
    known = settings()
    gathered = {name: [] for name in names}
    with contextlib.ExitStack() as stack:
        asks = {name: stack.enter_context(contender(paths, *known[name])) for name in names}
        for _ in range(busy):
            stack.enter_context(process(contenders.be_busy))
        for _ in range(blocks):
            for name in names:
                gathered[name].append(asks[name]((steps, pace)))
    return {name: summary(results) for name, results in gathered.items()}


def summary(results):
    times = sorted(time for result in results for time in result["times"])
    mean = lambda key: sum(result[key] for result in results) / len(times)
    return {
        "p50": times[len(times) // 2] / 1000,
        "p99": times[len(times) * 99 // 100] / 1000,
        "cpu": sum(result["cpu"] for result in results) / len(results),
        "voluntary": mean("voluntary"),
        "involuntary": mean("involuntary"),
    }


def print_table(title, results):
    print(f"\n**{title}**\n\n| | p50 us | p99 us | processor | switches a step, own | by force |")
    print("|---|--:|--:|--:|--:|--:|")
    for name, r in results.items():
        numbers = f"{r['p50']:.1f} | {r['p99']:.1f} | {r['cpu']:.1%} | {r['voluntary']:.3f} | {r['involuntary']:.3f}"
        print(f"| {name} | {numbers} |")
    theirs = [r for name, r in results.items() if name.startswith("ONNX") and "nothing" not in name]
    for name in (name for name in results if name.startswith("weir")):
        ratios = {key: results[name][key] / min(r[key] for r in theirs) for key in ("p50", "p99")}
        print(f"| {name}, against the best of each column | {ratios['p50']:.2f} | {ratios['p99']:.2f} | | | |")


def best_models(results):
    """Of each number of threads the setting with the least median; what else runs."""
    theirs = [name for name in results if name.startswith("ONNX") and "nothing" not in name]
    chosen = []
    for how in ("1 thread", "2 threads, spinning", "2 threads, not spinning"):
        chosen.append(min((name for name in theirs if name.endswith(how)), key=lambda name: results[name]["p50"]))
    return [name for name in results if name not in theirs or name in chosen]


def check(paths):
    """Both hear the same."""
    heard = []
    for name in ("weir, 1 thread", f"ONNX Runtime, {MODELS[0].removesuffix('.onnx')}, 1 thread"):
        with contender(paths, *settings()[name]) as ask:
            ask("probabilities")
            heard.append(ask("probabilities"))
    worst = max(abs(a - b) for a, b in zip(*heard))
    print(f"{len(heard[0])} frames, probabilities differ by {worst:.1e} at most")
    if not worst <= TOLERANCE:
        sys.exit("weir and ONNX Runtime hear different things")


def print_allocations(paths, names):
    print("\n**Allocations a step**, those of the loop taken off\n\n| | malloc and its relatives |\n|---|--:|")
    counts = {}
    for name in [*names, "nothing (the loop)"]:
        with contender(paths, *settings()[name], preload=paths["count"]) as ask:
            ask("allocations")
            counts[name] = ask("allocations")
    for name in names:
        print(f"| {name} | {counts[name] - counts['nothing (the loop)']:.2f} |")


def main():
    quick = "--quick" in sys.argv
    arguments = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    if len(arguments) < 2 or not set(arguments[2:]) <= set(SCENARIOS):
        sys.exit(__doc__)
    built, wheel = map(pathlib.Path, arguments[:2])
    voice = pathlib.Path(__file__).resolve().parents[2] / "examples" / "voice"
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as files:
        files.extractall(folder, [f"silero_vad/data/{model}" for model in MODELS])
        paths = {
            "library": built / "voice_bench.so",
            "count": (built / "count_allocations.so").resolve(),
            "weights": voice / "weights.bin",
            "clip": voice / "clips" / "commands.wav",
            "models": pathlib.Path(folder) / "silero_vad" / "data",
        }
        print(f"ONNX Runtime {onnxruntime.__version__}, Python {platform.python_version()}, {os.cpu_count()} processors")
        check(paths)
        chosen = list(settings())
        for scenario in arguments[2:] or SCENARIOS:
            if scenario != "back-to-back" and len(chosen) == len(settings()):
                chosen = best_models(measure(paths, chosen, "back-to-back", True))
            if scenario != "back-to-back":
                chosen = [name for name in chosen if "a model that does nothing" not in name]
            results = measure(paths, chosen, scenario, quick)
            print_table({"loaded": "A step every 32 ms, two busy processes beside it"}.get(scenario, scenario), results)
            if scenario == "back-to-back":
                chosen = best_models(results)
                print_allocations(paths, [name for name in chosen if "nothing" not in name])


if __name__ == "__main__":
    main()
