"""A LangChain retriever: the DDL of each table that a question needs, with its probability."""

from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

__all__ = ["SchemaRetriever"]


class SchemaRetriever(BaseRetriever):
    """Documents of the tables in the smallest cover, most probable first.

    Attributes:
        linker: A `SchemaLinker`.
        cover: Level of the cover.
    """

    linker: Any
    cover: float = 0.95

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        link = self.linker.link(query, cover=self.cover)
        chance = dict(zip(link.graph.table_names, link.probabilities.tolist(), strict=True))
        return [
            Document(link.ddl([table]).text, metadata={"table": table, "probability": chance[table]})
            for table in sorted(link.tables, key=lambda name: -chance[name])
        ]
