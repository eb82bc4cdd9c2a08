/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Two ways in for one body. */
#ifndef ACTPLANE_TWIN_H
#define ACTPLANE_TWIN_H

#include "prelude.bpf.h"

/* Whether the system call is to be made again; see restarts. */
#ifndef RESTARTS
#define RESTARTS() false
#endif

#define UNWRAP(...) __VA_ARGS__

/*
 * TWIN makes both programs of a hook out of on_HOOK, which returns whether the
 * operation is refused. The loader keeps those of its tier. Neither has to look at
 * the verdict of a program before it: the trampoline stops at the first that
 * refuses.
 *
 * Refused is with EPERM, or to be made again if the process was stopped for an answer;
 * see settle.
 *
 * 6.12 refuses "return refused ? -EPERM : 0": clang makes a negation of it, which
 * the verifier can't bound. The empty assembly keeps the branch.
 */
#define TWIN(hook, params, args)                                                                   \
	TWIN_BODY(lsm_##hook, "lsm/" #hook, params, on_##hook args)                                \
	TWIN_BODY(mod_##hook, "fmod_ret/security_" #hook, params, on_##hook args)

#define TWIN_BODY(name, section, params, call)                                                     \
	SEC(section)                                                                               \
	int BPF_PROG(name, UNWRAP params)                                                          \
	{                                                                                          \
		int refusal = -EPERM, again = -ERESTARTNOINTR;                                     \
                                                                                                   \
		asm volatile("" : "+r"(refusal), "+r"(again));                                     \
		if (call) {                                                                        \
			if (RESTARTS())                                                            \
				return again;                                                      \
			return refusal;                                                            \
		}                                                                                  \
		return 0;                                                                          \
	}

#endif
