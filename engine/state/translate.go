// SPDX-License-Identifier: Apache-2.0

package state

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/actplane/actplane/policy/ir"
)

// Key names a gate: its program, its exit status and what makes it stale. A gate that
// a changed policy words otherwise is another.
func Key(gate ir.Gate) string {
	gate.Text = ""
	text, err := json.Marshal(gate)
	if err != nil {
		return ""
	}
	return string(text)
}

// Labels names the labels of a program, by their bits.
func Labels(p *ir.Program) []string {
	names := make([]string, 0, len(p.Labels))
	for _, label := range p.Labels {
		names = append(names, label.Name)
	}
	return names
}

// Names spells a set of labels.
func Names(labels []string, set uint64) (names []string) {
	for bit, name := range labels {
		if bit < ir.MaxLabels && set>>bit&1 == 1 {
			names = append(names, name)
		}
	}
	return names
}

// Gates finds the indexes of a program's gates that were open when it was saved.
func (s *Saved) Gates(p *ir.Program) (open []int) {
	for i, gate := range p.Gates {
		if key := Key(gate); key != "" && slices.Contains(s.Open, key) {
			open = append(open, i)
		}
	}
	return open
}

// Translate gives a set of saved labels the bits of a program. A name that several
// layers have stands for all of them, since layers may have come and gone.
func (s *Saved) Translate(p *ir.Program) func(uint64) uint64 {
	bits := make([]uint64, len(s.Labels))
	for i, name := range s.Labels {
		for bit, label := range p.Labels {
			if label.Name == name && bit < ir.MaxLabels {
				bits[i] |= 1 << bit
			}
		}
	}
	return func(set uint64) (out uint64) {
		for i, to := range bits {
			if i < ir.MaxLabels && set>>i&1 == 1 {
				out |= to
			}
		}
		return out
	}
}

// Unkept says in a sentence what a program asks for and earlier starts did not keep;
// "" for nothing. kept and marks are what the program has kept of files.
func (s *Saved) Unkept(p *ir.Program, kept uint64, marks bool) string {
	var missing []string
	for _, name := range Names(Labels(p), kept) {
		if !slices.Contains(s.Kept, name) {
			missing = append(missing, "label "+name)
		}
	}
	if marks && !s.Marks {
		missing = append(missing, "whether it was changed inside")
	}
	if len(missing) == 0 {
		return ""
	}
	return fmt.Sprintf("earlier starts of this container had a policy that did not keep of files: %s; what they did to files does not count for it", strings.Join(missing, ", "))
}

// Placed is a file of the container, as the kernel numbers its file system now.
type Placed struct {
	Device uint32
	File
}

// Place finds the saved files on the file systems of another start. The second value
// is why some cannot be found, "" if all that can be there are.
func (s *Saved) Place(now []Filesystem, boot string) (files []Placed, lost string) {
	at := make([][]*Filesystem, len(s.Filesystems))
	for i := range s.Filesystems {
		f := &s.Filesystems[i]
		at[i] = f.again(now)
		for _, o := range at[i] {
			if !f.numbered() && (o.Device != f.Device || boot != s.Boot) {
				lost = fmt.Sprintf("the %s file system at %s was mounted anew, and numbers its files anew", f.Type, f.Places[0].At)
			}
		}
	}
	for _, file := range s.Files {
		for _, o := range at[file.Filesystem] {
			files = append(files, Placed{o.Device, file})
		}
	}
	return files, lost
}

// Sort puts files on the file systems of the start that ends now, and leaves out those
// that nobody sees again. missed tells that some are on none that the container had
// when it started, and may be seen again.
func Sort(files []Placed, known []Filesystem, host []byte) (lasting []Filesystem, kept Files, missed bool, err error) {
	shared, err := devices(host)
	if err != nil {
		return nil, nil, false, err
	}
	index := map[uint32]int{}
	for _, file := range files {
		i, ok := index[file.Device]
		if !ok {
			i = -1
			at := slices.IndexFunc(known, func(f Filesystem) bool { return f.Device == file.Device })
			switch {
			case at >= 0 && !known[at].Fresh && len(lasting) <= math.MaxUint16:
				i, lasting = len(lasting), append(lasting, known[at])
			case at >= 0 && !known[at].Fresh, at < 0 && (shared[file.Device] || file.Device>>20 != 0):
				missed = true
			}
			index[file.Device] = i
		}
		if i >= 0 {
			file.Filesystem = uint16(i)
			kept = append(kept, file.File)
		}
	}
	return lasting, kept, missed, nil
}
