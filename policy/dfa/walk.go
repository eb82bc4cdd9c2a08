// SPDX-License-Identifier: Apache-2.0

package dfa

// ofPath tells the entries where paths are walked.
func (s Start) ofPath() bool { return s == Path || s == Base }

// reached is how many states an entry leads to.
func (i *Image) reached(start Start) int {
	seen := make([]bool, len(i.RowOf))
	seen[i.Start[start]] = true
	work := []uint16{i.Start[start]}
	for at := 0; at < len(work); at++ {
		for _, to := range i.Next[int(work[at])*256 : int(work[at])*256+256] {
			if !seen[to] {
				seen[to] = true
				work = append(work, to)
			}
		}
	}
	return len(work)
}

// PathRows returns the indexes in Rows of what an absolute path matches, as the kernel
// finds them: from Path, and from Base.
func (i *Image) PathRows(path []byte) [2]int {
	return [2]int{i.Row(Path, path), i.Row(Base, path)}
}

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
