"""A LlamaIndex retriever: the DDL of each table that a question needs, scored with its probability."""

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from bayeslink.linker import SchemaLinker

__all__ = ["SchemaRetriever"]


class SchemaRetriever(BaseRetriever):
    """Nodes of the tables in the smallest cover, most probable first.

    Args:
        linker: The linker of the database.
        cover: Level of the cover.
    """

    def __init__(self, linker: SchemaLinker, cover: float = 0.95) -> None:
        self._linker, self._cover = linker, cover
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        link = self._linker.link(query_bundle.query_str, cover=self._cover)
        chance = dict(zip(link.graph.table_names, link.probabilities.tolist(), strict=True))
        return [
            NodeWithScore(node=TextNode(text=link.ddl([table]).text, metadata={"table": table}), score=chance[table])
            for table in sorted(link.tables, key=lambda name: -chance[name])
        ]
