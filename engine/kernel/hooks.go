// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"github.com/actplane/actplane/policy/dfa"
	"github.com/actplane/actplane/policy/ir"
)

// need is a set of reasons to attach a hook. A hook that no live scope needs is
// not attached, and costs nobody anything.
type need uint16

const (
	needAlways   need = 1 << iota // membership, exec, opens
	needNames                     // operations on names and attributes
	needSockets                   // connections
	needSends                     // every transmission
	needFlow                      // every read and write
	needMaps                      // code that is mapped
	needBinds                     // addresses that are listened on
	needChannels                  // labels flow between processes
	needReceives                  // data that arrives is decided on
	needFiles                     // rules or labels about files
	needMarks                     // what a program was made of matters
	needLock                      // nothing but a lock refuses it

	needAll = needLock<<1 - 1
)

// hook is one place where a program is attached: the names of its programs are
// lsm_NAME and mod_NAME, or tp_NAME, fn_NAME or fx_NAME in both tiers.
type hook struct {
	name     string
	need     need
	optional bool // younger than the oldest supported kernel
	tp       bool // a tracepoint
	fentry   bool // a function of the kernel's that asks nobody
	fexit    bool // its end
}

// hooks lists all of them. The order is that of attaching: what keeps track of
// processes comes before what decides.
func hooks() []hook {
	return []hook{
		{name: "task_alloc", need: needAlways},
		{name: "sched_process_fork", need: needAlways, tp: true},
		{name: "sched_process_exit", need: needAlways, tp: true},
		{name: "cgroup_attach_task", need: needAlways, tp: true},
		{name: "ptrace_access_check", need: needAlways},
		{name: "bprm_committed_creds", need: needAlways},
		{name: "bprm_creds_for_exec", need: needAlways},
		{name: "bprm_check_security", need: needAlways},
		{name: "file_open", need: needAlways},
		{name: "mmap_file", need: needMaps | needFlow},
		{name: "ptrace_traceme", need: needChannels},
		{name: "path_mknod", need: needNames},
		{name: "path_mkdir", need: needNames},
		{name: "path_symlink", need: needNames | needChannels},
		{name: "path_unlink", need: needNames},
		{name: "path_rmdir", need: needNames},
		{name: "path_link", need: needNames},
		{name: "path_rename", need: needNames},
		{name: "path_chmod", need: needNames},
		{name: "path_chown", need: needNames},
		{name: "path_truncate", need: needNames},
		{name: "file_truncate", need: needNames, optional: true},
		{name: "file_fcntl", need: needNames},
		{name: "inode_setattr", need: needNames},
		{name: "inode_setxattr", need: needNames | needChannels},
		{name: "inode_removexattr", need: needNames},
		{name: "inode_set_acl", need: needNames | needChannels, optional: true},
		{name: "inode_remove_acl", need: needNames, optional: true},
		{name: "socket_create", need: needSockets | needSends | needReceives | needChannels},
		{name: "socket_connect", need: needSockets | needChannels},
		{name: "unix_stream_connect", need: needSockets | needChannels},
		{name: "unix_may_send", need: needSends | needChannels},
		{name: "socket_bind", need: needBinds | needChannels},
		{name: "socket_listen", need: needBinds | needChannels},
		{name: "socket_sendmsg", need: needSends | needChannels},
		{name: "socket_recvmsg", need: needReceives | needChannels},
		{name: "sk_free_security", need: needChannels},
		{name: "do_splice", need: needChannels, fentry: true},
		{name: "do_tee", need: needChannels, fentry: true},
		{name: "do_splice", need: needChannels, fexit: true},
		{name: "do_tee", need: needChannels, fexit: true},
		{name: "do_sendfile", need: needChannels, fexit: true, optional: true},
		{name: "__x64_sys_vmsplice", need: needChannels, fentry: true},
		{name: "__ia32_sys_vmsplice", need: needChannels, fentry: true, optional: true},
		{name: "ipc_permission", need: needChannels},
		{name: "task_free", need: needFlow},
		{name: "inode_free_security", need: needAlways},
		{name: "inode_copy_up", need: needNames | needFlow},
		{name: "d_instantiate", need: needNames | needFlow},
		{name: "inode_follow_link", need: needMarks},
		{name: "file_permission", need: needFlow | needReceives},
		{name: "task_kill", need: needLock},
		{name: "file_ioctl", need: needFiles},
		{name: "file_ioctl_compat", need: needFiles, optional: true},
		{name: "file_lock", need: needLock},
		{name: "socket_accept", need: needChannels},
		{name: "socket_getsockopt", need: needReceives | needChannels},
		{name: "socket_setsockopt", need: needChannels},
		{name: "inode_getxattr", need: needChannels},
		{name: "inode_listxattr", need: needChannels},
		{name: "inode_get_acl", need: needChannels, optional: true},
		{name: "inode_readlink", need: needChannels},
		{name: "socket_shutdown", need: needLock},
		{name: "capable", need: needLock},
	}
}

// program returns the name of the hook's program in a tier, or "" when the tier
// has none: bprm_creds_for_exec only brings argv into memory, for which it has to
// sleep, and only LSM programs can.
func (h hook) program(tier Tier, setattrHasIdmap bool) string {
	switch {
	case h.tp:
		return "tp_" + h.name
	case h.fentry:
		return "fn_" + h.name
	case h.fexit:
		return "fx_" + h.name
	case tier == FmodRet && h.name == "bprm_creds_for_exec":
		return ""
	case tier == FmodRet && h.name == "bprm_committed_creds":
		return "tp_sched_process_exec"
	case tier == FmodRet:
		return "mod_" + h.name
	case h.name == "inode_setattr" && !setattrHasIdmap:
		return "lsm_inode_setattr_2"
	default:
		return "lsm_" + h.name
	}
}

// target returns the kernel's function that the hook's program is attached to.
func (h hook) target(tier Tier) string {
	switch {
	case h.fentry, h.fexit:
		return h.name
	case tier == LSM:
		return "bpf_lsm_" + h.name
	case h.name == "bprm_check_security":
		return "security_bprm_check"
	case h.name == "inode_free_security":
		return "security_inode_free"
	case h.name == "sk_free_security":
		return "security_sk_free"
	default:
		return "security_" + h.name
	}
}

// Hooks tells which hooks scopes under an image need: as a number, the same for the same
// hooks.
func Hooks(image *dfa.Image) int { return int(needs(image)) }

// needs tells what an image asks of the kernel.
func needs(image *dfa.Image) need {
	result := needAlways
	listed := func(op ir.Op) bool { return listed(image, op) }
	var fileSources bool
	for i := range image.Rows {
		fileSources = fileSources || image.Rows[i].Sources != 0
	}
	if fileSources || marks(image) || len(image.Protects) > 0 || listed(ir.Write) || listed(ir.Unlink) || listed(ir.Append) || listed(ir.Open) {
		result |= needNames
	}
	if listed(ir.Connect) || listed(ir.Send) || fileSources {
		result |= needSockets
	}
	if listed(ir.Send) {
		result |= needSends
	}
	if listed(ir.Bind) {
		result |= needBinds | needNames // Unix sockets are files
	}
	if mapsCode(image) || slices.ContainsFunc(image.Rows, func(r dfa.Row) bool { return opens(&r) }) {
		result |= needMaps
	}
	if marks(image) {
		result |= needMarks
	}
	if image.Labels != 0 || descriptorOps(image) != 0 {
		result |= needFlow
	}
	if image.Labels != 0 {
		result |= needChannels
	}
	if listed(ir.Recv) {
		result |= needReceives
	}
	if image.Labels != 0 || marks(image) || len(image.Protects) > 0 ||
		slices.ContainsFunc([]ir.Op{ir.Open, ir.Read, ir.Write, ir.Append, ir.Unlink}, listed) {
		result |= needFiles
	}
	return result
}

// listed tells whether a clause, default or gate is about an operation.
func listed(image *dfa.Image, op ir.Op) bool {
	if slices.ContainsFunc(image.Defaults, func(d dfa.Default) bool { return slices.Contains(defaultOps(d), op) }) {
		return true
	}
	return slices.ContainsFunc(image.Rows, func(r dfa.Row) bool { return len(r.Clauses[op])+len(r.Gates[op]) > 0 })
}

// mapsCode tells whether mapping a program's code is decided on.
func mapsCode(image *dfa.Image) bool {
	return listed(image, ir.Exec) &&
		slices.ContainsFunc(image.Clauses, func(c dfa.Clause) bool { return !c.Any && c.Effect >= ir.Ask })
}

// sendsWithoutHook tells whether sendfile and splice reach sockets without the hook of
// sending, as they do until 6.5: then writing to a socket's file is decided on.
func sendsWithoutHook(spec *btf.Spec) (bool, error) {
	var ops *btf.Struct
	if err := spec.TypeByName("proto_ops", &ops); err != nil {
		return false, fmt.Errorf("look up proto_ops: %w", err)
	}
	return slices.ContainsFunc(ops.Members, func(m btf.Member) bool { return m.Name == "sendpage" }), nil
}

// present drops the hooks that this kernel does not have, and tells of those that
// it should have.
func present(tier Tier) (kept []hook, setattrHasIdmap bool, err error) {
	spec, err := btf.LoadKernelSpec()
	if err != nil {
		return nil, false, fmt.Errorf("read the kernel's BTF: %w", err)
	}
	function := func(name string) (*btf.Func, error) {
		var f *btf.Func
		if err := spec.TypeByName(name, &f); err != nil {
			return nil, err
		}
		return f, nil
	}
	sendsFiles, err := sendsWithoutHook(spec)
	if err != nil {
		return nil, false, err
	}
	var missing []string
	for _, h := range hooks() {
		if h.name == "file_permission" && sendsFiles {
			h.need |= needSends
		}
		if h.tp {
			kept = append(kept, h)
			continue
		}
		target := h.target(tier)
		f, err := function(target)
		switch {
		case err == nil:
			kept = append(kept, h)
			if h.name == "inode_setattr" {
				setattrHasIdmap = len(f.Type.(*btf.FuncProto).Params) >= 3
			}
		case !errors.Is(err, btf.ErrNotFound):
			return nil, false, fmt.Errorf("look up %q: %w", target, err)
		case !h.optional:
			missing = append(missing, target)
		}
	}
	if len(missing) > 0 {
		return nil, false, fmt.Errorf("the kernel lacks %s", strings.Join(missing, ", "))
	}
	return kept, setattrHasIdmap, nil
}

// keepPrograms removes from a collection what is not of the tier and the kernel.
func keepPrograms(spec *ebpf.CollectionSpec, names map[string]bool) {
	for name := range spec.Programs {
		if !names[name] {
			delete(spec.Programs, name)
		}
	}
}
