"""Where trips go: cells of the DEBS 2015 grid, and routes between them."""

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from penstock.data.debs_grid import CELL_EAST, CELL_SOUTH, CELLS, FIRST_LATITUDE, FIRST_LONGITUDE


@dataclass(frozen=True, slots=True)
class Grid:
    """A square of cells; the challenge has 300 of 500 m (query 1) and 600 of 250 m (query 2) a side."""

    cells: int
    east: float  # degrees of longitude a cell spans
    south: float  # degrees of latitude

    def column(self, longitude: Column) -> Column:
        return self._cell((longitude - FIRST_LONGITUDE) / self.east)

    def row(self, latitude: Column) -> Column:
        return self._cell((FIRST_LATITUDE - latitude) / self.south)

    def _cell(self, cells_from_first_centre: Column) -> Column:
        """1 to `cells`, or null outside."""
        cell = f.floor(cells_from_first_centre + 0.5) + 1
        return f.when((cell >= 1) & (cell <= self.cells), cell.cast("int"))


GRID_300 = Grid(CELLS, CELL_EAST, CELL_SOUTH)
GRID_600 = Grid(2 * CELLS, CELL_EAST / 2, CELL_SOUTH / 2)


def with_routes(trips: DataFrame, *, grid: Grid = GRID_300) -> DataFrame:
    """trips(..., coordinates) -> trips(..., start_cell, end_cell, route string), null outside the grid."""
    start = _cell_name(grid, "pickup")
    end = _cell_name(grid, "dropoff")
    return trips.withColumns({"start_cell": start, "end_cell": end}).withColumn(
        "route", f.concat(f.col("start_cell"), f.lit("-"), f.col("end_cell"))
    )


def _cell_name(grid: Grid, which: str) -> Column:
    column, row = grid.column(f.col(f"{which}_longitude")), grid.row(f.col(f"{which}_latitude"))
    return f.concat(column.cast("string"), f.lit("."), row.cast("string"))


def clean_trips(trips: DataFrame, *, grid: Grid = GRID_300) -> DataFrame:
    """trips(...) -> trips(..., start_cell, end_cell, route) inside the grid, ending no earlier than begun."""
    in_order = f.col("dropoff_datetime") >= f.col("pickup_datetime")
    return with_routes(trips, grid=grid).where(f.col("route").isNotNull() & in_order)
