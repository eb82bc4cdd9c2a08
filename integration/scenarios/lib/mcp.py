# SPDX-License-Identifier: Apache-2.0
#
# An agent with a client of the Model Context Protocol: asks why it was refused, adds a
# rule for itself, and meets it.
import json, os, subprocess, sys

server = subprocess.Popen(["/run/actplane/bin/actplane-guest", "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
number = 0


def ask(method, params):
    global number
    number += 1
    server.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
    server.stdin.flush()
    while True:
        answer = json.loads(server.stdout.readline())
        if answer.get("id") == number:
            return answer["result"]


def call(tool, **arguments):
    result = ask("tools/call", {"name": tool, "arguments": arguments})
    return "".join(content["text"] for content in result["content"]), result.get("isError", False)


def refused(act):
    try:
        act()
    except PermissionError:
        return True
    return False


def want(what, so):
    if not so:
        print("not so:", what)
        sys.exit(1)


ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "scenario", "version": "1"}})
server.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
server.stdin.flush()
tools = [tool["name"] for tool in ask("tools/list", {})["tools"]]
want("the tools %s" % tools, tools == ["check", "explain_denial", "narrow_policy", "request_approval"])
want("exec is refused", refused(lambda: subprocess.run(["tac", "/etc/hostname"])))
text, failed = call("explain_denial", limit=5)
want("it is explained: " + text, not failed and "tac" in text and "outer" in text)
want("it writes", not refused(lambda: open("/tmp/own", "w")))
text, failed = call("narrow_policy", policy='rule own: block write "/tmp/own"')
want("a rule is added: " + text, not failed and "for this agent" in text)
text, failed = call("check", operation="write", object="/tmp/own")
want("check tells it: " + text, not failed and "would be blocked" in text and "own" in text)
text, failed = call("check", operation="write", object="/tmp/other")
want("and what is allowed: " + text, not failed and "would be allowed" in text)
want("it holds", refused(lambda: open("/tmp/own", "w")))
want("for children too", subprocess.run(["sh", "-c", "echo x > /tmp/own"], stderr=subprocess.DEVNULL).returncode != 0)
text, failed = call("narrow_policy", policy="rule own: allow exec any")
want("none can widen: " + text, failed)
server.stdin.close()
want("the server ends", server.wait(10) == 0)
print("ok")
