#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The tests of single operators that come with the onnx package, by weir's kernels.

    python3 node_tests.py libweir.so [--only TEXT] [--list] [--threads N]

A test passes if weir's results are those that the package expects, in type, shape and value, by the package's own
tolerances: a part in a thousand, or two units in the last place of f16 and bf16; and differences of floats below a
millionth of the greatest number are none. It is refused if weir has no form for it; the reasons are counted. A form may
need inputs such as shapes, axes and indices as constants: such a test is imported once more with these inputs as
constants, and counts as passed with fixed inputs. Where nothing is left for weir to do the test is called computed at
import, and does not count as passed. Integers of types that weir lacks are held in wider ones, with the same results.
Ends with status 1 if a result is wrong or something failed.
"""

import argparse
import collections
import re
import sys
import warnings

import numpy
import onnx
import onnx_graph
import onnx_rewriting
import weir_ctypes
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

OUTCOMES = {
    "passed": "pass",
    "fixed": "pass, with fixed inputs",
    "computed": "computed at import",
    "refused": "refused",
    "wrong": "wrong",
    "failed": "failed",
}


def as_array(value):
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    if value is None or isinstance(value, (list, dict)):
        raise onnx_graph.Refusal("a sequence or an optional value")
    array = numpy.asarray(value)
    if array.dtype == object or array.dtype.kind in "USO":
        raise onnx_graph.Refusal("type string")
    return array


def origins_among(model, names, inputs):
    """The inputs of the model that these values are made of."""
    nodes = onnx_rewriting.read_nodes(model.graph.node, {})
    return onnx_rewriting.origins(nodes, names) & set(inputs)


def difference(outputs, expected, case):
    """What is wrong with the outputs, or None."""
    for (name, array), wanted in zip(outputs.items(), expected):
        if array.dtype != wanted.dtype:
            return f"'{name}' is of {array.dtype}, not {wanted.dtype}"
        if array.shape != wanted.shape:
            return f"'{name}' has the shape {array.shape}, not {wanted.shape}"
        relative, absolute = case.rtol, case.atol
        if wanted.dtype.kind not in "biu":
            relative = max(relative, {"bfloat16": 2**-6, "float16": 2**-9}.get(wanted.dtype.name, 0))
            array, wanted = array.astype(numpy.float64), wanted.astype(numpy.float64)
            greatest = numpy.abs(wanted[numpy.isfinite(wanted)]).max(initial=0)
            absolute = max(absolute, 1e-6 * greatest)
        try:
            numpy.testing.assert_allclose(array, wanted, rtol=relative, atol=absolute)
        except AssertionError as error:
            return " ".join(str(error).split()[6:30])
    return None


def attempt(weir, model, case, inputs, expected, constants, threads):
    """(outcome, reason) with these inputs as constants."""
    shapes = {name: array.shape for name, array in inputs.items()}
    program = onnx_graph.compile_model(weir, model, threads, shapes, constants)
    try:
        if program.folded:
            return "computed", ""
        outputs = program.run({name: array for name, array in inputs.items() if name not in constants})
        problem = difference(outputs, expected, case)
        return ("wrong", problem) if problem else ("fixed" if constants else "passed", "")
    finally:
        program.close()


def examine(weir, case, threads):
    """(outcome, reason) of a test."""
    model, (given, expected) = case.model, case.data_sets[0]
    constants = {}
    try:
        if any(node.op_type in onnx_rewriting.RANDOM for node in model.graph.node):
            raise onnx_graph.Refusal("random numbers")
        names = [value.name for value in model.graph.input]
        inputs = {name: as_array(value) for name, value in zip(names, given)}
        expected = [as_array(value) for value in expected]
        while True:
            try:
                return attempt(weir, model, case, inputs, expected, constants, threads)
            except onnx_graph.Refusal as refusal:
                found = origins_among(model, refusal.wanted, inputs) - set(constants)
                if not found:
                    raise
                constants.update({name: inputs[name] for name in found})
    except onnx_graph.Refusal as refusal:
        return "refused", refusal.reason
    except weir_ctypes.WeirError as error:
        return "failed", str(error)
    except Exception as error:
        return "failed", f"importer: {type(error).__name__}: {error}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--only", default="", help="tests whose name has this text in it")
    parser.add_argument("--list", action="store_true", help="print every test")
    parser.add_argument("--threads", type=int, default=1)
    settings = parser.parse_args()
    warnings.simplefilter("ignore")
    weir = weir_ctypes.load(settings.library)
    counts, reasons = collections.Counter(), collections.defaultdict(collections.Counter)
    for case in sorted(load_model_tests(kind="node"), key=lambda case: case.name):
        if settings.only not in case.name:
            continue
        outcome, reason = examine(weir, case, settings.threads)
        counts[outcome] += 1
        short = re.sub(r"'[^']*'", "'...'", reason)
        reasons[outcome][short] += 1
        if settings.list or outcome in ("wrong", "failed"):
            print(f"{case.name}: {OUTCOMES[outcome]}{': ' if reason else ''}{reason}", flush=True)
    print("\n| outcome | tests |\n|---|--:|")
    for outcome, text in OUTCOMES.items():
        print(f"| {text} | {counts[outcome]} |")
    print(f"| all | {counts.total()} |")
    print(f"| pass, of all | {counts['passed'] + counts['fixed']} |")
    print("\n| reason of a refusal | tests |\n|---|--:|")
    for reason, count in reasons["refused"].most_common():
        print(f"| {reason} | {count} |")
    if counts["wrong"] or counts["failed"]:
        sys.exit("FAILED: wrong results, or errors")


if __name__ == "__main__":
    main()
