// SPDX-License-Identifier: Apache-2.0

package dfa

// Row returns the index in Rows of what a key matches, as the kernel finds it.
func (i *Image) Row(start Start, key []byte) int {
	state := i.Host
	if start < NumStarts {
		state = i.Start[start]
	}
	for _, b := range key {
		state = i.Next[int(state)*256+int(b)]
	}
	return int(i.RowOf[state])
}
