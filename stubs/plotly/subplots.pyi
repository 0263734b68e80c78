from plotly.graph_objects import Figure

def make_subplots(
    *,
    rows: int,
    cols: int,
    shared_xaxes: bool = ...,
    row_heights: list[float] = ...,
    vertical_spacing: float = ...,
    subplot_titles: tuple[str, ...] = ...,
) -> Figure: ...
