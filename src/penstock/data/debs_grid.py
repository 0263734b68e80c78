"""The grid of DEBS 2015 in numbers: squares of 500 m around New York, 300 a side."""

# The centre of cell 1.1; the first component of a cell grows east, the second south.
FIRST_LONGITUDE, FIRST_LATITUDE = -74.913585, 41.474937
CELL_EAST, CELL_SOUTH = 0.005986, 0.004491556  # what 500 m are, in degrees
CELLS = 300  # per side
