"""Apache Spark: the labels of one process, for tables and streams that outgrow one machine.

Spark sorts and moves rows, the models label them. `tasks` is what Python workers do with Arrow batches; `batch`,
`blocks` and `streaming` bring rows to them. Importing this package does not import pyspark; its functions need
`pip install 'driftvote[spark]'`.
"""

from driftvote.spark.batch import label
from driftvote.spark.sink import write_batches
from driftvote.spark.streaming import label_stream

__all__ = ["label", "label_stream", "write_batches"]
