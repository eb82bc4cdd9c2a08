# SPDX-License-Identifier: Apache-2.0
"""field.py SCOPE FIELD: prints a field of a scope, by id or name, of `actplane ps --json`."""
import json
import sys

for scope in json.load(sys.stdin):
    if sys.argv[1] in (scope["name"], scope["id"]) or scope["id"].startswith(sys.argv[1]):
        print(scope[sys.argv[2]])
