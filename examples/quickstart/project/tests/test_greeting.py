# SPDX-License-Identifier: Apache-2.0

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "src"))

from greeting import greet  # noqa: E402


class Greeting(unittest.TestCase):
    def test_somebody(self):
        self.assertEqual(greet("Ada"), "Hello, Ada!")


if __name__ == "__main__":
    unittest.main()
