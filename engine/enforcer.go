// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/policy/dfa"
)

// enforcer is what the engine asks of package kernel; *kernel.Kernel is one,
// and the tests have another.
type enforcer interface {
	Tier() kernel.Tier
	// Install loads the image and binds it to the cgroup; it is enforced when
	// Install returns.
	Install(kernel.Spec) (kernel.Slot, error)
	// SetExempt puts the scope's feedback socket and the guest binary outside
	// of its rules, by inode.
	SetExempt(slot kernel.Slot, socketPath, guestPath string) error
	// SelfTest proves that the policy is enforced in the cgroup.
	SelfTest(ctx context.Context, slot kernel.Slot, cgroupDir string) error
	// State is what of the scope belongs to its container; nothing of it may run.
	State(kernel.Slot) (kernel.State, error)
	// Forget makes a live scope forget what it knows of files, and closes its gates.
	Forget(kernel.Slot) error
	// Swap puts a live scope under an image that has more than the present one.
	Swap(kernel.Slot, *dfa.Image) error
	// Gates are the open ones, as bits.
	Gates(kernel.Slot) (uint64, error)
	// Confine gives a process of the scope labels that nothing takes away.
	Confine(slot kernel.Slot, pid int, labels uint64) error
	Remove(kernel.Slot) error
	// Lock makes everything fail that begins after it returns, until Unlock.
	Lock(kernel.Slot) error
	Unlock(kernel.Slot) error
	Slots() ([]kernel.Slot, error)
	// Cgroup is the id of the cgroup that a slot is bound to; 0: the slot is gone.
	Cgroup(kernel.Slot) (uint64, error)
	Stats(kernel.Slot) (kernel.Stats, error)
	// TakeLost tells, once, what decided the records that were lost.
	TakeLost(kernel.Slot) ([]kernel.LostRecord, error)
	Process(pid int) (kernel.Process, bool, error)
	// Records reads the ring buffer until ctx ends.
	Records(context.Context, func(kernel.Record), func(kernel.Gain)) error
	Problems() []string
	// Requests lists what asks in all scopes.
	Requests() ([]kernel.Request, error)
	CloseRequest(kernel.Slot, kernel.AskKey, kernel.ProcessID) error
	// SetAnswer holds for what is decided from then on.
	SetAnswer(kernel.Slot, kernel.AskKey, kernel.Answer) error
	Answers(kernel.Slot) (map[kernel.AskKey]kernel.Answer, error)
	// DropAnswer ends an answer, and EndUses the use of what was opened with it.
	DropAnswer(kernel.Slot, kernel.AskKey) error
	EndUses(kernel.Slot, kernel.AskKey) error
}

// host is what the engine asks about the machine's processes and cgroups.
type host interface {
	// Proc is where proc is mounted.
	Proc() string
	// Cgroup is the absolute directory of the process's cgroup v2. It fails
	// for a process in the root cgroup.
	Cgroup(pid int) (string, error)
	// Mount is where the cgroup v2 file system is.
	Mount() (string, error)
	// StartTime tells processes with one pid apart. It is an error that wraps
	// fs.ErrNotExist when the process is gone or a zombie.
	StartTime(pid int) (uint64, error)
	// CgroupID names the cgroup at dir as long as it exists. It is an error
	// that wraps fs.ErrNotExist when the directory is gone.
	CgroupID(dir string) (uint64, error)
	// HasCgroup tells whether there is a cgroup of this id.
	HasCgroup(id uint64) (bool, error)
	// Populated tells whether the cgroup or one below it has a live process.
	Populated(dir string) (bool, error)
	// Processes lists the processes of the cgroup and of those below it.
	Processes(dir string) ([]int, error)
	// Stopped tells whether the process that was started then is stopped; at 0, the
	// one of this pid. It is an error that wraps fs.ErrNotExist when it is gone or a
	// zombie.
	Stopped(pid int, started uint64) (bool, error)
	// Continue sends it SIGCONT.
	Continue(pid int, started uint64) error
	// Mounts is the mountinfo of a process, as proc(5) has it.
	Mounts(pid int) ([]byte, error)
	// Freeze stops all processes of a cgroup and below it, and returns when they have
	// stopped, or lets them go on.
	Freeze(dir string, freeze bool) error
	// Parent is the pid of the process's parent.
	Parent(pid int) (int, error)
	// WorkingDirectory is where a process is, as it sees it, and which file that is; its
	// generation is not known.
	WorkingDirectory(pid int) (string, kernel.FileID, error)
	// Login is who had logged in before a process was started; false: nobody, as far as
	// is known.
	Login(pid int) (uint32, bool)
	// Comm is the name that a process has given itself.
	Comm(pid int) (string, error)
}
