#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Whole networks, weir beside ONNX Runtime: the same weights, the same picture, the same number of threads, in turn.

    python3 networks.py libweir.so <rapidocr-onnxruntime wheel> [--threads N] [--batch B] [--models a,b] [--runs N]
                        [--seconds S] [--nodes]

The models are the light ones of the onnx package, which come without weights and get random ones, and the three of the
wheel. Each side has a process of its own, and only one works at a time, in blocks that take turns; times are medians of
all runs, and those of the fastest run, which say more on a machine that does other work too. ./dev bench networks
prepares all that it needs.
"""

import argparse
import contextlib
import json
import math
import multiprocessing
import pathlib
import statistics
import sys
import tempfile
import time
import traceback
import zipfile

import models
import numpy

BLOCKS = 20
# The workers of ONNX Runtime 1.32 spin for 42 ms after a run. The other side begins later.
PAUSE_S = 0.06
spawn = multiprocessing.get_context("spawn")


class Weir:
    def __init__(self, observed, settings, path, shapes, inputs):
        import onnx
        import onnx_graph
        import weir_ctypes  # onnx_graph knows where it is

        weir = weir_ctypes.load(settings.library)
        model = onnx.load(path)
        self.program = onnx_graph.compile_model(weir, model, settings.threads, shapes, statistics=observed)
        self.program.set_inputs(inputs)
        self.step = self.program.step
        self.outputs = self.program.outputs

    def nodes(self):
        """(kind, milliseconds of the shortest run) of each node."""
        stats = self.program.node_stats()
        return [(models.kind_of(kind), shortest / 1e6) for _, kind, count, shortest in stats if count]


class OnnxRuntime:
    def __init__(self, observed, settings, path, shapes, inputs):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = settings.threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self.optimized = pathlib.Path(path).with_suffix(".optimized.onnx")
        if observed:
            options.enable_profiling = True
            options.profile_file_prefix = str(pathlib.Path(path).with_suffix(""))
            options.optimized_model_filepath = str(self.optimized)
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.session, self.binding = session, session.io_binding()
        self.names = [output.name for output in session.get_outputs()]
        for name, array in inputs.items():
            self.binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(array))
        for name, array in zip(self.names, session.run(None, inputs)):
            self.binding.bind_ortvalue_output(name, onnxruntime.OrtValue.ortvalue_from_numpy(array))

    def step(self):
        self.session.run_with_iobinding(self.binding)

    def outputs(self):
        return dict(zip(self.names, self.binding.copy_outputs_to_cpu()))

    def nodes(self):
        import onnx

        with open(self.session.end_profiling()) as file:
            events = json.load(file)
        kinds = models.node_kinds(onnx.load(self.optimized))
        times = {}
        for event in events:
            if event.get("cat") == "Node" and event["name"].endswith("_kernel_time"):
                times.setdefault((event["name"], event["args"]["op_name"]), []).append(event["dur"] / 1e3)
        found = []
        for (name, op), durations in times.items():
            found.append((kinds.get(name.removesuffix("_kernel_time")) or models.kind_of(op), min(durations)))
        return found


def serve(side, connection, *arguments):
    """A side's process: does what it is asked until the other end is closed."""
    try:
        side = side(*arguments)
        connection.send("ready")
        while True:
            question, *details = connection.recv()
            if question == "block":
                connection.send(block(side.step, *details))
            else:
                connection.send(getattr(side, question)())
    except EOFError:
        pass
    except Exception:
        connection.send(traceback.format_exc())


def block(step, seconds, least):
    """Milliseconds of each run, for so many seconds and at least so many runs."""
    times, clock = [], time.perf_counter
    step()
    end = clock() + seconds
    while len(times) < least or clock() < end:
        begin = clock()
        step()
        times.append((clock() - begin) * 1e3)
    return times


class Failure(Exception):
    pass


@contextlib.contextmanager
def process(side, *arguments):
    ours, theirs = spawn.Pipe()
    child = spawn.Process(target=serve, args=(side, theirs, *arguments), daemon=True)
    child.start()
    theirs.close()

    def ask(*question):
        ours.send(question)
        return receive()

    def receive():
        try:
            answer = ours.recv()
        except EOFError:
            raise Failure(f"{side.__name__} died") from None
        if isinstance(answer, str) and answer != "ready":
            raise Failure(answer.strip())
        return answer

    try:
        receive()
        yield ask
    finally:
        ours.close()
        child.join(10)
        child.terminate()


def compare(outputs, expected):
    """The greatest difference, relative to the greatest number of the output."""
    worst = 0.0
    for name, array in expected.items():
        if outputs[name].shape != array.shape:
            raise Failure(f"output '{name}' is {outputs[name].shape}, not {array.shape}")
        worst = max(worst, float(numpy.abs(outputs[name] - array).max() / numpy.abs(array).max()))
    return worst


def measure(settings, model, folder):
    path = models.prepare(model, settings, folder)
    shapes = {model.input: (settings.batch, *model.shape[1:])}
    inputs = {model.input: models.picture(shapes[model.input], model.strokes)}
    arguments = (settings, str(path), shapes, inputs)
    with process(OnnxRuntime, False, *arguments) as onnxruntime, process(Weir, False, *arguments) as weir:
        times = take_turns(settings, onnxruntime, weir)
        error = compare(weir("outputs"), onnxruntime("outputs"))
    nodes = None
    if settings.nodes:  # both sides are slower when they look at the clock for each node
        with process(OnnxRuntime, True, *arguments) as onnxruntime, process(Weir, True, *arguments) as weir:
            take_turns(settings, onnxruntime, weir)
            nodes = onnxruntime("nodes"), weir("nodes")
    for file in folder.iterdir():
        file.unlink()
    return times, error, nodes


def take_turns(settings, *sides):
    times = tuple([] for _ in sides)
    for number in range(settings.blocks + 1):
        for ask, found in zip(sides, times):
            time.sleep(PAUSE_S)
            block = ask("block", settings.seconds / settings.blocks, math.ceil(settings.runs / settings.blocks))
            if number:  # the first block is to warm up
                found.extend(block)
    return times


def print_nodes(nodes):
    """Number and time of the nodes of each kind."""
    tables = [{}, {}]
    for table, side in zip(tables, nodes):
        for kind, time_ms in side:
            count, total = table.get(kind, (0, 0.0))
            table[kind] = count + 1, total + time_ms
    print("\n    | kind of node | ORT nodes | ORT ms | weir nodes | weir ms | ORT / weir |")
    print("    |---|--:|--:|--:|--:|--:|")
    rows = [(kind, *(table.get(kind, (0, 0.0)) for table in tables)) for kind in {**tables[0], **tables[1]}]
    rows.sort(key=lambda row: -row[1][1] - row[2][1])
    rows.append(("all", *((sum(n for n, _ in t.values()), sum(ms for _, ms in t.values())) for t in tables)))
    for kind, (ort_count, ort_ms), (count, ms) in rows:
        ratio = f"{ort_ms / ms:.2f}" if ms and ort_ms else ""
        print(f"    | {kind} | {ort_count} | {ort_ms:.3f} | {count} | {ms:.3f} | {ratio} |")
    print(flush=True)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", help="libweir.so")
    parser.add_argument("wheel", help="the rapidocr-onnxruntime wheel")
    parser.add_argument("--threads", type=int, default=1, help="threads of each side, the caller's among them")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--models", default="", help="names, separated by commas; default all")
    parser.add_argument("--runs", type=int, default=30, help="the least number of runs of each side")
    parser.add_argument("--seconds", type=float, default=5.0, help="the least time for each side of a model")
    parser.add_argument("--blocks", type=int, default=BLOCKS, help="how often the sides take turns")
    parser.add_argument("--nodes", action="store_true", help="also a table of the time of each kind of node")
    return parser.parse_args()


def main():
    settings = arguments()
    chosen = [name for name in settings.models.split(",") if name] or list(models.MODELS)
    unknown = [name for name in chosen if name not in models.MODELS]
    if unknown:
        sys.exit(f"no model {unknown[0]}; there are {', '.join(models.MODELS)}")
    print(f"threads {settings.threads}, batch {settings.batch}; ORT / weir above 1: weir is faster\n")
    print("| | median ORT ms | weir ms | ORT / weir | fastest ORT ms | weir ms | ORT / weir | error |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|", flush=True)
    ratios, failed = {}, False
    with tempfile.TemporaryDirectory() as folder:
        for name in chosen:
            try:
                times, error, nodes = measure(settings, models.MODELS[name], pathlib.Path(folder))
            except (Failure, zipfile.BadZipFile) as failure:
                failed = True
                print(f"| {name} | {str(failure).splitlines()[-1]} | | | | | | |", flush=True)
                continue
            figures = [[figure(side) for side in times] for figure in (statistics.median, min)]
            ratios[name] = [ort_ms / weir_ms for ort_ms, weir_ms in figures]
            cells = [f"{ort:.2f} | {weir:.2f} | {ratio:.3f}" for (ort, weir), ratio in zip(figures, ratios[name])]
            print(f"| {name} | {cells[0]} | {cells[1]} | {error:.1e} |", flush=True)
            failed |= not error < models.TOLERANCE
            if nodes:
                print_nodes(nodes)
    if all(name in ratios for name in models.MEAN_OF):
        means = [statistics.geometric_mean(both) for both in zip(*(ratios[name] for name in models.MEAN_OF))]
        print(f"| geometric mean of {len(models.MEAN_OF)} | | | {means[0]:.3f} | | | {means[1]:.3f} | |")
    if failed:
        sys.exit("FAILED: not all models could be compared, or results differ")


if __name__ == "__main__":
    main()
