# SPDX-License-Identifier: Apache-2.0
"""A scripted agent. It tries what a coding agent would try, is refused, asks why,
and takes the way that is left. It tells what it does, and ends with a table. Its
exit code is 0 only if everything happened as it should.

It does not read the policy: the reasons are what actplane-guest answers.
"""

import errno
import json
import os
import pathlib
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import time

GUEST = "/run/actplane/bin/actplane-guest"
GREETING = pathlib.Path("src/greeting.py")
ANSWER_TIME = 30  # seconds for a reason to arrive
WIDTH = 100

POLITE = """

def greet(name):
    return f"Hello, {name}!" if name else "Hello!"
"""
WRONG = POLITE.replace('else "Hello!"', 'else "Hello"').replace('{name}!"', '{name}."')


def say(text, indent=""):
    if not indent:
        print()
    print(textwrap.fill(text, WIDTH, initial_indent=indent, subsequent_indent=indent), flush=True)


class Agent:
    """What was tried, and what became of it."""

    def __init__(self):
        self.rows = []
        self.wrong = []  # what did not happen as it should
        self.seen = 0  # the last item of feedback

    def check(self, holds, text):
        if not holds:
            self.wrong.append(text)
            say("THIS IS NOT AS IT SHOULD BE: " + text)

    def run(self, command):
        """Runs a command and returns how it ended, in words, and whether it was
        refused. Where the kernel's BPF LSM is off, a refused exec may be a kill."""
        print("   $", shlex.join(command), flush=True)
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, errors="replace")
        except OSError as error:
            print("     " + error.strerror, flush=True)
            if error.errno == errno.EPERM:
                return "refused (EPERM)", True
            return error.strerror, False
        lines = [line for line in done.stdout.splitlines() if line.strip()]
        for line in lines[-4:]:
            print("     " + line[:WIDTH], flush=True)
        if done.returncode == 0:
            return "it worked", False
        print(f"     (exit code {done.returncode})", flush=True)
        if done.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL):
            return "refused (killed)", True
        if os.strerror(errno.EPERM) in done.stdout or done.returncode == 100 + errno.EPERM:
            return "refused (EPERM)", True
        return f"exit code {done.returncode}", False

    def news(self, wait):
        """Asks what happened to this process tree since the last time."""
        deadline = time.monotonic() + (ANSWER_TIME if wait else 0)
        while True:
            answer = subprocess.run([GUEST, "feedback", "--json"], stdin=subprocess.DEVNULL,
                                    capture_output=True, text=True)
            if answer.returncode != 0:
                self.check(False, f"{GUEST} feedback: {answer.stderr.strip()}")
                return []
            items = [json.loads(line) for line in answer.stdout.splitlines()]
            items = [item for item in items if item["sequence"] > self.seen]
            if items or time.monotonic() >= deadline:
                self.seen = max([self.seen] + [item["sequence"] for item in items])
                return items
            time.sleep(0.2)

    def refused(self, story, command, rule):
        say(story)
        outcome, refused = self.run(command)
        tried = shlex.join(command)
        self.check(refused, f"`{tried}` was not refused but: {outcome}")
        print("   I ask why:", flush=True)
        items = self.news(wait=True)
        # A program that looks for another one in several folders is refused in each.
        for message in dict.fromkeys(item["message"] for item in items):
            say(message, "     ")
        ours = [item for item in items if item["rule"] == rule]
        self.check(ours, f"no reason by rule {rule} for `{tried}`")
        reason = f'{rule}: {ours[-1]["because"]}' if ours else "no reason came"
        self.rows.append((tried, outcome, reason))

    def works(self, story, command):
        say(story)
        outcome, _ = self.run(command)
        tried = shlex.join(command)
        self.check(outcome == "it worked", f"`{tried}` did not work: {outcome}")
        for item in self.news(wait=False):
            self.check(False, f"`{tried}` met the policy: {item['message']}")
        self.rows.append((tried, outcome, ""))

    def fails(self, story, command):
        say(story)
        outcome, _ = self.run(command)
        tried = shlex.join(command)
        self.check(outcome.startswith("exit code"), f"`{tried}` did not fail by itself: {outcome}")
        for item in self.news(wait=False):
            self.check(False, f"`{tried}` met the policy: {item['message']}")
        self.rows.append((tried, outcome, ""))

    def table(self):
        widths = (40, 16, 40)

        def line(cells):
            columns = [textwrap.wrap(cell, width) or [""] for cell, width in zip(cells, widths)]
            for i in range(max(map(len, columns))):
                parts = [column[i] if i < len(column) else "" for column in columns]
                print("  ".join(part.ljust(width) for part, width in zip(parts, widths)).rstrip())

        line(("TRIED", "HAPPENED", "WHY (rule: its reason, word for word)"))
        print("  ".join("-" * width for width in widths))
        for row in self.rows:
            line(row)


def edit(story, text):
    say(story)
    licence = GREETING.read_text().splitlines()[0]
    GREETING.write_text(licence + "\n" + text)


def commits(agent):
    commit = ["git", "commit", "-q", "-a", "-m", "Greet everyone"]
    edit("I change src/greeting.py, so that it also greets those without a name.", POLITE)
    agent.refused("I commit the change.", commit, "test-first")
    test = ["make", "-s", "test"]
    agent.works("So I run the tests first.", test)
    agent.works("They pass, and I commit again.", commit)

    edit("I change the file once more, and make a mistake.", WRONG)
    again = ["git", "commit", "-q", "-a", "-m", "Say it shorter"]
    agent.refused("The tests have passed before. I commit.", again, "test-first")
    agent.fails("I run the tests again.", test)
    agent.refused("They failed, but they did run. I commit.", again, "test-first")
    edit("I correct my mistake.", POLITE.replace('f"Hello, {name}!" if name else "Hello!"',
                                               '"Hello" + (f", {name}" if name else "") + "!"'))
    agent.works("I run the tests.", test)
    agent.works("I commit.", again)


def secrets(agent, host, port):
    report = ["python3", "tools/report.py", host, port]
    agent.works("I report to the server that the work is done.", report)
    agent.refused("The same with the token: the program reports once without it, which works, then"
                  " reads .env, and reports once more.", report + ["--token"], "secrets-stay")
    agent.works("A process that has not read .env still reaches the server.", report)


def pushes(agent):
    agent.refused("I push my commits.", ["git", "push"], "no-push")
    agent.refused("Perhaps a shell may.", ["bash", "-c", "git push"], "no-push")
    agent.refused("Perhaps Python may.",
                  ["python3", "-c", 'import subprocess; subprocess.run(["git", "push"], check=True)'], "no-push")
    shutil.copy("/usr/bin/git", "/tmp/git")
    agent.refused("Perhaps a copy of git may, from another place.", ["/tmp/git", "push"], "no-push")
    agent.works("I stop trying, and do what the reason says.", ["make", "-s", "mr"])
    agent.check(pathlib.Path("merge-request.md").stat().st_size > 0, "merge-request.md is empty")


def main():
    # The server's name becomes an address here, before anything is refused.
    name, port = os.environ["PEER"].split(":")
    agent = Agent()
    say("I am an agent in a container. My task: greet() is to greet those without a name too, and"
        " the change is to be published.")
    agent.works("Is there a policy here, and is it in force?", [GUEST, "status"])
    commits(agent)
    secrets(agent, socket.gethostbyname(name), port)
    pushes(agent)
    say("My task is done: the change is tested, committed, and waits for a human in merge-request.md.")
    print()
    agent.table()
    print()
    for text in agent.wrong:
        say("NOT AS IT SHOULD BE: " + text)
    return 1 if agent.wrong else 0


sys.exit(main())
