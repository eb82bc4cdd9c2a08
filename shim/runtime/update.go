// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/internal/bundle"
	"github.com/actplane/actplane/shim/prepare"
)

// updateOptions are those of runc and crun. The ones that the limits are about are in
// updateFields too.
func updateOptions() table {
	return makeTable("resources= r:resources= blkio-weight= cpu-period= cpu-quota= cpu-burst= cpu-share= cpu-shares:cpu-share=" +
		" cpu-rt-period= cpu-rt-runtime= cpuset-cpus= cpuset-mems= kernel-memory= kernel-memory-tcp= memory= memory-reservation=" +
		" memory-swap= pids-limit= l3-cache-schema= mem-bw-schema= cpu-idle= memory-policy= env-file=" +
		" help h:help ?:help usage:help")
}

// updateFields are where in the OCI document of resources an option's value belongs.
func updateFields() map[string][2]string {
	return map[string][2]string{
		"memory": {"memory", "limit"}, "memory-swap": {"memory", "swap"}, "pids-limit": {"pids", "limit"},
		"cpu-quota": {"cpu", "quota"}, "cpu-period": {"cpu", "period"}, "cpu-burst": {"cpu", "burst"},
	}
}

// update lets a container's resources be changed below the limits of its policy.
func (p *Program) update(call *call) error {
	options, err := parseOptions(call.args, updateOptions())
	if err != nil {
		return fmt.Errorf("update: %w", err)
	}
	if options.help || len(options.positional) == 0 {
		return p.next() // which says what is missing
	}
	record, err := p.record(call, options.positional[0])
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("update: ActPlane has no record of container %q and does not know its limits; start the container again", options.positional[0])
	}
	if err != nil {
		return fmt.Errorf("update: %w", err)
	}
	if record.Limits == (bundle.Limits{}) {
		return p.next()
	}
	if err := p.limit(options, record); err != nil {
		return fmt.Errorf("update: %w", err)
	}
	return p.next()
}

// limit lowers what a document asks for, as at the container's creation. Options on the
// command line stay as they are, and are refused if they go beyond.
func (p *Program) limit(options *options, record *bundle.Record) error {
	switch names := options.values["resources"]; {
	case len(names) > 1:
		return errors.New("option --resources is given twice")
	case len(names) == 1 && names[0] == "-":
		return p.limitInput(record)
	case len(names) == 1:
		file, err := bundle.Open(names[0])
		if err != nil {
			return err
		}
		if err := prepare.LimitUpdate(file.Root, record.Limits); err != nil {
			return err
		}
		return file.Save()
	}
	asked, err := resourcesOf(options)
	if err != nil {
		return err
	}
	before, err := json.Marshal(asked)
	if err != nil {
		return err
	}
	if err := prepare.LimitUpdate(asked, record.Limits); err != nil {
		return err
	}
	after, err := json.Marshal(asked)
	if err == nil && !bytes.Equal(before, after) {
		err = fmt.Errorf("the policy of container %q allows no more than %s", record.ID, after)
	}
	return err
}

// resourcesOf are those that options ask for, as a document.
func resourcesOf(options *options) (bundle.Object, error) {
	resources := bundle.Object{}
	for name, field := range updateFields() {
		texts := options.values[name]
		if len(texts) == 0 {
			continue
		}
		if len(texts) > 1 {
			return nil, fmt.Errorf("option --%s is given twice", name)
		}
		value, err := strconv.ParseInt(texts[0], 10, 64)
		if err != nil && field[0] == "memory" {
			value, err = prepare.ParseBytes(texts[0])
		}
		if err != nil {
			return nil, fmt.Errorf("--%s %q is no number", name, texts[0])
		}
		err = resources.Update(field[0], func(part bundle.Object) error { return part.Set(field[1], value) })
		if err != nil {
			return nil, err
		}
	}
	return resources, nil
}

// limitInput reads the document on standard input and puts it there again, limited, for
// the next runtime.
func (p *Program) limitInput(record *bundle.Record) error {
	data, err := io.ReadAll(io.LimitReader(p.Stdin, bundle.MaxSize+1))
	if err != nil {
		return fmt.Errorf("read resources: %w", err)
	}
	if len(data) > bundle.MaxSize {
		return fmt.Errorf("read resources: they are larger than %d MiB", bundle.MaxSize>>20)
	}
	var resources bundle.Object
	if err := json.Unmarshal(data, &resources); err != nil {
		return fmt.Errorf("parse resources: %w", err)
	}
	if resources == nil {
		return errors.New("parse resources: expected an object")
	}
	if err := prepare.LimitUpdate(resources, record.Limits); err != nil {
		return err
	}
	if data, err = json.Marshal(resources); err != nil {
		return fmt.Errorf("encode resources: %w", err)
	}
	if err := giveAgain(p.Stdin, data); err != nil {
		return fmt.Errorf("hand on resources: %w", err)
	}
	return nil
}

// giveAgain makes a file that was read one with data in it. A pipe could be too small.
func giveAgain(file *os.File, data []byte) error {
	fd, err := unix.MemfdCreate("input", unix.MFD_CLOEXEC)
	if err != nil {
		return err
	}
	memory := os.NewFile(uintptr(fd), "input")
	defer memory.Close()
	if _, err := memory.Write(data); err != nil {
		return err
	}
	if _, err := memory.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return unix.Dup3(fd, int(file.Fd()), 0)
}
