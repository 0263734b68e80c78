"""An application as its author writes it: named sources, operators that are functions, sinks.

    app = App("top-routes", objective=Objective(response_time_s=3))
    trips = app.source("trips", schema="line string")
    parsed = app.operator("parse", parse, trips, max_replicas=3)
    ...
    app.sink("ranking", ranked)

An operator is a function from DataFrame to DataFrame. The graph is checked before anything
starts. Operators that are fused with the one before them share its stage, its executors
and its fate, and are measured as one: a chain. Chains one after the other share a query
if they can, each on executors of its own.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.domain.application import Application, Operator, Sink, Source, Stream
from penstock.domain.deployment import check_max_replicas
from penstock.domain.errors import InputError
from penstock.domain.objective import Objective
from penstock.reconfigure.method import Method

Transform = Callable[..., Any]  # DataFrame, ... -> DataFrame
Reader = Callable[..., Any]  # SparkSession -> streaming DataFrame
Writer = Callable[..., None]  # (DataFrame, number of its micro-batch) -> None


@dataclass(frozen=True, slots=True)
class StreamOf:
    """What leaves a source or an operator."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorDefinition:
    """One operator: what it does, and what may be done to it."""

    name: str
    transform: Transform
    inputs: tuple[str, ...]
    max_replicas: int
    stateful: bool
    output_mode: str
    fused: bool
    protocol: Method


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """Operators that run on the same executors: one, or neighbours fused together."""

    operators: tuple[OperatorDefinition, ...]

    @property
    def name(self) -> str:
        return "+".join(operator.name for operator in self.operators)

    @property
    def tag(self) -> str:
        """The custom resource its workers carry where node types differ; letters Spark's settings take."""
        return "op_" + "_".join(operator.name for operator in self.operators).replace("-", "_")

    @property
    def inputs(self) -> tuple[str, ...]:
        return self.operators[0].inputs

    @property
    def output(self) -> str:
        return self.operators[-1].name

    @property
    def max_replicas(self) -> int:
        return min(operator.max_replicas for operator in self.operators)

    @property
    def stateful(self) -> bool:
        return any(operator.stateful for operator in self.operators)

    @property
    def output_mode(self) -> str:
        return next((o.output_mode for o in self.operators if o.stateful), "append")

    @property
    def protocol(self) -> Method:
        pausing = any(o.protocol is Method.PAUSE_AND_RESUME for o in self.operators)
        return Method.PAUSE_AND_RESUME if pausing else Method.LIVE


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Chains that run as stages of one streaming query."""

    chains: tuple[Chain, ...]

    @property
    def name(self) -> str:
        return "--".join(chain.name for chain in self.chains)

    @property
    def inputs(self) -> tuple[str, ...]:
        return self.chains[0].inputs

    @property
    def output(self) -> str:
        return self.chains[-1].output

    @property
    def output_mode(self) -> str:
        return next((chain.output_mode for chain in self.chains if chain.stateful), "append")

    @property
    def stateful(self) -> bool:
        return any(chain.stateful for chain in self.chains)

    @property
    def in_stream(self) -> int:
        """How many of its chains have to be part of the stream: those up to the one with state.

        Those after them are worked on batch by batch, in as many parts as they have replicas at the time.
        """
        return next((place for place, chain in enumerate(self.chains, 1) if chain.stateful), 1)


@dataclass
class App:
    """A streaming application under construction."""

    name: str
    objective: Objective
    sources: dict[str, str] = field(default_factory=dict)  # name -> schema
    operators: dict[str, OperatorDefinition] = field(default_factory=dict)
    sinks: dict[str, str] = field(default_factory=dict)  # name -> operator whose results it takes
    readers: dict[str, Reader] = field(default_factory=dict)  # of sources that Spark reads itself
    writers: dict[str, list[Writer]] = field(default_factory=dict)  # operator -> who takes its results
    kept: dict[str, str] = field(default_factory=dict)  # those of the sinks that have no writer

    def __init__(self, name: str, *, objective: Objective) -> None:
        self.name, self.objective = name, objective
        self.sources, self.operators, self.sinks = {}, {}, {}
        self.readers, self.writers, self.kept = {}, {}, {}

    def source(self, name: str, *, schema: str | None = None, reader: Reader | None = None) -> StreamOf:
        """Where tuples enter.

        A `reader` gives a streaming DataFrame of any of Spark's sources: `lambda spark:
        spark.readStream.format("kafka").options(...).load()`. Without one, a feeder brings tuples of
        this `schema` (as in Spark: "line string, at timestamp").
        """
        self._new(name)
        if (schema is None) == (reader is None):
            raise InputError(f"source '{name}': give it a schema or a reader, and not both")
        self.sources[name] = schema or ""
        if reader is not None:
            self.readers[name] = reader
        return StreamOf(name)

    def operator(
        self,
        name: str,
        transform: Transform,
        *inputs: StreamOf,
        max_replicas: int = 1,
        stateful: bool = False,
        output_mode: str = "append",
        fused: bool = False,
        protocol: Method = Method.LIVE,
    ) -> StreamOf:
        """A function from the inputs' DataFrames to one DataFrame.

        `fused` runs it in the query of its input. `output_mode` matters to stateful ones.
        """
        self._new(name)
        if not inputs:
            raise InputError(f"operator '{name}': no input; give it a source's or an operator's stream")
        check_max_replicas(max_replicas, of=f"operator '{name}'")
        if output_mode not in ("append", "update"):
            raise InputError(f"operator '{name}': output_mode='{output_mode}'; choose append or update")
        for stream in inputs:
            if stream.name not in {*self.sources, *self.operators}:
                raise InputError(
                    f"operator '{name}': its input '{stream.name}' is not part of this application"
                )
        self.operators[name] = OperatorDefinition(
            name=name,
            transform=transform,
            inputs=tuple(stream.name for stream in inputs),
            max_replicas=max_replicas,
            stateful=stateful,
            output_mode=output_mode,
            fused=fused,
            protocol=protocol,
        )
        return StreamOf(name)

    def sink(self, name: str, results: StreamOf, *, writer: Writer | None = None) -> None:
        """Keep what this operator gives in the run folder, or have a `writer` take it.

        As in Spark's foreachBatch, it is called with a DataFrame and the number of its micro-batch:
        `lambda batch, number: batch.write.mode("append").parquet("results")`. After a crash it may be
        called again with the same number and the same tuples.
        """
        self._new(name)
        if results.name not in self.operators:
            raise InputError(f"sink '{name}': '{results.name}' is not an operator of this application")
        self.sinks[name] = results.name
        if writer is None:
            self.kept[name] = results.name
        else:
            self.writers.setdefault(results.name, []).append(writer)

    def chains(self) -> tuple[Chain, ...]:
        """What is scaled, each after those it reads from."""
        chains: list[list[OperatorDefinition]] = []
        for ordered in self.graph().in_order:  # every mistake is named before anything starts
            operator = self.operators[ordered.name]
            if operator.fused:
                self._check_fusion(operator)
                next(chain for chain in chains if chain[-1].name == operator.inputs[0]).append(operator)
            else:
                chains.append([operator])
        return tuple(Chain(operators=tuple(chain)) for chain in chains)

    def queries(self, *, joined: bool) -> tuple[Query, ...]:
        """The queries to run: one per chain, or `joined` where a stream has no other reader.

        Spark takes one operator with state in a query. A chain that is stopped to be changed has its own.
        """
        queries: list[list[Chain]] = []
        for chain in self.chains():
            before = next((one for one in queries if (one[-1].output,) == chain.inputs), None)
            if joined and before is not None and self._joins(before, chain):
                before.append(chain)
            else:
                queries.append([chain])
        return tuple(Query(chains=tuple(chains)) for chains in queries)

    def _joins(self, before: Sequence[Chain], chain: Chain) -> bool:
        (stream,) = chain.inputs
        live = all(one.protocol is Method.LIVE for one in (*before, chain))
        one_state = sum(one.stateful for one in (*before, chain)) <= 1
        alone = len(self.readers_of(stream)) == 1 and stream not in self.sinks.values()
        return live and one_state and alone

    @property
    def modules(self) -> tuple[str, ...]:
        """Where its operators are written."""
        return tuple(
            sorted({str(getattr(one.transform, "__module__", "")) for one in self.operators.values()} - {""})
        )

    @property
    def places(self) -> tuple[str, ...]:
        """The folders that executors find these modules in."""
        files = {name: getattr(sys.modules.get(name), "__file__", None) for name in self.modules}
        known = {name: Path(file).resolve() for name, file in files.items() if file is not None}
        up = {name: len(name.split(".")) + (file.stem == "__init__") for name, file in known.items()}
        return tuple(sorted({str(file.parents[up[name] - 1]) for name, file in known.items()}))

    def graph(self) -> Application:
        """The graph as its author wrote it."""
        return self._graph_of(tuple(self.operators.values()), {})

    def chain_graph(self) -> Application:
        """The graph of what is scaled, as the policies know it: fused operators as the one chain they are."""
        chains = self.chains()
        return self._graph_of(chains, {chain.output: chain.name for chain in chains})

    def _graph_of(
        self, parts: Sequence[OperatorDefinition] | Sequence[Chain], gives: Mapping[str, str]
    ) -> Application:
        """`gives` names the part a stream comes from, if not by the stream's name."""
        unknown_s = 1e-3  # measured later
        return Application(
            name=self.name,
            sources=tuple(Source(name=name) for name in self.sources),
            operators=tuple(
                Operator(
                    name=part.name,
                    service_time_s=unknown_s,
                    stateful=part.stateful,
                    max_replicas=part.max_replicas,
                )
                for part in parts
            ),
            sinks=tuple(Sink(name=name) for name in self.sinks),
            streams=(
                *(
                    Stream(origin=gives.get(origin, origin), target=part.name)
                    for part in parts
                    for origin in part.inputs
                ),
                *(
                    Stream(origin=gives.get(origin, origin), target=name)
                    for name, origin in self.sinks.items()
                ),
            ),
        )

    def readers_of(self, stream: str) -> tuple[str, ...]:
        """Chains that read a stream from its log."""
        return tuple(chain.name for chain in self.chains() if stream in chain.inputs)

    def _new(self, name: str) -> None:
        if not name.replace("-", "_").isidentifier() or not name.isascii():
            raise InputError(f"'{name}': names are letters, digits, - and _, and begin with a letter")
        if name in {*self.sources, *self.operators, *self.sinks}:
            raise InputError(f"application '{self.name}': '{name}' appears twice")

    def _check_fusion(self, operator: OperatorDefinition) -> None:
        origin = operator.inputs[0]
        others = [o.name for o in self.operators.values() if origin in o.inputs and o is not operator]
        if len(operator.inputs) != 1 or origin not in self.operators:
            raise InputError(f"operator '{operator.name}': only a single operator's stream can be fused with")
        if others or origin in self.sinks.values():
            raise InputError(
                f"operator '{operator.name}': '{origin}' also feeds {', '.join(others) or 'a sink'}; "
                "its stream must stay in a log"
            )
        if self.operators[origin].stateful and operator.stateful:
            raise InputError(f"operator '{operator.name}': two stateful operators cannot share a query")
