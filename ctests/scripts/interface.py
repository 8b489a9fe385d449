#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""What weir_api.json says of the interface, against what is there.

    interface.py <top of the repository>

Fails if a fact of it is wrong: a layout that abi_layout.c pins otherwise, a function that no contract fits, a line in
not_in_cpp.txt that is not true any more. Prints how large the interface is, and what of it is still missing elsewhere.
"""

import json
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
api = json.loads((root / "include/weir/weir_api.json").read_text())
functions = {function["name"]: function for function in api["functions"]}
problems = []


def texts(*patterns):
    paths = (path for pattern in patterns for path in sorted(root.glob(pattern)) if path.is_file())
    return "\n".join(path.read_text(errors="replace") for path in paths)


def used_in(text):
    return set(re.findall(r"\bweir_[a-z0-9_]+", text))


# The compiler believes abi_layout.c, so the layouts are right if the two agree.
pins = (root / "ctests/process/abi_layout.c").read_text()
sizes = {name: int(size) for name, size in re.findall(r"^SIZE\((\w+), (\d+)\)", pins, re.M)}
offsets = {(name, member): int(at) for name, member, at in re.findall(r"^OFFSET\((\w+), (\w+), (\d+)\)", pins, re.M)}
for struct in api["structs"]:
    name = struct["name"]
    if sizes.get(name) != struct["size"]:
        problems.append(f"{name}: abi_layout.c says {sizes.get(name)} bytes, weir_api.json {struct['size']}")
    for field in struct["fields"]:
        if offsets.get((name, field["name"])) != field["offset"]:
            problems.append(f"{name}.{field['name']}: abi_layout.c and weir_api.json differ")

# A function's result and its errors fit together.
for name, function in functions.items():
    fails = function["returns"] == "weir_status"
    if fails != bool(function["errors"]):
        problems.append(f"{name}: returns {function['returns']}, errors {function['errors']}")
    if re.search(r"_(release|destroy)$", name) and fails:
        problems.append(f"{name}: cannot fail, says the first page")
    outs = [parameter["direction"] for parameter in function["parameters"]]
    if not all(parameter["name"] for parameter in function["parameters"]):
        problems.append(f"{name}: a parameter has no name")
    if fails and "out" in outs and "in" in outs[outs.index("out") :] and name not in {"weir_graph_add_kernel"}:
        late = [p["name"] for p in function["parameters"][outs.index("out") :] if p["direction"] == "in"]
        if not all(one.startswith("num_") or one in {"bytes", "capacity", "count"} for one in late):
            problems.append(f"{name}: outputs come last, but {', '.join(late)} behind one")

    # Products keep the arguments of BLAS and oneDNN.
    if len(outs) > 8 and function["chapter"] != "Matrix products without an engine":
        problems.append(f"{name}: has {len(outs)} arguments, expected 8 at most")

# All codes that a header names behind "Errors:", and those of the functions that it refers to there.
headers = texts("include/weir.h", "include/weir/*.h")
for found in re.finditer(r"/\*\*((?:(?!\*/).)*)\*/\s*((?:(?!/\*|;).)*?\b(weir_\w+)\s*\()", headers, re.S):
    text, name = re.sub(r"\s*\n \* ?", " ", found[1]), found[3]
    if name not in functions or not functions[name]["errors"]:
        continue
    said = text.partition("Errors: ")[2]
    has = set(functions[name]["errors"])
    known = {code for function in functions.values() for code in function["errors"]}
    missing = {word for word in re.findall(r"\b[A-Z][A-Z_]+\b", said) if word in known} - has
    for other in re.findall(r"\b(?:as|those of) (weir_\w+)", re.sub(r"\([^()]*\)", "", said)):
        missing |= set(functions[other]["errors"]) - has
    if missing:
        problems.append(f"{name}: its errors lack {', '.join(sorted(missing))}")

cpp = used_in(texts("include/weir.hpp", "include/weir/*.hpp"))
# kernel::of has each operator of the list.
cpp |= {f"weir_kernel_create_{name}" for name in re.findall(r"X\((\w+),", texts("include/weir/operators.h"))}
reasons = {}
for line in (root / "ctests/scripts/not_in_cpp.txt").read_text().splitlines():
    if line and not line.startswith("#"):
        name, _, reason = line.partition(" ")
        reasons[name] = reason.strip()
for name, reason in reasons.items():
    if name not in functions or name in cpp or not reason:
        problems.append(f"not_in_cpp.txt: {name} is gone, is in the C++ layer, or has no reason")

missing = sorted(set(functions) - cpp - set(reasons))
for name in missing:
    problems.append(f"{name}: the C++ layer does not call it, and not_in_cpp.txt does not say why")
shown = used_in(texts("README.md", "docs/**/*.md", "examples/*/*", "include/weir/adapters/*", "book/book.md"))
core = [name for name, function in functions.items() if function["header"] == "weir.h"]
unseen = sorted(name for name in core if name not in shown)
for name in unseen:
    problems.append(f"{name}: is in the core, and in no guide or example")
operators = [name for name, function in functions.items() if function["header"] == "weir/ops.h" and "_kernel_create_" in name]
if "--names" in sys.argv:
    print("missing from C++:", *missing, sep="\n  ")
    print("of the core, in no guide and no example:", *unseen, sep="\n  ")
for problem in problems:
    print(problem, file=sys.stderr)
print(
    f"{len(functions)} functions ({len(core)} in weir.h), {len(api['headers'])} headers, {len(operators)} operators; "
    f"{len(missing)} missing from C++ and {len(reasons)} not wanted there; {len(unseen)} of the core in no guide or example"
)
sys.exit(bool(problems))
