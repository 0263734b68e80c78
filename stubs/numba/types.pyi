from typing import Any

int64: Any
none: Any
npy_rng: Any
