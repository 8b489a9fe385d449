#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The ocr example, with networks run by weir and by ONNX Runtime: the same page, the same steps before and after the
networks, the same number of threads, in turn.

    python3 ocr.py <folder with libocr_weir.so> ocr.weir <rapidocr-onnxruntime wheel> page.png [--threads N] [--runs N]
                   [--seconds S]

Each side has a process of its own. With more than one thread ONNX Runtime has two ways: lines side by side on the
example's pool, each by one thread, and one line after the other, each by all threads. The texts must be equal; the
smaller of its times counts. On a machine that does other work too, the processor's time for a page says more than the
clock. ./dev bench ocr prepares all that it needs.
"""

import argparse
import ctypes
import pathlib
import statistics
import sys
import time
import zipfile

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "networks"))
import networks  # noqa: E402

FILES = {
    "detect": "ch_PP-OCRv4_det_infer.onnx",
    "turn": "ch_ppocr_mobile_v2.0_cls_infer.onnx",
    "read": "ch_PP-OCRv4_rec_infer.onnx",
}
RUNNER = ctypes.CFUNCTYPE(
    None, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32, ctypes.c_void_p, ctypes.c_uint64,
    ctypes.c_uint64,
)


class Side:
    def __init__(self, settings, library, pool):
        self.library = library
        library.ocr_open.restype = ctypes.c_void_p
        library.ocr_line.restype = ctypes.c_char_p
        session = library.ocr_open(settings.networks.encode(), settings.picture.encode(), pool)
        if not session:
            raise networks.Failure("the networks or the picture cannot be read")
        self.session = ctypes.c_void_p(session)
        self.used = []
        self.step()  # compiles

    def step(self):
        begin = time.process_time()
        self.library.ocr_read(self.session)
        self.used.append(1e3 * (time.process_time() - begin))

    def processor(self):
        """Milliseconds of the processor's time for a page."""
        return statistics.median(self.used[1:])

    def lines(self):
        found, confidence = [], ctypes.c_float()
        while text := self.library.ocr_line(self.session, ctypes.c_uint64(len(found)), ctypes.byref(confidence)):
            found.append((text.decode(), confidence.value))
        return found


class Weir(Side):
    def __init__(self, settings):
        super().__init__(settings, ctypes.CDLL(f"{settings.folder}/libocr_weir.so"), settings.threads)


class OnnxRuntime(Side):
    """`beside`: lines side by side."""

    def __init__(self, settings, beside):
        import onnxruntime

        self.sessions, self.bindings = {}, {}
        with zipfile.ZipFile(settings.wheel) as wheel:
            for name, file in FILES.items():
                options = onnxruntime.SessionOptions()
                options.intra_op_num_threads = 1 if beside and name != "detect" else settings.threads
                options.inter_op_num_threads = 1
                options.log_severity_level = 3
                if beside:  # threads that spin would take the processor from the lines
                    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
                model = wheel.read(f"rapidocr_onnxruntime/models/{file}")
                self.sessions[name] = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        library = ctypes.CDLL(f"{settings.folder}/libocr_elsewhere.so")
        self.runner = RUNNER(self.run)
        library.ocr_set_runner(self.runner)
        super().__init__(settings, library, settings.threads if beside else 1)

    def run(self, name, picture, height, width, answer, rows, columns):
        """Called for each network, from the threads of the pool too. Nothing is copied."""
        name = name.decode()
        session, binding = self.sessions[name], self.bindings.get((name, picture, width, height))
        if binding is None:
            shape = {"detect": (1, 1, rows, columns), "turn": (1, columns), "read": (1, rows, columns)}[name]
            binding = self.bindings[name, picture, width, height] = session.io_binding()
            binding.bind_input("x", "cpu", 0, numpy.float32, (1, 3, height, width), picture)
            binding.bind_output(session.get_outputs()[0].name, "cpu", 0, numpy.float32, shape, answer)
        session.run_with_iobinding(binding)


def compare(lines, expected):
    """The greatest difference of confidences. Texts must not differ."""
    if [text for text, _ in lines] != [text for text, _ in expected]:
        pairs = [pair for pair in zip(lines, expected) if pair[0][0] != pair[1][0]]
        raise networks.Failure(f"texts differ, {len(lines)} and {len(expected)} lines: {pairs[:3]}")
    return max((abs(a - b) for (_, a), (_, b) in zip(lines, expected)), default=0.0)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="with libocr_weir.so and libocr_elsewhere.so")
    parser.add_argument("networks", help="ocr.weir")
    parser.add_argument("wheel", help="the rapidocr-onnxruntime wheel")
    parser.add_argument("picture", help="the page")
    parser.add_argument("--threads", type=int, default=0, help="of each side; default one, and then two")
    parser.add_argument("--runs", type=int, default=20, help="the least number of pages of each side")
    parser.add_argument("--seconds", type=float, default=20.0, help="the least time for each side")
    parser.add_argument("--blocks", type=int, default=10, help="how often the sides take turns")
    return parser.parse_args()


def main():
    settings = arguments()
    both = [settings.threads] if settings.threads else [1, 2]
    columns = [f"{figure} ORT ms | weir ms | weir / ORT" for figure in ("median", "fastest", "processor")]
    print(f"| threads | ONNX Runtime | {' | '.join(columns)} | texts | confidences |")
    print("|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|--:|", flush=True)
    for settings.threads in both:
        ways = {"lines side by side": True, "line after line": False} if settings.threads > 1 else {"": False}
        for way, beside in ways.items():
            with networks.process(OnnxRuntime, settings, beside) as ort, networks.process(Weir, settings) as weir:
                try:
                    error = compare(weir("lines"), ort("lines"))
                except networks.Failure as failure:
                    sys.exit(f"FAILED: {failure}")
                times = networks.take_turns(settings, ort, weir)
                figures = [map(statistics.median, times), map(min, times), (ort("processor"), weir("processor"))]
            cells = [f"{ort_ms:.1f} | {ms:.1f} | {ms / ort_ms:.3f}" for ort_ms, ms in figures]
            print(f"| {settings.threads} | {way} | {' | '.join(cells)} | equal | {error:.1e} |", flush=True)


if __name__ == "__main__":
    main()
