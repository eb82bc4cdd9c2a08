// SPDX-License-Identifier: Apache-2.0

package model

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/actplane/actplane/policy/ir"
)

// environment are the variables of a process, as far as steps have set them.
type environment struct {
	values dict[string]
	// sum is that of what each variable hashes to: equal for equal environments.
	sum [4]uint64
	// loads counts those that make a program or an interpreter run other code than its own.
	loads int
}

func (e environment) with(name, value string) environment {
	old, ok := e.values.get(name)
	switch {
	case ok:
		e.add(name, old, -1)
	case ir.LoadsCode(name):
		e.loads++
	}
	e.add(name, value, 1)
	e.values = e.values.with(name, value)
	return e
}

func (e *environment) add(name, value string, sign int) {
	hash := sha256.Sum256(fmt.Appendf(nil, "%q=%q", name, value))
	for i := range e.sum {
		e.sum[i] += uint64(sign) * binary.LittleEndian.Uint64(hash[8*i:])
	}
}
