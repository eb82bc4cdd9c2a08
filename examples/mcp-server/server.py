#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A server of the Model Context Protocol with two tools, and nothing but the standard
library. It offers to write, too: whether it may is not its decision."""

import json
import pathlib
import sys

TOOLS = {
    "read_file": {"path": {"type": "string"}},
    "write_file": {"path": {"type": "string"}, "text": {"type": "string"}},
}


def call(name, arguments):
    path = pathlib.Path("/data", arguments["path"])
    if name == "read_file":
        return path.read_text()
    path.write_text(arguments["text"])
    return "written"


def answer(request):
    method, params = request["method"], request.get("params", {})
    if method == "initialize":
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "reader", "version": "1"}}
    if method == "tools/list":
        return {"tools": [{"name": name, "inputSchema": {"type": "object", "properties": properties, "required": list(properties)}}
                          for name, properties in TOOLS.items()]}
    if method == "tools/call" and params["name"] in TOOLS:
        try:
            text, failed = call(params["name"], params["arguments"]), False
        except OSError as error:
            text, failed = str(error), True
        return {"content": [{"type": "text", "text": text}], "isError": failed}
    return {}


for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": answer(request)}), flush=True)
