"""Application C of Russo 2023 (Fig. 19): three sinks, paths of different length."""
