// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"sort"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"github.com/actplane/actplane/bpf"
)

var updateABI = flag.Bool("update-abi", false, "write testdata/abi.txt anew, after ABI_VERSION was raised")

// An engine adopts the pins of its own ABI version, so that what is pinned must not
// change under one version: what the maps hold is written down with it.
func TestABIVersion(t *testing.T) {
	const path = "testdata/abi.txt"
	spec, err := bpf.LoadEnforcer()
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	version := fmt.Sprintf("version %d\n", bpf.EnforcerLimitsLIMIT_ABI)
	got.WriteString(version)
	names := make([]string, 0, len(spec.Maps))
	for name := range spec.Maps {
		if !strings.HasPrefix(name, ".") {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	for _, name := range names {
		m := spec.Maps[name]
		fmt.Fprintf(&got, "%s %s %d of %d to %d, %x\n", name, m.Type, m.MaxEntries, m.KeySize, m.ValueSize,
			sha256.Sum256([]byte(layout(m.Key)+"|"+layout(m.Value)+innerLayout(m))))
	}
	want, err := os.ReadFile(path)
	if err != nil && !(*updateABI && os.IsNotExist(err)) {
		t.Fatal(err)
	}
	if bytes.Equal(got.Bytes(), want) {
		return
	}
	switch {
	case bytes.HasPrefix(want, []byte(version)):
		t.Errorf("what is pinned has changed, but not its version: raise ABI_VERSION in bpf/abi.h, "+
			"then go test ./engine/kernel -run TestABIVersion -update-abi\n%s", got.Bytes())
	case *updateABI:
		if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Error("another version: go test ./engine/kernel -run TestABIVersion -update-abi")
	}
}

func innerLayout(m *ebpf.MapSpec) string {
	if m.InnerMap == nil {
		return ""
	}
	return fmt.Sprintf("|%s %d|%s|%s", m.InnerMap.Type, m.InnerMap.MaxEntries, layout(m.InnerMap.Key), layout(m.InnerMap.Value))
}

// layout spells a type with the names and places of all that is in it.
func layout(t btf.Type) string {
	members := func(kind string, size uint32, all []btf.Member) string {
		text := fmt.Sprintf("%s(%d){", kind, size)
		for _, m := range all {
			text += fmt.Sprintf("%s@%d+%d:%s;", m.Name, m.Offset, m.BitfieldSize, layout(m.Type))
		}
		return text + "}"
	}
	switch t := btf.UnderlyingType(t).(type) {
	case nil:
		return ""
	case *btf.Struct:
		return members("struct", t.Size, t.Members)
	case *btf.Union:
		return members("union", t.Size, t.Members)
	case *btf.Array:
		return fmt.Sprintf("[%d]%s", t.Nelems, layout(t.Type))
	case *btf.Int:
		return fmt.Sprintf("%s%d", t.Encoding, t.Size*8)
	default:
		return fmt.Sprintf("%T", t)
	}
}
