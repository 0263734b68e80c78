"""The entry of the pipeline."""

from penstock.apps.paced.entry import PAPER_SLOWDOWN, paced_entry
from penstock.apps.pipeline.graph import three_in_a_row

APPLICATION = paced_entry(
    "pipeline",
    "three operators one after another (Russo 2023, Fig. 19)",
    three_in_a_row,
    slowdown=PAPER_SLOWDOWN,
)
