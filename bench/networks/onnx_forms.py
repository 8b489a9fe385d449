# SPDX-License-Identifier: MIT OR Apache-2.0
"""From nodes to kernels: each operator has a form, a function that takes the graph and a call of the operator and gives
the values of its outputs. An operator without one is written out, if ONNX defines it by others."""

import numpy
import onnx
import onnx.inliner
from onnx import helper, numpy_helper

import onnx_rewriting
from onnx_graph import Refusal, constant

FORMS = {}


def form(*ops):
    def register(function):
        for op in ops:
            FORMS[op] = function
        return function

    return register


class Call:
    """A node as a form sees it: the values of its inputs, None where one is left out, and its attributes."""

    def __init__(self, node, inputs, scope, values):
        self.node, self.inputs, self.scope, self.values = node, inputs, scope, values
        self.op, self.version = node.op, node.version

    def get(self, name, default=None):
        return self.node.get(name, default)

    def has(self, index):
        return index < len(self.inputs) and self.inputs[index] is not None

    def input(self, index, default=None):
        return self.inputs[index] if self.has(index) else default

    def known(self, index, default=None):
        """The array of an input that has to be a constant."""
        if not self.has(index):
            return default
        if self.inputs[index].array is None:
            raise Refusal(f"input {index} is no constant", [self.node.inputs[index]])
        return self.inputs[index].array

    def numbers(self, name, index, default=None):
        """A list of integers that is an attribute in older versions, and an input in newer ones."""
        if self.get(name) is not None:
            return [int(number) for number in self.get(name)]
        array = self.known(index)
        return default if array is None else [int(number) for number in array.reshape(-1)]

    def wants(self, index):
        """Whether somebody reads the output of that number."""
        return index < len(self.node.outputs) and bool(self.node.outputs[index])


def convert(graph, scope, nodes, values):
    """Adds the nodes to the graph; `values` are those known by name, and receives all others."""
    for node in nodes:
        try:
            values.update(converted(graph, scope, node, values))
        except Refusal as refusal:
            refusal.node = refusal.node or node.name
            raise


def converted(graph, scope, node, values):
    missing = [name for name in node.inputs if name and name not in values]
    if missing:
        raise Refusal(f"value '{missing[0]}' is not there")
    arrays = {name: values[name].array for name in node.inputs if name}
    known = all(array is not None for array in arrays.values())
    if known and node.proto is not None and not node.random and node.domain == "" and not onnx_rewriting.has_graph(node):
        return folded(scope, node, arrays)
    call = Call(node, [values[name] if name else None for name in node.inputs], scope, values)
    graph.name = node.name
    if node.domain == "" and node.op in FORMS:
        results = FORMS[node.op](graph, call)
    else:
        results = by_function(graph, call)
    results = results if isinstance(results, (list, tuple)) else [results]
    for place, name in enumerate(node.outputs):
        if name and (place >= len(results) or results[place] is None):
            raise Refusal(f"output {place}")
    return {name: value for name, value in zip(node.outputs, results) if name}


def folded(scope, node, arrays):
    try:
        found = onnx_rewriting.evaluate(node, arrays, scope.versions)
    except Exception as error:
        raise Refusal(f"cannot be computed: {error}") from error
    if not all(isinstance(value, (numpy.ndarray, numpy.generic)) for value in found.values()):
        raise Refusal("a constant that is no tensor")
    return {name: constant(numpy.asarray(value)) for name, value in found.items()}


def by_function(graph, call):
    """An operator that ONNX defines by others."""
    node = call.node
    label = f"operator {node.domain}.{node.op}" if node.domain else f"operator {node.op}"
    if node.proto is None or not onnx.defs.has(node.op, node.domain):
        raise Refusal(label)
    schema = onnx.defs.get_schema(node.op, node.version, node.domain)
    if not schema.has_function and not schema.has_context_dependent_function:
        raise Refusal(label)
    proto = onnx_rewriting.renamed(node)
    given = {name: value for name, value in zip(node.inputs, call.inputs) if name}
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in given.items()
    ]
    outputs = [onnx.ValueInfoProto(name=name) for name in node.outputs if name]
    constants = [numpy_helper.from_array(v.array, name) for name, v in given.items() if v.array is not None]
    body = helper.make_graph([proto], "function", inputs, outputs, constants)
    opsets = [helper.make_opsetid(domain, version) for domain, version in call.scope.versions.items()]
    model = helper.make_model(body, opset_imports=opsets)
    try:
        model = onnx.inliner.inline_selected_functions(model, [(node.domain, node.op)], False, True)
    except Exception as error:
        raise Refusal(f"{label}: {error}") from error
    nodes = onnx_rewriting.read_nodes(model.graph.node, call.scope.versions)
    if any(inner.op == node.op for inner in nodes):
        raise Refusal(label)
    values = dict(given)
    onnx_rewriting.leave_out_unread(nodes, node.outputs)
    try:
        convert(graph, call.scope, nodes, values)
    except Refusal as refusal:
        refusal.node = node.name
        refusal.wanted = [name for name in refusal.wanted if name in given] or list(
            onnx_rewriting.origins(nodes, refusal.wanted) & set(given)
        )
        raise
    return [values.get(name) for name in node.outputs]
