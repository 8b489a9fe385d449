#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tensors of the CPU's between weir and PyTorch, by DLPack and ctypes.

    dlpack_torch.py libweir.so
"""

import gc
import os
import sys

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from dlpack_numpy import COPY, WEIR_BF16, WEIR_BOOL, WEIR_F16, WEIR_F32, WEIR_S32, WEIR_S64, WEIR_S8, WEIR_U8
from dlpack_numpy import Tensor, engine, tensors_alive, weir


def main():
    before = tensors_alive()
    pairs = [(torch.float32, WEIR_F32), (torch.int32, WEIR_S32), (torch.int64, WEIR_S64), (torch.uint8, WEIR_U8),
             (torch.int8, WEIR_S8), (torch.float16, WEIR_F16), (torch.bfloat16, WEIR_BF16), (torch.bool, WEIR_BOOL)]
    for kind, dtype in pairs:
        tensor = (torch.arange(24).reshape(2, 3, 4) % 2).to(kind)
        # In: the same memory, kept by weir when PyTorch has let go of it.
        address, expected = tensor.data_ptr(), tensor.clone()
        taken = Tensor.of(tensor)
        assert taken.address() == address
        del tensor
        gc.collect()
        # And out again.
        back = torch.from_dlpack(taken)
        assert back.data_ptr() == address and back.dtype == kind and torch.equal(back, expected)
        del taken
        gc.collect()
        assert torch.equal(back, expected) and tensors_alive() == before + 1
        del back
        gc.collect()
        assert tensors_alive() == before, tensors_alive()
        made = Tensor.like(expected, dtype)
        seen = torch.from_dlpack(made)
        assert seen.data_ptr() == made.address() and not seen.any()
        # What one writes the other sees.
        seen.copy_(expected)
        assert torch.equal(torch.from_dlpack(made), expected)
        del made, seen
        gc.collect()
        assert tensors_alive() == before
    turned = torch.arange(6, dtype=torch.float32).reshape(2, 3).T
    copied = torch.from_dlpack(Tensor.of(turned, COPY))
    assert copied.is_contiguous() and torch.equal(copied, turned)
    try:
        Tensor.of(torch.zeros(3, dtype=torch.float64))
    except RuntimeError as error:
        assert "elements of float64 have no counterpart" in str(error), error
    else:
        raise AssertionError("float64 was not refused")
    del copied
    gc.collect()
    assert tensors_alive() == before
    weir.weir_engine_release(engine)
    print(f"PyTorch {torch.__version__} and weir share tensors")


if __name__ == "__main__":
    main()
