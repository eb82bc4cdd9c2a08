# SPDX-License-Identifier: Apache-2.0


def greet(name):
    return f"Hello, {name}!"
