# SPDX-License-Identifier: MIT OR Apache-2.0
"""weir for ctypes, with every declaration taken from weir_api.json.

    weir = weir_ctypes.load("libweir.so")
    weir.weir_tensor_desc(dtype=weir.WEIR_F32, rank=1)    structs are classes
    weir.weir_engine_create(weir.WEIR_ENGINE_CPU, ...)    a status that is not 0 raises WeirError
    weir.members("weir_threadpool_vtable")["schedule"]    the type of a member: to make a callback

Handles are c_void_p. A ctypes call gives up the interpreter lock and a callback takes it, whichever thread it comes
from. So pools and Python get along, while the interpreter lives: wait for the work before it ends, for instance with
atexit, since Python ends a thread that comes in later in a way that ends the process.
"""

import ctypes
import json
import os
import pathlib
import re

SCALARS = {
    "void": None,
    "char": ctypes.c_char,
    "int": ctypes.c_int,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
    "size_t": ctypes.c_size_t,
    **{f"{sign}int{bits}_t": getattr(ctypes, f"c_{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)},
}


class WeirError(Exception):
    """A weir call failed; the text is the library's own."""


def api_path(library):
    """weir_api.json of the tree that this file lies in, or of the installed tree that the library lies in."""
    trees = [pathlib.Path(__file__).resolve().parents[2]]
    trees += pathlib.Path(library).resolve().parents if library else []
    found = (tree / "include/weir/weir_api.json" for tree in trees)
    return os.environ.get("WEIR_API") or next(path for path in found if path.exists())


class Weir:
    """The library: functions, structs and constants by their names in C, made when they are first asked for. Without a
    library, structs and constants."""

    def __init__(self, library=None):
        api = json.loads(pathlib.Path(api_path(library)).read_text())
        self._library = ctypes.CDLL(str(library)) if library else None
        self._functions = {function["name"]: function for function in api["functions"]}
        self._structs = {struct["name"]: struct for struct in api["structs"]}
        self._callbacks = {callback["name"]: callback for callback in api["callbacks"]}
        self._aliases = {alias["name"]: alias["type"] for alias in api["aliases"]}
        self._handles = {handle["name"] for handle in api["handles"]}
        for constant in api["constants"] + [value for enum in api["enums"] for value in enum["values"]]:
            setattr(self, constant["name"], constant["value"])

    def __getattr__(self, name):
        if name in self._functions:
            made = self._function(self._functions[name])
        elif name in self._structs:
            made = self._struct(name)
        elif name in self._callbacks:
            made = self._callback(self._callbacks[name])
        else:
            raise AttributeError(f"weir has no {name}")
        setattr(self, name, made)
        return made

    def members(self, struct):
        """The types of a struct's members."""
        return dict(getattr(self, struct)._fields_)

    def _function(self, declared):
        function = self._library[declared["name"]]
        # A callback goes as an address, since a CFUNCTYPE as a parameter takes no None.
        types = [parameter["type"] for parameter in declared["parameters"]]
        function.argtypes = [ctypes.c_void_p if text in self._callbacks else self._type(text) for text in types]
        function.restype = self._type(declared["returns"])
        if declared["returns"] == "weir_status":
            function.errcheck = self._check
        return function

    def _check(self, status, function, _arguments):
        if status != 0:
            name, text = self.weir_status_name(status).decode(), self.weir_last_error_message().decode()
            raise WeirError(f"{function.__name__}: {name}: {text}")

    def _struct(self, name):
        made = type(name, (ctypes.Structure,), {})
        setattr(self, name, made)  # its members may point to it
        declared = self._structs[name]
        made._fields_ = [(field["name"], self._type(field["type"])) for field in declared["fields"]]
        assert ctypes.sizeof(made) == declared["size"] or ctypes.sizeof(ctypes.c_void_p) != 8, name
        return made

    def _callback(self, declared):
        parameters = [self._type(parameter["type"]) for parameter in declared["parameters"]]
        return ctypes.CFUNCTYPE(self._type(declared["returns"]), *parameters)

    def _type(self, text):
        """The ctypes type of a type as C writes it."""
        if array := re.fullmatch(r"(.*?) ?\[(\d+)\]", text):
            return self._type(array[1]) * int(array[2])
        if function := re.fullmatch(r"(.*?) \(\*\)\((.*)\)", text):
            parameters = [re.sub(r"(?<=[*\s])\w+$", "", part).strip() for part in function[2].split(",")]
            return ctypes.CFUNCTYPE(self._type(function[1]), *[self._type(part) for part in parameters if part != "void"])
        text = re.sub(r"\b(const|struct)\b", "", text).strip()
        if text.endswith("*"):
            to = text[:-1].strip()
            if to in self._handles or to == "void" or to.startswith("DL"):
                return ctypes.c_void_p
            return ctypes.c_char_p if to == "char" else ctypes.POINTER(self._type(to))
        if text in SCALARS:
            return SCALARS[text]
        return self._type(self._aliases[text]) if text in self._aliases else getattr(self, text)


def load(library):
    """Loads a libweir.so that fits weir_api.json."""
    weir = Weir(library)
    weir.weir_check_version(weir.WEIR_VERSION_MAJOR, weir.WEIR_VERSION_MINOR)
    return weir


def create(function, *arguments):
    """Calls a weir_*_create* function and returns the handle that it gives."""
    handle = ctypes.c_void_p()
    function(*arguments, ctypes.byref(handle))
    return handle


def sized(struct, **members):
    """A struct that begins with its size."""
    return struct(struct_size=ctypes.sizeof(struct), **members)
