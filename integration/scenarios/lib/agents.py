# SPDX-License-Identifier: Apache-2.0
"""What the scripted model makes a coding agent do, and what its requests have to hold.

  agents.py secrets AGENT      the folder with the file that it cannot read
  agents.py steps AGENT        the script, for programs/model
  agents.py check AGENT LOG    ok and not ok lines, from the log of programs/model
"""

import json
import sys

SECRET = "/secret/secret.txt"
# Gemini's tools stay in the workspace. Others look around in there by themselves.
OWN_SECRET = "/workspace/secret/secret.txt"
STASHED = "/tmp/stashed"
PATCH = "*** Begin Patch\n*** Update File: /secret/secret.txt\n@@\n-x\n+y\n*** End Patch\n"


def shell(tool, argument="command", **more):
    return lambda command: {"tool": tool, "args": {argument: command, **more}}


# The tool that runs commands, and a call of a tool for files that fails.
AGENTS = {
    "claude": (shell("Bash", description="x"), {"tool": "Read", "args": {"file_path": SECRET}}),
    "codex": (shell("exec_command", "cmd"), {"tool": "apply_patch", "input": PATCH}),
    "copilot": (shell("bash", description="x"), {"tool": "view", "args": {"path": SECRET}}),
    "gemini": (shell("run_shell_command", description="x"), {"tool": "read_file", "args": {"file_path": OWN_SECRET}}),
    "qwen": (
        shell("run_shell_command", description="x", is_background=False),
        {"tool": "read_file", "args": {"file_path": SECRET}},
    ),
    "opencode": (shell("bash", description="x"), {"tool": "read", "args": {"filePath": SECRET}}),
    "pi": (shell("bash"), {"tool": "read", "args": {"path": SECRET}}),
    "cline": (
        lambda command: {"tool": "run_commands", "args": {"commands": [command]}},
        {"tool": "read_files", "args": {"files": [{"path": SECRET}]}},
    ),
}

# They have no event before they stop.
NOT_AT_THE_END = ("opencode", "pi", "cline")

# The commands, and the rule whose reason each brings.
COMMANDS = [
    ("git push origin; exit 1", "fails"),
    ("git bundle create x; true", "succeeds"),
    ("git fsck; true", "kills"),
    ("git count-objects; true", "notes"),
    ("git commit -m x; true", "asks"),
]
# Done after the last event of a tool, when the model is asked for the last time, so that
# it has to be told at the end. Codex ends what its tools leave in their session.
LATE = f"setsid -f sh -c 'until [ -e {STASHED}.wanted ]; do sleep 0.1; done; git stash; touch {STASHED}' > /dev/null 2>&1"


def steps(agent):
    run, file_tool = AGENTS[agent]
    script = [run(command) for command, _ in COMMANDS] + [file_tool, run("true"), run(LATE)]
    return script + [{"text": "done", "after": STASHED}]


def expected(agent):
    """By rule, the first turn whose request has its reason."""
    turns = {rule: turn + 1 for turn, (_, rule) in enumerate(COMMANDS)}
    turns["file"] = len(COMMANDS) + 1
    if agent == "codex":  # a patch that fails has no event: with the next one
        turns["file"] += 1
    if agent not in NOT_AT_THE_END:
        turns["late"] = len(steps(agent)) - 1
    return turns


def strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)


def told(request, rule):
    return sum(text.count(f"Reason of {rule}.") for text in strings(request["body"]))


def report(good, name, why):
    print(f"ok {name}" if good else f"not ok {name}: {why}")
    return good


def check(agent, log):
    with open(log, encoding="utf-8") as lines:
        requests = [request for request in map(json.loads, lines) if request["turn"] >= 0]
    good = report(bool(requests), f"{agent} asks the model", "it never did")
    for rule, turn in expected(agent).items():
        counts = [(request["turn"], told(request, rule)) for request in requests]
        # What is late comes in another request of the last turn.
        before = [n for at, n in counts if at < turn]
        after = [n for at, n in counts if (at > turn if rule == "late" else at >= turn)]
        if rule == "late":
            after = [n for at, n in counts if at == turn][1:]
        right = bool(after) and not any(before) and all(n == 1 for n in after)
        good &= report(right, f"{agent}: the reason of {rule} is in the next request, once", f"by turn: {counts}")
    last = requests[-1] if requests else {"body": ""}
    asked = any("needs a person's approval: request " in text for text in strings(last["body"]))
    good &= report(asked, f"{agent}: it is told of the request that is open", "it is not")
    return good


if __name__ == "__main__":
    if sys.argv[1] == "secrets":
        print("/workspace/secret" if OWN_SECRET in strings(AGENTS[sys.argv[2]][1]) else "/secret")
    elif sys.argv[1] == "steps":
        print(json.dumps(steps(sys.argv[2])))
    elif not check(sys.argv[2], sys.argv[3]):
        sys.exit(1)
