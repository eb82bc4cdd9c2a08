// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/actplane/actplane/internal/atomicfile"
)

// journal is a file of lines that is added to, and written anew when it is full. One
// goroutine uses it at a time.
type journal struct {
	path  string
	limit int64 // bytes
	file  *os.File
	size  int64
}

// readJournal calls f for each line of a journal, up to the first that f cannot take: it
// was cut off when the daemon was killed. There need not be a journal.
func readJournal(path string, f func(line []byte) error) error {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read journal: %w", err)
	}
	for line := range bytes.Lines(text) {
		if f(line) != nil {
			break
		}
	}
	return nil
}

// append adds a line, or tells that the journal is full, and adds nothing. One that could
// not be opened or written takes no more lines.
func (j *journal) append(line []byte) (full bool, err error) {
	if j.file == nil {
		return false, nil
	}
	if j.size+int64(len(line)) > j.limit {
		return true, nil
	}
	n, err := j.file.Write(append(line, '\n'))
	j.size += int64(n)
	if err != nil {
		j.close() // a line that is cut must stay the last
		return false, fmt.Errorf("write journal: %w", err)
	}
	return false, nil
}

// replace writes the journal anew, with these lines.
func (j *journal) replace(lines [][]byte) error {
	j.close()
	err := atomicfile.Fill(j.path, atomicfile.Options{Mode: 0o600}, func(file io.Writer) error {
		out := bufio.NewWriter(file)
		for _, line := range lines {
			out.Write(line)
			out.WriteByte('\n')
		}
		return out.Flush()
	})
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	file, err := os.OpenFile(j.path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return fmt.Errorf("open journal: %w", err)
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return fmt.Errorf("open journal: %w", err)
	}
	j.file, j.size = file, info.Size()
	return nil
}

func (j *journal) close() {
	if j.file != nil {
		j.file.Close()
		j.file = nil
	}
}
