from pyspark.sql import SparkSession


def test_spark_runs_here(spark: SparkSession) -> None:
    assert spark.range(10).count() == 10
