"""The paper's integer programme: its size as printed in Table IV, and as a file that says the same."""

import numpy as np
import pytest

from penstock.bench.random_problems import random_problem
from penstock.papers.edrp_tables import table_iv_problem
from penstock.planning.milp import as_lp, as_milp
from penstock.planning.problem import multisets
from penstock.planning.solve import all_choices

# Table IV, thousands of variables by (nodes, replicas), cut after the first decimal.
_PRINTED = {(8, 2): 9.4, (12, 2): 37.3, (8, 3): 113.7}


@pytest.mark.parametrize(("size", "printed"), _PRINTED.items())
def test_it_has_as_many_variables_as_printed(size: tuple[int, int], printed: float) -> None:
    """Before those are left out that could never do: the paper's numbers are of all multisets."""
    problem = table_iv_problem(*size, seed=0)
    sizes = [len(multisets(problem.allowed(one), one.max_replicas)) for one in problem.operators]
    index = {operator.name: number for number, operator in enumerate(problem.operators)}
    pairs = sum(sizes[index[one.origin]] * sizes[index[one.target]] for one in problem.streams)
    assert int((sum(sizes) + pairs) / 100) / 10 == printed


def test_the_file_says_the_same_as_the_programme() -> None:
    problem = random_problem(3, operators=(3, 3), hosts=(3, 3), most=2)
    milp = as_milp(problem, all_choices(problem))
    head, _, rest = as_lp(milp).partition("Subject To\n")
    body, _, binary = rest.partition("Binary\n")
    columns = {name: number for number, name in enumerate(milp.names)}
    assert set(binary.split()) - {"End"} == set(milp.names[:-2])
    assert np.allclose(_row(head.partition(": ")[2], columns), milp.cost, atol=0)
    matrix = np.zeros((len(milp.lower), len(milp.cost)))
    matrix[milp.rows, milp.columns] = milp.values
    assert max(len(line) for line in as_lp(milp).splitlines()) < 560  # what CPLEX reads
    for number, line in enumerate(body.replace("\n  ", " ").splitlines()):
        left, sign, right = line.partition(": ")[2].rsplit(maxsplit=2)
        assert np.array_equal(_row(left, columns), matrix[number])
        lower, upper = milp.lower[number], milp.upper[number]
        assert float(right) == (upper if sign == "<=" else lower)
        assert (sign == "=") == (lower == upper)


def _row(text: str, columns: dict[str, int]) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """From `+ 1.5 x_1 - 2.0 r`."""
    row, words = np.zeros(len(columns)), text.split()
    for sign, value, name in zip(words[::3], words[1::3], words[2::3], strict=True):
        row[columns[name]] = float(value) * (-1 if sign == "-" else 1)
    return row
