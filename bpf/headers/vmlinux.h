/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel types that the programs touch, and of them only the fields that
 * they touch: CO-RE finds both by name in the running kernel's BTF, so order
 * and size here mean nothing. See headers/README.md.
 */
#ifndef __VMLINUX_H__
#define __VMLINUX_H__

typedef unsigned char __u8;
typedef signed char __s8;
typedef unsigned short __u16;
typedef short __s16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;
typedef __u8 u8;
typedef __s8 s8;
typedef __u16 u16;
typedef __s16 s16;
typedef __u32 u32;
typedef __s32 s32;
typedef __u64 u64;
typedef __s64 s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u64 __be64;
typedef __u32 __wsum;
typedef _Bool bool;
#define true 1
#define false 0
#define NULL ((void *)0)

/* Numbers of the kernel's ABI (include/uapi/linux/bpf.h). */
enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};
enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
	BPF_F_NO_PREALLOC = 1,
	BPF_F_INNER_MAP = 1 << 12,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
};

/* Found by value in the running kernel: the slot moves between versions. */
enum cgroup_bpf_attach_type {
	CGROUP_SYSCTL = 1,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct list_head {
	struct list_head *next, *prev;
};

typedef struct {
	int counter;
} atomic_t;

struct qstr {
	u32 hash;
	u32 len;
	const unsigned char *name;
};

struct mount;

typedef struct {
	u8 b[16];
} uuid_t;

struct super_block {
	u32 s_dev;
	unsigned long s_flags;
	unsigned long s_magic;
	uuid_t s_uuid;
	struct list_head s_mounts;
};

/* From 6.17 on. */
struct super_block___linked {
	struct mount *s_mounts;
};

/* With CONFIG_UNICODE. */
struct super_block___cased {
	void *s_encoding;
};

struct timespec64 {
	s64 tv_sec;
	long tv_nsec;
};

struct address_space {
	atomic_t i_mmap_writable;
};

struct inode {
	u16 i_mode;
	unsigned long i_ino;
	u32 i_generation;
	u32 i_rdev;
	unsigned int i_nlink;
	struct timespec64 i_ctime;
	struct super_block *i_sb;
	void *i_private;
	struct address_space *i_mapping;
	atomic_t i_writecount;
};

/* From 6.6 on. */
struct inode___accessors {
	struct timespec64 __i_ctime;
};

/* From 6.11 on. */
struct inode___split {
	s64 i_ctime_sec;
	u32 i_ctime_nsec;
};

/* Private to fs/proc, but in BTF. */
struct proc_inode {
	struct pid *pid;
	struct inode vfs_inode;
};

struct dentry {
	unsigned int d_flags;
	struct dentry *d_parent;
	struct qstr d_name;
	struct inode *d_inode;
	struct super_block *d_sb;
};

struct vfsmount {
	struct dentry *mnt_root;
	struct super_block *mnt_sb;
};

struct mnt_namespace;

/* Private to fs/, but in BTF. */
struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
	struct list_head mnt_mounts;
	struct list_head mnt_child;
	struct list_head mnt_instance;
	struct mnt_namespace *mnt_ns;
};

/* From 6.17 on. */
struct mount___linked {
	struct mount *mnt_next_for_sb;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct file {
	unsigned int f_mode;
	unsigned int f_flags;
	struct inode *f_inode;
	struct path f_path;
	void *private_data;
};

/* Until 6.5. */
struct proto_ops___sendpage {
	void *sendpage;
};

struct iattr {
	unsigned int ia_valid;
};

struct fs_struct {
	struct path root, pwd;
};

typedef struct {
	u32 val;
} kuid_t;

struct cred {
	kuid_t uid, euid;
};

struct mnt_namespace {
	struct mount *root;
};

struct nsproxy {
	struct mnt_namespace *mnt_ns;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct signal_struct {
	atomic_t live;
	int group_exit_code;
	unsigned int flags;
};

struct mm_struct {
	unsigned long arg_start, arg_end;
	void *ioctx_table; /* with CONFIG_AIO */
};

struct bpf_prog;

struct bpf_prog_array_item {
	struct bpf_prog *prog;
};

struct bpf_prog_array {
	struct bpf_prog_array_item items[1];
};

struct cgroup_bpf {
	struct bpf_prog_array *effective[64];
};

struct cgroup {
	struct cgroup_bpf bpf;
};

struct css_set {
	struct cgroup *dfl_cgrp;
};

struct thread_info {
	u32 status;
};

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[];
};

struct task_struct {
	struct thread_info thread_info;
	unsigned int flags;
	unsigned int ptrace;
	unsigned int in_execve : 1;
	int exit_code;
	int pid, tgid;
	u64 start_boottime;
	const struct cred *cred;
	struct task_struct *group_leader;
	struct task_struct *real_parent;
	struct pid *thread_pid;
	struct mm_struct *mm;
	struct fs_struct *fs;
	struct files_struct *files;
	struct nsproxy *nsproxy;
	struct nameidata *nameidata;
	struct signal_struct *signal;
	struct css_set *cgroups;
	char comm[16];
};

struct linux_binprm {
	unsigned long p;
	struct file *file;
	int argc, envc;
	unsigned int unsafe;
	const char *filename;
	const char *interp;
	char buf[256];
};

/* A path that is looked up. Private to fs/, but in BTF. */
struct nameidata {
	struct filename *name;
};

/* The newest kernels have no uptr. */
struct filename {
	const char *uptr; /* where the program has it */
};

/* x86-64; argv of execve and execveat is read through it. */
struct pt_regs {
	unsigned long r10, dx, cx, si, di, bx, orig_ax;
};

struct sockaddr {
	u16 sa_family;
};

struct in6_addr {
	union {
		u8 u6_addr8[16];
	} in6_u;
};

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	u16 skc_num;
	u16 skc_family;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

struct sock {
	struct sock_common __sk_common;
	u8 sk_userlocks : 4;
	u16 sk_type;
	u16 sk_protocol;
};

struct sockaddr_un {
	u16 sun_family;
};

struct unix_address {
	int len;
	struct sockaddr_un name[0];
};

struct unix_sock {
	struct sock sk;
	struct unix_address *addr;
	struct path path;
	struct sock *peer;
};

struct socket {
	struct sock *sk;
};

struct msghdr {
	void *msg_name;
	int msg_namelen;
	unsigned int msg_flags;
};

struct userfaultfd_ctx {
	struct mm_struct *mm;
};

/* io_uring's, with a thread of the kernel's that does what is asked. */
struct io_sq_data {
	int task_tgid;
};

struct io_ring_ctx {
	struct io_sq_data *sq_data;
};

struct kern_ipc_perm {
	int id;
};

struct tty_struct {
	struct tty_struct *link;
	void *driver_data;
};

struct tty_file_private {
	struct tty_struct *tty;
};

/* Only ever behind a pointer. */
struct __sk_buff;
struct bpf_sysctl;

#pragma clang attribute pop

#endif
