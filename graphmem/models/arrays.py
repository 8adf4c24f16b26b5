"""Types of arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Float32s = NDArray[np.float32]
Float64s = NDArray[np.float64]
Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]
