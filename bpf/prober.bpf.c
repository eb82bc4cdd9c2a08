// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build ignore

/*
 * Whether programs have an effect on this host: each denies one open, which only
 * the prober makes, and the prober looks whether it was denied. Without "bpf" in
 * lsm= the LSM twin loads and attaches and is never called.
 *
 * It calls what the oldest supported kernel must have, bpf_loop among it.
 */
#include "twin.bpf.h"

const volatile u32 prober_tgid;
const volatile u64 probe_ino;

static long nothing(u64 step, void *unused)
{
	return 1;
}

static __always_inline bool on_file_open(struct file *file)
{
	if (bpf_get_current_pid_tgid() >> 32 != prober_tgid)
		return false;
	bpf_loop(1, nothing, NULL, 0);
	return BPF_CORE_READ(file, f_inode, i_ino) == probe_ino;
}
TWIN(file_open, (struct file * file), (file))

char LICENSE[] SEC("license") = "Dual BSD/GPL";
