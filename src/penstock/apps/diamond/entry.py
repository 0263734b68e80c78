"""The entry of the diamond."""

from penstock.apps.diamond.graph import diamond
from penstock.apps.paced.entry import PAPER_SLOWDOWN, paced_entry

APPLICATION = paced_entry(
    "diamond", "three branches side by side (Russo 2023, Fig. 19)", diamond, slowdown=PAPER_SLOWDOWN
)
