"""ANSNET, an early backbone across the United States, as the network of Cardellini 2017, sec. 7.2.

The paper has 15 hosts in a portion of it, any two of them as far apart as the shortest way along the
backbone, 32 ms on average; which 15, and how far, is not printed. Here: all sites but Hawaii, and but the
second ones of two regions (Reston, San Jose), which only pass traffic on. A link is as long as the great
circle between its ends, and all delays are scaled alike to the mean that is printed.
"""

from math import asin, cos, radians, sin, sqrt
from typing import NamedTuple

import numpy as np

from penstock.compiled import Floats

_EARTH_KM = 6371.0
MEAN_DELAY_S = 0.032


class Site(NamedTuple):
    latitude: float
    longitude: float
    hosts: bool = True


SITES = {
    "Albuquerque": Site(35.1, -106.7),
    "Atlanta": Site(33.7, -84.4),
    "Chicago": Site(41.9, -87.7),
    "Cleveland": Site(41.5, -81.7),
    "Dallas": Site(32.8, -96.8),
    "Denver": Site(39.7, -105.0),
    "Greensboro": Site(36.1, -79.8),
    "Hartford": Site(41.8, -72.7),
    "Houston": Site(29.8, -95.4),
    "Los Angeles": Site(34.1, -118.2),
    "New York": Site(40.7, -74.0),
    "San Francisco": Site(37.8, -122.4),
    "Seattle": Site(47.6, -122.3),
    "St. Louis": Site(38.6, -90.2),
    "Washington": Site(38.9, -77.0),
    "Reston": Site(39.0, -77.3, hosts=False),
    "San Jose": Site(37.3, -121.9, hosts=False),
}
LINKS = (
    ("Hartford", "New York"),
    ("Hartford", "Cleveland"),
    ("New York", "Cleveland"),
    ("New York", "Washington"),
    ("New York", "Reston"),
    ("Chicago", "Cleveland"),
    ("Chicago", "St. Louis"),
    ("Chicago", "Denver"),
    ("Greensboro", "Atlanta"),
    ("Greensboro", "Washington"),
    ("Atlanta", "Houston"),
    ("Washington", "Reston"),
    ("Reston", "Dallas"),
    ("Reston", "St. Louis"),
    ("Dallas", "St. Louis"),
    ("Dallas", "San Jose"),
    ("Dallas", "Houston"),
    ("Seattle", "Denver"),
    ("Seattle", "San Francisco"),
    ("Denver", "San Francisco"),
    ("San Francisco", "San Jose"),
    ("San Francisco", "Los Angeles"),
    ("Los Angeles", "Albuquerque"),
    ("Albuquerque", "Houston"),
)


def hosts() -> tuple[str, ...]:
    return tuple(name for name, site in SITES.items() if site.hosts)


def delays_s(mean_s: float = MEAN_DELAY_S) -> Floats:
    """Between any two hosts, in their order."""
    names = list(SITES)
    km = np.full((len(names), len(names)), np.inf)
    np.fill_diagonal(km, 0.0)
    for a, b in LINKS:
        i, j = names.index(a), names.index(b)
        km[i, j] = km[j, i] = _distance_km(SITES[a], SITES[b])
    for via in range(len(names)):
        km = np.minimum(km, km[:, via : via + 1] + km[via : via + 1, :])
    kept = [names.index(name) for name in hosts()]
    km = km[np.ix_(kept, kept)]
    between = km[~np.eye(len(kept), dtype=bool)]
    return km * (mean_s / float(between.mean()))


def _distance_km(a: Site, b: Site) -> float:
    """On a great circle."""
    north, east = radians(b.latitude - a.latitude), radians(b.longitude - a.longitude)
    half = sin(north / 2) ** 2 + cos(radians(a.latitude)) * cos(radians(b.latitude)) * sin(east / 2) ** 2
    return 2 * _EARTH_KM * asin(sqrt(half))
