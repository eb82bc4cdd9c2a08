// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build ignore

/*
 * Whether programs have an effect on this host: each denies the opening of one file,
 * which nobody but the prober has, and the prober looks whether it was denied. Without
 * "bpf" in lsm= the LSM twin loads and attaches and is never called.
 *
 * It calls what the oldest supported kernel must have, bpf_loop among it.
 */
#include "twin.bpf.h"

const volatile u64 probe_ino;
const volatile u32 probe_dev;
/* How long a call takes: with many, and threads that share a CPU, it shows whether
 * the kernel lets one thread into the middle of another's program. */
const volatile u32 rounds = 1;

static long nothing(u64 step, void *unused)
{
	return 0;
}

static __always_inline bool on_file_open(struct file *file)
{
	if (BPF_CORE_READ(file, f_inode, i_ino) != probe_ino ||
	    BPF_CORE_READ(file, f_inode, i_sb, s_dev) != probe_dev)
		return false;
	bpf_loop(rounds, nothing, NULL, 0);
	return true;
}
TWIN(file_open, (struct file * file), (file))

char LICENSE[] SEC("license") = "Dual BSD/GPL";
