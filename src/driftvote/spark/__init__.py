"""Apache Spark: the same labels as in one process, for tables and streams that outgrow one machine.

An adapter, imported by nothing else: Spark sorts and moves rows, the models label them, and neither knows of the other.
`import driftvote.spark` asks for nothing; its functions need `pip install 'driftvote[spark]'`.
"""

from driftvote.spark.batch import label
from driftvote.spark.sink import write_batches
from driftvote.spark.streaming import label_stream

__all__ = ["label", "label_stream", "write_batches"]
