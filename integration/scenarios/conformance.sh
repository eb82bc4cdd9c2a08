#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The cases that say what a policy means, acted out in containers, do what the
# reference model says. Those that can't be acted out, and those in which the engine is
# known to differ, are listed in integration/conformance/expected: a case that leaves
# that list, or comes to it, is a failure. Some seventy containers, one after the other.
#
# limit: 1500
cd "$(dirname "${BASH_SOURCE[0]}")/../conformance" || exit
exec ./conformance run -keep -scenario -expect expected ./actor plan
