"""Application A of Russo 2023 (Fig. 19): three operators one after another."""
