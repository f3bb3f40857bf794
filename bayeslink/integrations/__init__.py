"""Other frameworks' interfaces to a linker: an MCP server, a LangChain retriever, a LlamaIndex retriever.

Each needs the extra of its name, and imports its framework alone.
"""
