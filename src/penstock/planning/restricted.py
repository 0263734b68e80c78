"""rEDRP: of every operator only deployments one step away from what runs now (Cardellini 2017, sec. 7.2)."""

from penstock.domain.errors import InputError
from penstock.planning.problem import PlannedOperator, Problem


def neighbours(problem: Problem, operator: PlannedOperator) -> list[tuple[int, ...]]:
    """What runs now, one replica more, one less, or one on another host."""
    if problem.current is None:
        raise InputError("the restricted problem needs a current deployment: its plans are one step from it")
    index, allowed = problem.network.index, problem.allowed(operator)
    now = tuple(sorted(index[host] for host in problem.current[operator.name]))
    fewer = [now[:place] + now[place + 1 :] for place in range(len(now))]
    found = {now, *fewer}
    found |= {tuple(sorted((*rest, host))) for rest in (now, *fewer) for host in allowed}
    return sorted(one for one in found if 1 <= len(one) <= operator.max_replicas and set(one) <= set(allowed))
