#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""What weir_api.json says of NULL, against the library.

    null_arguments.py <top of the repository> <libweir.so>

Calls each function with NULL for all that may not be NULL, and puts something in the place of each argument that the
library names in turn. Fails if a call succeeds, if it complains of NULL where that is legal, or if fewer arguments
than before are shown to be refused.
"""

import ctypes
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(root / "examples/python"))
import weir_ctypes  # noqa: E402

# So many arguments may not be NULL without the library being asked: they stand behind a check of what cannot be
# made up here.
MOST_OTHERS = 25

weir = weir_ctypes.load(sys.argv[2])
create, sized, by = weir_ctypes.create, weir_ctypes.sized, ctypes.byref
kept = []  # what the arguments point to


def some_objects():
    """One object of most kinds."""
    engine_attr = create(weir.weir_engine_attr_create, weir.WEIR_ENGINE_CPU)
    engine = create(weir.weir_engine_create, weir.WEIR_ENGINE_CPU, 0, engine_attr)
    stream_attr = create(weir.weir_stream_attr_create, weir.WEIR_ENGINE_CPU)
    graph = create(weir.weir_graph_create, b"graph")
    desc = weir.weir_tensor_desc(weir.WEIR_F32, 1, (ctypes.c_int64 * 8)(4))
    value = weir._type("weir_value")()
    weir.weir_graph_add_input(graph, b"x", by(desc), by(value))
    weir.weir_graph_add_output(graph, b"y", value)
    engines = (ctypes.c_void_p * 1)(engine)
    relu = sized(weir.weir_eltwise_desc, op=weir.WEIR_ELTWISE_RELU)
    program = create(weir.weir_graph_compile, graph, engines, 1, None)
    pool = create(weir.weir_threadpool_create_inline)
    comm = ctypes.c_void_p()
    stream = create(weir.weir_stream_create, engine, weir.WEIR_STREAM_DEFAULT, stream_attr)
    kernel = create(weir.weir_kernel_create_eltwise, engine, by(relu), None)
    tensors = (ctypes.c_void_p * 1)(create(weir.weir_tensor_create, engine, by(desc), None))
    weir.weir_comm_create_local(1, None, by(comm))
    return {
        "weir_comm": comm,
        "weir_trace": create(weir.weir_trace_start, None),
        "weir_threadpool": pool,
        "weir_task_group": create(weir.weir_task_group_create, pool),
        "weir_engine_attr": engine_attr,
        "weir_engine": engine,
        "weir_stream_attr": stream_attr,
        "weir_stream": stream,
        "weir_event": create(weir.weir_event_create, engine, 0),
        "weir_tensor": ctypes.c_void_p(tensors[0]),
        "weir_buffer": create(weir.weir_buffer_create, engine, 64, None),
        "weir_kernel": kernel,
        "weir_call": create(weir.weir_call_create, stream, kernel, tensors, 1, tensors, 1),
        "weir_graph": graph,
        "weir_program": program,
        "weir_domain": create(weir.weir_domain_create, b"domain"),
        "weir_resource": create(weir.weir_variable_create, engine, None, b"variable", by(desc), 0, None),
    }


def is_pointer(parameter):
    return parameter["type"].endswith("*")


def stand_in(parameter, objects):
    """Something that is no NULL, or None if there is nothing of this type."""
    kind = re.sub(r"\b(const|struct)\b|\*", "", parameter["type"]).strip()
    is_single = parameter["type"].count("*") == 1
    if is_single and kind in objects and parameter["direction"] == "in":
        return objects[kind]
    if is_single and kind == "char" and parameter["direction"] == "in":
        return b"text"
    if kind in weir._handles and is_single or kind.startswith("DL"):
        return None
    memory = (ctypes.c_uint64 * 1024)()
    if is_single and kind in weir._structs and "struct_size" in weir.members(kind):
        memory[0] = ctypes.sizeof(getattr(weir, kind))
    kept.append(memory)
    return ctypes.cast(memory, weir._type(parameter["type"]))


def refused(function, objects, problems):
    """The arguments of which the library says that they may not be NULL."""
    name, parameters = function["name"], function["parameters"]
    left = {one["name"]: one for one in parameters if one.get("nullable") is False}
    arguments = {one["name"]: None if is_pointer(one) else 0 for one in parameters}
    for callback in (one for one in parameters if one["type"] in weir._callbacks):
        arguments[callback["name"]] = None
    seen = []
    while left:
        try:
            getattr(weir, name)(*arguments.values())
        except weir_ctypes.WeirError as error:
            named = re.search(r"INVALID_ARGUMENT: \w+: (\w+) is NULL", str(error))
            if named is None:
                return seen
            named = named[1]
            declared = next((one for one in parameters if one["name"] == named), None)
            if declared is not None and declared.get("nullable") and "length is" not in str(error):
                problems.append(f"{name}: {named} may be NULL, says weir_api.json, but: {error}")
            if named not in left:
                return seen
            seen.append(named)
            arguments[named] = stand_in(left.pop(named), objects)
            if arguments[named] is None:
                return seen
        else:
            problems.append(f"{name}: succeeds with NULL for {', '.join(left)}")
            return seen
    return seen


objects, problems = some_objects(), []
all_refused, others = 0, []
for function in weir._functions.values():
    if function["header"] == "weir/testing.h" or function["returns"] != "weir_status":
        continue
    names = [one["name"] for one in function["parameters"] if one.get("nullable") is False]
    found = refused(function, objects, problems)
    all_refused += len(found)
    others += [f"{function['name']}: {name}" for name in names if name not in found]
if len(others) > MOST_OTHERS:
    problems.append(f"{len(others)} arguments are not shown to be refused, expected {MOST_OTHERS} at most")
    problems += others
for problem in problems:
    print(problem, file=sys.stderr)
if "--names" in sys.argv:
    print("not asked:", *others, sep="\n  ")
print(f"{all_refused} arguments may not be NULL, as the library says; {len(others)} could not be asked")
sys.exit(bool(problems))
