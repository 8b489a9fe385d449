# SPDX-License-Identifier: MIT OR Apache-2.0
"""The networks that are compared: where they come from, their weights, and what they look at."""

import dataclasses
import pathlib
import zipfile

import numpy
import onnx
from onnx import helper, numpy_helper

TOLERANCE = 1e-3
SEED = 20240229


@dataclasses.dataclass
class Model:
    file: str  # in the onnx package, or in the wheel
    input: str
    shape: tuple
    strokes: bool = False  # looks at writing
    in_wheel: bool = False


def light(name, input="data_0"):
    return Model(f"light_{name}.onnx", input, (1, 3, 224, 224))


def ocr(name, height, width):
    return Model(f"rapidocr_onnxruntime/models/{name}_infer.onnx", "x", (1, 3, height, width), True, True)


MODELS = {
    "ppocr-cls": ocr("ch_ppocr_mobile_v2.0_cls", 48, 192),
    "ppocr-rec": ocr("ch_PP-OCRv4_rec", 48, 320),
    "ppocr-det": ocr("ch_PP-OCRv4_det", 320, 320),
    "densenet121": light("densenet121"),
    "inception_v2": light("inception_v2"),
    "resnet50": light("resnet50", "gpu_0/data_0"),
    "shufflenet": light("shufflenet", "gpu_0/data_0"),
    "squeezenet": light("squeezenet"),
    "alexnet": light("bvlc_alexnet"),
    "inception_v1": light("inception_v1"),
    "vgg19": light("vgg19"),
    "zfnet512": light("zfnet512", "gpu_0/data_0"),
}
MEAN_OF = list(MODELS)[:8]


def prepare(model, settings, folder):
    """The model with weights and fixed shapes, as a file in the folder."""
    if model.in_wheel:
        with zipfile.ZipFile(settings.wheel) as wheel:
            proto = onnx.load_from_string(wheel.read(model.file))
    else:
        proto = onnx.load(pathlib.Path(onnx.__file__).parent / "backend/test/data/light" / model.file)
    for value in proto.graph.input:
        if value.name == model.input:
            shape = (settings.batch, *model.shape[1:])
            value.CopyFrom(helper.make_tensor_value_info(value.name, onnx.TensorProto.FLOAT, shape))
    if settings.batch != 1:
        widen_batch(proto, settings.batch)
    if not model.in_wheel:
        set_weights(proto, model)
    path = folder / "model.onnx"
    onnx.save(proto, path)
    return path


def widen_batch(proto, batch):
    """Shapes in the model that say 1 for the batch say something else."""
    shapes = {node.input[1] for node in proto.graph.node if node.op_type == "Reshape"}
    for tensor in proto.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if tensor.name in shapes and array.size and array[0] == 1:
            tensor.CopyFrom(numpy_helper.from_array(numpy.array([batch, *array[1:]]), tensor.name))
    del proto.graph.value_info[:]
    for value in proto.graph.output:
        value.type.tensor_type.ClearField("shape")


def set_weights(proto, model):
    """Random weights for all that is made of a shape alone, of a size that lets numbers neither vanish nor grow from
    layer to layer."""
    graph, random = proto.graph, numpy.random.default_rng(SEED)
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    made = {}
    for node in list(graph.node):
        if node.op_type == "ConstantOfShape" and node.input[0] in constants:
            made[node.output[0]] = tuple(constants[node.input[0]])
            graph.node.remove(node)
    readers = {}
    for node in graph.node:
        for place, name in enumerate(node.input):
            readers.setdefault(name, []).append((node, place))
    kept = [tensor for tensor in graph.initializer if tensor.name not in made]
    kept = [tensor for tensor in kept if tensor.name in readers]
    weights = {name: weight(shape, name, readers, random) for name, shape in made.items()}
    level_out(proto, weights, kept, model)
    kept += [numpy_helper.from_array(array, name) for name, array in weights.items()]
    del graph.initializer[:]
    graph.initializer.extend(kept)
    inputs = [value for value in graph.input if value.name == model.input]
    del graph.input[:]
    graph.input.extend(inputs)


def weight(shape, name, readers, random):
    """A weight by the place where it is read."""
    node, place = readers[name][0]
    while node.op_type in ("Unsqueeze", "Reshape"):
        node, place = readers[node.output[0]][0]

    def normal(deviation):
        return (random.standard_normal(shape) * deviation).astype(numpy.float32)

    if node.op_type in ("Conv", "ConvTranspose", "Gemm", "MatMul") and place == 1:
        first = node.op_type == "MatMul" or node.op_type == "Gemm" and not attribute(node, "transB", 0)
        taps = shape[0] if first else numpy.prod(shape[1:])
        return normal(numpy.sqrt(2 / taps))
    if node.op_type == "Mul" or node.op_type == "BatchNormalization" and place in (1, 4):
        return random.uniform(0.5, 1.5, shape).astype(numpy.float32)
    return normal(0.1)


def level_out(proto, weights, kept, model):
    """Makes the numbers before the last softmax of size 1, so that it does not decide for one class alone."""
    import onnxruntime

    graph = proto.graph
    producers = {name: node for node in graph.node for name in node.output}
    node = producers[graph.output[0].name]
    while node.op_type not in ("Conv", "Gemm", "MatMul"):
        node = producers[node.input[0]]
    probe = onnx.ModelProto()
    probe.CopyFrom(proto)
    del probe.graph.initializer[:], probe.graph.input[:], probe.graph.output[:]
    probe.graph.initializer.extend(kept + [numpy_helper.from_array(array, name) for name, array in weights.items()])
    probe.graph.input.extend(value for value in graph.input if value.name == model.input)
    probe.graph.output.extend([onnx.ValueInfoProto(name=node.output[0])])
    shape = [dim.dim_value for dim in probe.graph.input[0].type.tensor_type.shape.dim]
    session = onnxruntime.InferenceSession(probe.SerializeToString(), providers=["CPUExecutionProvider"])
    logits = session.run(None, {model.input: picture(shape, model.strokes)})[0]
    for name in node.input[1:]:
        if name in weights:
            weights[name] = weights[name] / logits.std()


def picture(shape, strokes):
    """What the networks look at: noise, or dark strokes on light ground."""
    random = numpy.random.default_rng(SEED)
    noise = random.standard_normal(shape, dtype=numpy.float32)
    if not strokes:
        return noise
    picture = numpy.full(shape, 0.7, numpy.float32)
    for top in range(4, shape[2] - 12, 24):
        for left in range(8, shape[3] - 8, 10):
            bar = top + int(random.integers(0, 10))
            picture[:, :, top : top + 12, left : left + 2] = -1
            picture[:, :, bar : bar + 2, left : left + 7] = -1
    return picture + 0.05 * noise


def attribute(node, name, default=None):
    found = next((a for a in node.attribute if a.name == name), None)
    return default if found is None else helper.get_attribute_value(found)


ELEMENTWISE = {"Relu", "Clip", "Add", "Sub", "Mul", "Div", "Sum", "Sigmoid", "Tanh", "HardSigmoid", "HardSwish", "Pow"}
ELEMENTWISE |= {"QuickGelu", "eltwise", "binary", "select", "convert", "Sqrt"}
MOVEMENT = {"Concat", "Reshape", "Transpose", "Slice", "Squeeze", "Unsqueeze", "Resize", "ReorderInput", "Split"}
MOVEMENT |= {"ReorderOutput", "Flatten", "Upsample", "Gather", "Pad"}
MOVEMENT |= {"transpose", "concat", "reshape", "slice", "pad", "gather"}
NORMS = {"BatchNormalization", "LayerNormalization", "SkipLayerNormalization", "Softmax", "ReduceMean", "LRN"}
NORMS |= {"softmax", "norm", "reduce"}


def kind_of(op):
    """The kind of an operator of ONNX Runtime's, or of a kernel of weir's."""
    if op in ELEMENTWISE:
        return "elementwise"
    if op in MOVEMENT:
        return "movement"
    if op in NORMS:
        return "normalisation"
    if op in ("Gemm", "MatMul", "FusedGemm", "FusedMatMul", "matmul"):
        return "product"
    if op == "pooling" or op.endswith("Pool"):
        return "pooling"
    return op if op.startswith("conv ") else "other"


def conv_kind(channels, taps, groups):
    if groups > 1 and groups < channels:
        return "conv grouped"
    if groups > 1:  # by one tap: what became of an affine function of channels
        return "conv depthwise" if any(tap > 1 for tap in taps) else "normalisation"
    if channels <= 4:
        return "conv first"
    if all(tap == 1 for tap in taps):
        return "conv 1x1"
    return "conv 3x3" if list(taps) == [3, 3] else "conv other"


def node_kinds(model):
    """The kind of each convolution of a model, by its name."""
    shapes = {tensor.name: list(tensor.dims) for tensor in model.graph.initializer}
    kinds = {}
    for node in model.graph.node:
        if node.op_type in ("Conv", "FusedConv", "NhwcFusedConv") and node.input[1] in shapes:
            _, channels, *taps = shapes[node.input[1]]
            groups = attribute(node, "group", 1)
            kinds[node.name] = conv_kind(channels * groups, taps, groups)
    return kinds
