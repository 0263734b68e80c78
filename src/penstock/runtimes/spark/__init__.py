"""Applications on Apache Spark: a cluster, the graph as streaming queries, measuring and acting."""
