// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"path"
	"strings"

	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/model"
)

// variant is a way in which the record can be meant.
type variant struct {
	query *model.Query
	when  []string
}

// queries are the ways in which the record can be meant, the likeliest first.
func (q *question) queries() ([]variant, error) {
	if err := q.named(); err != nil {
		return nil, err
	}
	x := &model.Query{Op: q.op, Object: q.record.Object, Argv: q.record.Args, Labels: q.carried(), Modified: q.told.written, Invoked: q.told.invoked}
	if q.op >= ir.Connect {
		if strings.HasPrefix(x.Object, "/") || strings.HasPrefix(x.Object, "@") {
			x.Object = "unix:" + x.Object
		}
		return []variant{{query: x}}, nil
	}
	if !path.IsAbs(x.Object) {
		x.Object, x.Unresolved = "/", true
	}
	if q.op != ir.Exec {
		return operations(x), nil
	}
	if len(x.Argv) == 0 { // the code of a program was mapped, or its arguments could not be read
		y := *x
		y.Mapped = true
		return []variant{{query: &y}, {query: x, when: []string{"it was run, without arguments, and not mapped"}}}, nil
	}
	out := []variant{{query: x}}
	if name := invokedName(q.record); name != "" && x.Invoked == "" {
		y := *x
		y.Invoked = name
		out = append(out, variant{&y, []string{fmt.Sprintf("it was invoked by the name %q", name)}})
	}
	return out, nil
}

// operations are those that an event about a file can be of. What else there is in the
// operation decided less strictly, or behind it, under the policy of the record; under
// another one it may decide.
func operations(x *model.Query) (out []variant) {
	for _, c := range companies(x.Op) {
		y := *x
		y.With = c.with
		v := variant{query: &y}
		if c.when != "" {
			v.when = []string{c.when}
		}
		out = append(out, v)
	}
	return out
}

// company is which events come with another one, and when; "" for the likeliest.
type company struct {
	when string
	with []ir.Op
}

// companies are those that there are: what is created by appending to it is written, and
// not appended to.
func companies(op ir.Op) []company {
	switch op {
	case ir.Open:
		return []company{
			{"", []ir.Op{ir.Read}},
			{"it was opened for writing", []ir.Op{ir.Write}},
			{"it was opened for appending", []ir.Op{ir.Append}},
			{"it was opened for reading and writing", []ir.Op{ir.Read, ir.Write}},
			{"a directory was opened", nil},
		}
	case ir.Read:
		return []company{
			{"", []ir.Op{ir.Open}},
			{"it was opened for writing as well", []ir.Op{ir.Open, ir.Write}},
			{"it was read through a descriptor that was open", nil},
		}
	case ir.Write:
		return []company{
			{"", []ir.Op{ir.Open}},
			{"it was opened for reading as well", []ir.Op{ir.Open, ir.Read}},
			{"it was changed without being opened for it", nil},
			{"its name went away", []ir.Op{ir.Unlink}},
		}
	case ir.Append:
		return []company{
			{"", []ir.Op{ir.Open}},
			{"it was written through a descriptor that was open", nil},
		}
	}
	return []company{{}}
}
