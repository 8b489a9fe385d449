# SPDX-License-Identifier: MIT OR Apache-2.0
"""The nodes of an ONNX model, and what is made of them before they become kernels: constants are computed, affine
functions of channels become part of the convolution before them, and groups of nodes that one kernel computes become
one node."""

import dataclasses

import numpy
import onnx
import onnx.reference
from onnx import helper, numpy_helper

RANDOM = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"}


@dataclasses.dataclass(eq=False)
class Node:
    op: str
    name: str
    inputs: list
    outputs: list
    attributes: dict
    domain: str = ""
    version: int = 0
    proto: onnx.NodeProto = None

    @property
    def random(self):
        return self.op in RANDOM or self.op == "Dropout" and len(self.inputs) > 2

    def get(self, name, default=None):
        value = self.attributes.get(name, default)
        return value.decode() if isinstance(value, bytes) else value


def read_nodes(protos, versions):
    found = []
    for number, proto in enumerate(protos):
        attributes = {a.name: helper.get_attribute_value(a) for a in proto.attribute}
        version = versions.get(proto.domain, versions.get("ai.onnx" if not proto.domain else "", 1))
        label = proto.name or (proto.output[0] if proto.output else str(number))
        inputs, outputs = list(proto.input), list(proto.output)
        domain = "" if proto.domain == "ai.onnx" else proto.domain
        found.append(
            Node(proto.op_type, f"{proto.op_type} {label}", inputs, outputs, attributes, domain, version, proto)
        )
    return found


def renamed(node):
    """The node as ONNX writes it, with the names of its values as they are now."""
    proto = onnx.NodeProto()
    proto.CopyFrom(node.proto)
    del proto.input[:], proto.output[:]
    proto.input.extend(node.inputs)
    proto.output.extend(node.outputs)
    return proto


def evaluate(node, arrays, versions):
    """The outputs of a node whose inputs are all known."""
    names = [name for name in dict.fromkeys(node.inputs) if name]
    given = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(arrays[name].dtype), arrays[name].shape)
        for name in names
    ]
    wanted = [onnx.ValueInfoProto(name=name) for name in node.outputs if name]
    graph = helper.make_graph([renamed(node)], "node", given, wanted)
    opsets = [helper.make_opsetid(domain, version) for domain, version in versions.items()]
    model = helper.make_model(graph, opset_imports=opsets)
    with numpy.errstate(all="ignore"):
        results = onnx.reference.ReferenceEvaluator(model).run(None, {name: arrays[name] for name in names})
    return dict(zip((name for name in node.outputs if name), results))


def graphs_of(node):
    return [value for value in node.attributes.values() if isinstance(value, onnx.GraphProto)]


def has_graph(node):
    return bool(graphs_of(node))


class Source:
    """A model: nodes in order, constants by name, and the inputs that are no constants with their type and shape."""

    def __init__(self, model, constants):
        if model.functions:
            model = onnx.inliner.inline_local_functions(model)
        self.versions = {opset.domain: opset.version for opset in model.opset_import}
        self.nodes = read_nodes(model.graph.node, self.versions)
        self.constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
        self.constants.update(constants)
        self.inputs = {}
        for value in model.graph.input:
            if value.name not in self.constants:
                self.inputs[value.name] = described(value)
        self.outputs = [value.name for value in model.graph.output]
        leave_out_unread(self.nodes, self.outputs)

    def readers(self):
        return readers_of(self.nodes, self.outputs)


def readers_of(nodes, outputs):
    found = {name: ["output"] for name in outputs}
    for node in nodes:
        for name in node.inputs:
            found.setdefault(name, []).append(node)
        for graph in graphs_of(node):  # it may read anything
            for name in outer_names(graph):
                found.setdefault(name, []).append(node)
    return found


def leave_out_unread(nodes, outputs):
    """What nobody reads is as good as left out."""
    readers = readers_of(nodes, outputs)
    for node in nodes:
        node.outputs = [name if place == 0 or name in readers else "" for place, name in enumerate(node.outputs)]


def origins(nodes, names):
    """All that these values are made of; shapes are known."""
    producers = {name: node for node in nodes for name in node.outputs}
    found, left = set(), list(names)
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            node = producers.get(name)
            if node and node.op not in ("Shape", "Size"):
                left.extend(node.inputs)
                left.extend(name for graph in graphs_of(node) for name in outer_names(graph))
    return found


def outer_names(graph):
    names = set()
    for node in graph.node:
        names.update(node.input)
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                names |= outer_names(attribute.g)
    names.update(value.name for value in graph.output)
    return names


def described(value):
    """Type and shape of an input; the type is None if it is no tensor."""
    kind = value.type.WhichOneof("value")
    if kind != "tensor_type":
        return kind, None
    tensor = value.type.tensor_type
    dtype = numpy.dtype(helper.tensor_dtype_to_np_dtype(tensor.elem_type)) if tensor.elem_type else None
    if not tensor.HasField("shape"):
        return dtype, None
    shape = tuple(dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim)
    return dtype, tuple(None if dim is not None and dim < 0 else dim for dim in shape)


def rewrite(source):
    fold_constants(source)
    drop_identities(source)
    join_patterns(source)
    join_affine(source)


def fold_constants(source):
    kept = []
    for node in source.nodes:
        known = all(not name or name in source.constants for name in node.inputs)
        if known and not node.random and not has_graph(node) and node.domain == "":
            try:
                found = evaluate(node, source.constants, source.versions)
            except Exception:  # the conversion says what is wrong with it
                found = {}
            if found and all(isinstance(value, (numpy.ndarray, numpy.generic)) for value in found.values()):
                source.constants.update({name: numpy.asarray(value) for name, value in found.items()})
                continue
        kept.append(node)
    source.nodes = kept


def drop_identities(source):
    """A node that passes its input on is left out, if its output is not one of the model."""
    renamed, kept = {}, []
    for node in source.nodes:
        node.inputs = [renamed.get(name, name) for name in node.inputs]
        unused = len([name for name in node.outputs if name]) == 1
        infers = node.version < 12 or len(node.inputs) < 3
        passes = node.op == "Identity" or node.op == "Dropout" and unused and infers
        if passes and node.outputs[0] not in source.outputs and not any(map(has_graph, source.nodes)):
            renamed[node.outputs[0]] = node.inputs[0]
        else:
            kept.append(node)
    source.nodes = kept


def scalar(source, name):
    """The number that a constant of type f32 consists of, else None."""
    array = source.constants.get(name)
    if array is None or array.size != 1 or array.ndim > 1 or array.dtype != numpy.float32:
        return None
    return float(array.reshape(()))


def replace(source, nodes, made):
    """`made` takes the place of the last of the nodes."""
    place = source.nodes.index(nodes[-1])
    source.nodes[place] = made
    for node in nodes[:-1]:
        source.nodes.remove(node)


def other_input(node, name):
    if len(node.inputs) != 2 or name not in node.inputs:
        return None
    return node.inputs[1 - node.inputs.index(name)]


def join_patterns(source):
    for pattern in (layer_norm, hard_swish, swish):
        for node in list(source.nodes):
            if node in source.nodes:
                pattern(source, node)


def chain(source, readers, node, *ops):
    """The nodes behind `node` of these kinds, each the only reader of the one before; None if there is another."""
    found = [node]
    for op in ops:
        reading = readers.get(found[-1].outputs[0], [])
        if len(reading) != 1 or reading[0] == "output" or reading[0].op != op:
            return None
        found.append(reading[0])
    return found


def hard_swish(source, node):
    """x min(max(x + 3, 0), 6) / 6, and x times its hard sigmoid."""
    readers = source.readers()
    if node.op == "HardSigmoid" and (found := chain(source, readers, node, "Mul")):
        if other_input(found[1], node.outputs[0]) == node.inputs[0]:
            alpha, beta = node.get("alpha", 0.2), node.get("beta", 0.5)
            replace_by(source, found, "HardSwish", [node.inputs[0]], alpha=alpha, beta=beta)
    if node.op != "Add" or not (found := chain(source, readers, node, "Clip", "Mul", "Div")):
        return
    x = next((name for name in node.inputs if scalar(source, name) == 3), None)
    x = other_input(node, x) if x else None
    clip, product, quotient = found[1:]
    if len(clip.inputs) == 3:
        low, high = (scalar(source, name) for name in clip.inputs[1:])
    else:
        low, high = clip.get("min"), clip.get("max")
    divided = quotient.inputs[0] == product.outputs[0] and scalar(source, quotient.inputs[1]) == 6
    if x and (low, high) == (0, 6) and divided and other_input(product, clip.outputs[0]) == x:
        replace_by(source, found, "HardSwish", [x], alpha=1 / 6, beta=0.5)


def swish(source, node):
    """x times its sigmoid, with a factor of 1 that some exporters write."""
    readers = source.readers()
    if node.op == "Mul" and 1 in (one := [scalar(source, name) for name in node.inputs]):
        found = chain(source, readers, node, "Sigmoid", "Mul")
        x = node.inputs[1 - one.index(1)]
    else:
        found = chain(source, readers, node, "Mul") if node.op == "Sigmoid" else None
        x = node.inputs[0]
    if found and other_input(found[-1], found[-2].outputs[0]) == x:
        replace_by(source, found, "Swish", [x], alpha=1.0)


def layer_norm(source, node):
    """(x - mean) / sqrt(mean of squares + epsilon) * scale + shift, over the last axis."""
    if node.op != "ReduceMean" or node.get("axes") != [-1] or not node.get("keepdims", 1):
        return
    readers = source.readers()
    centred = chain(source, readers, node, "Sub")
    if not centred or centred[1].inputs != [node.inputs[0], node.outputs[0]]:
        return
    reading = readers.get(centred[1].outputs[0], [])
    power = next((n for n in reading if n != "output" and n.op == "Pow"), None)
    if power is None or len(reading) != 2 or scalar(source, power.inputs[1]) != 2:
        return
    found = chain(source, readers, power, "ReduceMean", "Add", "Sqrt", "Div", "Mul", "Add")
    if not found or found[1].get("axes") != [-1] or found[4].inputs[0] != centred[1].outputs[0]:
        return
    epsilon = scalar(source, other_input(found[2], found[1].outputs[0]))
    scale, shift = (other_input(n, before.outputs[0]) for before, n in zip(found[4:], found[5:]))
    arrays = [source.constants.get(name) for name in (scale, shift)]
    if epsilon is None or any(array is None or array.ndim != 1 for array in arrays):
        return
    replace_by(
        source, centred + found, "LayerNormalization", [node.inputs[0], scale, shift], axis=-1, epsilon=epsilon
    )


def replace_by(source, nodes, op, inputs, **attributes):
    last = nodes[-1]
    replace(source, nodes, Node(op, last.name, inputs, last.outputs, attributes, "", 20))


def channel_affine(source, node, before):
    """(scale, shift) of a node that is an affine function of each channel of `before`, as f64 arrays; else None."""
    if node.op == "BatchNormalization":
        arrays = [source.constants.get(name) for name in node.inputs[1:5]]
        alone = len([name for name in node.outputs if name]) == 1 and not node.get("training_mode", 0)
        if any(array is None for array in arrays) or node.inputs[0] != before or not alone:
            return None
        if any(array.dtype != numpy.float32 for array in arrays):
            return None
        scale, shift, mean, variance = (array.astype(numpy.float64) for array in arrays)
        factor = scale / numpy.sqrt(variance + node.get("epsilon", 1e-5))
        return factor, shift - mean * factor
    if node.op not in ("Mul", "Add", "Sub", "Div") or before not in node.inputs:
        return None
    array = source.constants.get(other_input(node, before))
    if array is None or array.dtype != numpy.float32:
        return None
    if array.size != 1 and (array.ndim < 3 or array.size != array.shape[-3] or array.ndim > 4) or array.ndim > 4:
        return None
    if node.op in ("Sub", "Div") and node.inputs[0] != before:
        return None
    number = array.reshape(-1).astype(numpy.float64)
    one, zero = numpy.ones_like(number), numpy.zeros_like(number)
    return {"Mul": (number, zero), "Div": (one / number, zero), "Add": (one, number), "Sub": (one, -number)}[node.op]


def collect_affine(source, readers, first):
    """What follows the value `first`, each the only reader: nodes, scale, shift."""
    nodes, name, scale, shift = [], first, numpy.ones(1), numpy.zeros(1)
    while True:
        reading = readers.get(name, [])
        if len(reading) != 1 or reading[0] == "output":
            return nodes, scale, shift
        found = channel_affine(source, reading[0], name)
        if found is None:
            return nodes, scale, shift
        nodes.append(reading[0])
        scale, shift = scale * found[0], shift * found[0] + found[1]
        name = reading[0].outputs[0]


def join_affine(source):
    readers = source.readers()
    for node in list(source.nodes):
        if node not in source.nodes:
            continue
        known = all(name in source.constants for name in node.inputs[1:] if name)
        if known and (node.op == "Conv" or node.op == "ConvTranspose" and node.get("group", 1) == 1):
            weights = source.constants[node.inputs[1]]
            if weights.dtype != numpy.float32 or weights.ndim != 4:
                continue
            axis = 0 if node.op == "Conv" else 1  # of the output channels
            channels = weights.shape[axis]
            following, scale, shift = collect_affine(source, readers, node.outputs[0])
            if not following or len(scale) not in (1, channels) or len(shift) not in (1, channels):
                continue
            has_bias = len(node.inputs) > 2 and node.inputs[2]
            bias = source.constants[node.inputs[2]] if has_bias else numpy.zeros(channels)
            name = node.outputs[0]
            scaled = weights * (scale.reshape(-1, 1, 1, 1) if axis == 0 else scale.reshape(1, -1, 1, 1))
            source.constants[f"{name} weights"] = scaled.astype(numpy.float32)
            source.constants[f"{name} bias"] = (bias * scale + shift).astype(numpy.float32)
            made = dataclasses.replace(
                node, inputs=[node.inputs[0], f"{name} weights", f"{name} bias"], outputs=following[-1].outputs
            )
            source.nodes[source.nodes.index(node)] = made
            for gone in following:
                source.nodes.remove(gone)
        else:
            join_affine_nodes(source, readers, node)


def join_affine_nodes(source, readers, node):
    """Two or more affine nodes in a row become one; two of numbers, or more, become one function."""
    value = next((name for name in node.inputs if name not in source.constants), None)
    first = channel_affine(source, node, value)
    if first is None:
        return
    following, scale, shift = collect_affine(source, readers, node.outputs[0])
    nodes = [node, *following]
    scale, shift = first[0] * scale, first[1] * scale + shift
    if all(any(scalar(source, name) is not None for name in n.inputs) for n in nodes):
        attributes = {"scale": float(scale[0]), "shift": float(shift[0])}
        made = Node("Linear", nodes[-1].name, [value], nodes[-1].outputs, attributes)
    elif node.op == "BatchNormalization":
        channels = len(source.constants[node.inputs[1]])
        if len(scale) not in (1, channels):
            return
        name = node.outputs[0]
        source.constants[f"{name} scale"] = numpy.broadcast_to(scale, channels).astype(numpy.float32)
        source.constants[f"{name} shift"] = numpy.broadcast_to(shift, channels).astype(numpy.float32)
        made = Node("ChannelAffine", nodes[-1].name, [value, f"{name} scale", f"{name} shift"], nodes[-1].outputs, {})
    else:
        return
    source.nodes[source.nodes.index(nodes[-1])] = made
    for gone in nodes[:-1]:
        source.nodes.remove(gone)
