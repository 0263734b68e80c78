"""The entry of lookups, the application of the demonstration."""

from dataclasses import replace

from penstock.apps.lookups.graph import NAME, lookup_and_score
from penstock.apps.paced.entry import paced_entry

APPLICATION = replace(
    paced_entry(NAME, "events looked up in a service of 20 ms a call, then scored", lookup_and_score),
    objective_s=5.0,
    aliases=(),
)
