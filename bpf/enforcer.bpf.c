// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build ignore

/*
 * The one object: hooks in the files included at the end, everything that they
 * decide with in the headers, one concern each.
 */
#include "scope.bpf.h"
#include "identity.bpf.h"
#include "labels.bpf.h"
#include "gates.bpf.h"
#include "match.bpf.h"
#include "sums.bpf.h"
#include "ask.bpf.h"
#include "decide.bpf.h"
#include "argv.bpf.h"
#include "emit.bpf.h"
#include "settle.bpf.h"
#include "event.bpf.h"
#include "share.bpf.h"
#include "sharer.bpf.h"
#include "trust.bpf.h"
#include "channel.bpf.h"
#include "twin.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#include "exec.bpf.c"
#include "loader.bpf.c"
#include "socket.bpf.c"
#include "channel.bpf.c"
#include "file.bpf.c"
#include "inode.bpf.c"
#include "names.bpf.c"
#include "task.bpf.c"
#include "memory.bpf.c"
#include "store.bpf.c"
#include "lock.bpf.c"
