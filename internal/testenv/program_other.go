// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package testenv

import "errors"

// tryProgram fails: BPF is Linux's.
func tryProgram() error { return errors.New("this is not Linux") }
