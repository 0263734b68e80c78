"""The graph of De Matteis 2017, Fig. 6, with service times for the simulator.

What the paper says of times is that eight replicas take 4e5 quotes/s with room to spare (sec. 5.2.2),
so one quote takes a replica at most 20 microseconds. All of that is spent on every 25th quote of a
symbol: of 25 service times one is 25 times the mean and the others are nothing, which is a squared
coefficient of variation of 24. The consumer's time is an assumption.
"""

from penstock.apps.algo_trader.windows import SLIDE, WINDOW
from penstock.domain.application import Application, Operator, pipeline

NAME = "algo-trader"
CONSUMER = "consumer"
SYMBOLS = 2_836  # traded on NASDAQ on 30 October 2014 (sec. 5.1)
_QUOTE_BYTES = 24  # time, price and volume
_CANDLE_BYTES = 56


def quotes_to_candles(max_replicas: int) -> Application:
    """20 microseconds a quote, and 10 for a candle; one candle for 25 quotes."""
    return pipeline(
        NAME,
        Operator(
            name=NAME,
            service_time_s=20e-6,
            service_scv=SLIDE - 1.0,
            selectivity=1 / SLIDE,
            stateful=True,
            state_bytes=SYMBOLS * WINDOW * _QUOTE_BYTES,
            max_replicas=max_replicas,
        ),
        Operator(
            name=CONSUMER,
            service_time_s=10e-6,
            service_scv=0.5,
            stateful=True,
            state_bytes=SYMBOLS * _CANDLE_BYTES,
            max_replicas=max_replicas,
        ),
    )
