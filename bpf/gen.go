// SPDX-License-Identifier: Apache-2.0

// Package bpf holds the programs that enforce, compiled and committed, and the Go
// types of everything that they share with the engine (abi.h). It is generated
// but for this file: "go generate ./bpf" needs clang-14, and gives the same bytes
// in every directory. Only package engine/kernel imports it.
//
// amd64 only: argv is found through the registers of a system call.
package bpf

//go:generate go tool bpf2go -cc clang-14 -strip llvm-strip-14 -target amd64 -go-package bpf -output-stem enforcer -type image -type row -type clause -type gate_ref -type arg_set -type move -type state -type range -type scope -type scope_files -type process -type file_id -type file_key -type file_state -type file_owners -type sharer -type host -type ask_key -type answer -type answer_change -type confinement -type image_change -type confined -type request_key -type request -type lost_key -type record -type origin -type lock_change -type known_path -type limits Enforcer enforcer.bpf.c -- -O2 -g -mcpu=v3 -Iheaders -Wall -Werror
//go:generate go tool bpf2go -cc clang-14 -strip llvm-strip-14 -target amd64 -go-package bpf -output-stem prober Prober prober.bpf.c -- -O2 -g -mcpu=v3 -Iheaders -Wall -Werror
//go:generate go tool bpf2go -cc clang-14 -strip llvm-strip-14 -target amd64 -go-package bpf -output-stem checker -type query Checker checker.bpf.c -- -O2 -g -mcpu=v3 -Iheaders -Wall -Werror
