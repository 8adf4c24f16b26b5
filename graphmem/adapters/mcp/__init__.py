"""MCP server (extra ``mcp``, docs/how-to/mcp.md): tools, resources and prompts over a `graphmem.GraphMemory`."""

from graphmem.errors import MissingExtra

try:
    from graphmem.adapters.mcp.keys import Access, KeyFile
    from graphmem.adapters.mcp.server import MemoryServer
except ImportError as error:
    raise MissingExtra("graphmem.adapters.mcp", "mcp") from error

__all__ = ["Access", "KeyFile", "MemoryServer"]
