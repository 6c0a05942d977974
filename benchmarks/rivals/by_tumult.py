"""Counts by Tumult Analytics on a local Spark session: ``python by_tumult.py TASK``, a JSON file."""

import json
import sys
import time
from pathlib import Path

import pandas as pd
from pyspark.sql import SparkSession
from tmlt.analytics import AddOneRow, KeySet, QueryBuilder, RhoZCDPBudget, Session


def main(task):
    """Each query of each level with an equal share of ρ; adding or removing a row is protected."""
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", task["folder"])
        .getOrCreate()
    )
    began = time.perf_counter()
    rho = task["rho"]
    people = spark.read.parquet(task["people"])
    session = Session.from_dataframe(RhoZCDPBudget(rho), "people", people, protected_change=AddOneRow())
    for number, query in enumerate(task["queries"]):
        asked = QueryBuilder("people")
        if query["columns"]:
            keys = spark.createDataFrame(pd.read_parquet(query["keys"]))
            asked = asked.groupby(KeySet.from_dataframe(keys))
        last = number == len(task["queries"]) - 1
        budget = session.remaining_privacy_budget if last else RhoZCDPBudget(rho / len(task["queries"]))
        session.evaluate(asked.count(), budget).toPandas().to_parquet(query["out"])
    print("\n" + json.dumps({"seconds of the job": time.perf_counter() - began}))
    spark.stop()


main(json.loads(Path(sys.argv[1]).read_text()))
