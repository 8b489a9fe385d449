# SPDX-License-Identifier: MIT OR Apache-2.0
"""All forms of operators."""

import forms_control  # noqa: F401
import forms_einsum  # noqa: F401
import forms_elementwise  # noqa: F401
import forms_movement  # noqa: F401
import forms_recurrent  # noqa: F401
import forms_rows  # noqa: F401
import forms_sampling  # noqa: F401
import forms_training  # noqa: F401
import forms_windows  # noqa: F401
from onnx_forms import FORMS, convert

__all__ = ["FORMS", "convert"]
