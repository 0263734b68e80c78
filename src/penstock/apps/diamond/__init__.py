"""Application B of Russo 2023 (Fig. 19): three branches side by side."""
