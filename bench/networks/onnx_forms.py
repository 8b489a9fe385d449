# SPDX-License-Identifier: MIT OR Apache-2.0
"""From nodes to kernels: each operator has a form, a function that takes the graph and a call of the operator and gives
the values of its outputs. An operator without one is written out, if ONNX defines it by others."""

import numpy
import onnx
from onnx import helper

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
    known = node.proto is not None and all(array is not None for array in arrays.values())
    if known and node.domain == "" and not node.random and not onnx_rewriting.has_graph(node):
        return folded(scope, node, arrays)
    call = Call(node, [values[name] if name else None for name in node.inputs], scope, values)
    graph.name = node.name
    if any(value is not None and -1 in value.shape for value in call.inputs):
        raise Refusal("a shape that only a run decides")
    known = node.domain in ("", "ai.onnx.preview.training") and node.op in FORMS
    results = FORMS[node.op](graph, call) if known else by_function(graph, call)
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
    function = definition(call) if node.proto is not None and onnx.defs.has(node.op, node.domain) else None
    if function is None:
        raise Refusal(label)
    schema = onnx.defs.get_schema(node.op, node.version, node.domain)
    attributes = {name: a.default_value for name, a in schema.attributes.items() if a.default_value.name}
    attributes.update({attribute.name: attribute for attribute in node.proto.attribute})
    names = {opset.domain: opset.version for opset in function.opset_import}
    versions = {**call.scope.versions, **names}
    nodes = onnx_rewriting.read_nodes([with_attributes(inner, attributes) for inner in function.node], versions)
    formal = dict(zip(function.input, node.inputs))
    given = [name for name in function.input if formal.get(name)]
    values = {name: call.values[formal[name]] for name in given}
    for inner in nodes:  # inputs that are left out
        inner.inputs = ["" if name in function.input and name not in values else name for name in inner.inputs]
    onnx_rewriting.leave_out_unread(nodes, function.output)
    try:
        convert(graph, Scope(versions), nodes, values)
    except Refusal as refusal:
        refusal.node = node.name
        refusal.wanted = [formal[name] for name in onnx_rewriting.origins(nodes, refusal.wanted) if name in given]
        raise
    return [values.get(name) for name in function.output]


class Scope:
    """The versions of the operators inside of a function."""

    def __init__(self, versions):
        self.versions = versions


def definition(call):
    """The body of an operator's function, or None."""
    node = call.node
    schema = onnx.defs.get_schema(node.op, node.version, node.domain)
    of_context = schema.context_dependent_function_opset_versions
    versions = [version for version in of_context or schema.function_opset_versions if version <= node.version]
    versions = versions or (of_context or schema.function_opset_versions)[:1]
    if not versions:
        return None
    function = onnx.FunctionProto()
    if of_context:
        types = []
        for value in call.inputs:
            kind = onnx.TypeProto()
            if value is not None:
                element = helper.np_dtype_to_tensor_dtype(value.dtype)
                kind = helper.make_tensor_type_proto(element, value.shape)
            types.append(kind.SerializeToString())
        proto = onnx_rewriting.renamed(node).SerializeToString()
        text = schema.get_context_dependent_function_with_opset_version(max(versions), proto, types)
    else:
        text = schema.get_function_with_opset_version(max(versions))
    if isinstance(text, bytes):
        function.ParseFromString(text)
    else:
        function.CopyFrom(text)
    return function


def with_attributes(node, attributes):
    """A function's node with the attributes of the call in place of their names."""
    found = onnx.NodeProto()
    found.CopyFrom(node)
    del found.attribute[:]
    for attribute in node.attribute:
        made = onnx.AttributeProto()
        made.CopyFrom(attribute)
        if attribute.ref_attr_name:
            if attribute.ref_attr_name not in attributes:
                continue
            made.CopyFrom(attributes[attribute.ref_attr_name])
            made.name = attribute.name
        elif attribute.type == onnx.AttributeProto.GRAPH:
            inner = [with_attributes(node, attributes) for node in attribute.g.node]
            del made.g.node[:]
            made.g.node.extend(inner)
        found.attribute.append(made)
    return found
