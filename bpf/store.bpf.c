// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build ignore

/*
 * What is kept beside contents, and can be read back: the options of sockets, extended
 * attributes, the targets of symbolic links. And commands that change files in a way that
 * no other hook shows.
 */

#define SOL_SOCKET 1
#define SO_ZEROCOPY 60
#define SOL_TCP 6
#define TCP_ZEROCOPY_RECEIVE 35

/* use_options moves labels between the process and what a socket's options hold: a filter
 * is up to 4,096 instructions of the sender's choice. */
static __always_inline void use_options(struct act *act, struct sock *sk, u32 mask)
{
	struct file_id id = option_id(sk);

	if (follows_labels(act))
		through_channel(act, id.ino, id_where(&id), mask);
}

/* One of the options takes data from the socket, and shows them in the process's memory. */
static __always_inline bool on_socket_getsockopt(struct socket *sock, int level, int option)
{
	struct sock *sk = BPF_CORE_READ(sock, sk);
	struct act act = {};
	enum membership membership = enter(&act);

	if (membership != INSIDE || in_setup(&act))
		return membership == REFUSED;
	if (level == SOL_TCP && option == TCP_ZEROCOPY_RECEIVE && receive(&act, number_of(sk)))
		return true;
	use_options(&act, sk, MAY_READ);
	return false;
}
TWIN(socket_getsockopt, (struct socket * sock, int level, int option), (sock, level, option))

/* What is sent without a copy can be changed until it leaves, when the process has
 * labels that it had not when it was asked for. */
static __always_inline bool on_socket_setsockopt(struct socket *sock, int level, int option)
{
	struct act act = {};
	enum membership membership = enter(&act);

	if (membership != INSIDE || in_setup(&act))
		return membership == REFUSED;
	if (level == SOL_SOCKET && option == SO_ZEROCOPY && follows_labels(&act))
		return refuse_unfollowed(&act, OP_SEND);
	use_options(&act, BPF_CORE_READ(sock, sk), MAY_WRITE);
	return false;
}
TWIN(socket_setsockopt, (struct socket * sock, int level, int option), (sock, level, option))

/* A connection begins with the options of the socket that is listened on. */
static __always_inline bool on_socket_accept(struct socket *sock)
{
	struct act act = {};
	enum membership membership = enter(&act);

	if (membership != INSIDE || in_setup(&act))
		return membership == REFUSED;
	use_options(&act, BPF_CORE_READ(sock, sk), MAY_READ);
	return false;
}
TWIN(socket_accept, (struct socket * sock), (sock))

/* layer_only tells a dentry that no mount shows: one of a layer of overlayfs, which looks
 * at its attributes in every walk. What is in memory alone has no mount either. */
static __always_inline bool layer_only(struct dentry *dentry)
{
	return !(BPF_CORE_READ(dentry, d_sb, s_flags) & SB_KERNMOUNT) &&
	       !mount_of(number_of(dentry), 0);
}

/* stored_labels are those of what is kept beside a file's contents. */
static __always_inline u64 stored_labels(struct act *act, struct dentry *dentry)
{
	struct inode *inode = BPF_CORE_READ(dentry, d_inode);
	struct file_key key = file_key(act, inode);
	struct file_state *state = bpf_map_lookup_elem(&files, &key);
	u64 assumed;

	if (state)
		return state->labels;
	assumed = assumed_state(scope_at(act->slot), inode).labels;
	return assumed & ~act->labels && !layer_only(dentry) ? assumed : 0;
}

/* read_stored brings the labels of what is kept beside contents. */
static __always_inline bool read_stored(struct dentry *dentry)
{
	struct act act = {};
	enum membership membership = enter(&act);
	struct file_id id;
	u64 labels;

	if (membership != INSIDE || in_setup(&act) || !follows_labels(&act))
		return membership == REFUSED;
	labels = gain(&act, stored_labels(&act, dentry));
	if (!labels)
		return false;
	id = file_id(BPF_CORE_READ(dentry, d_inode));
	note_gain(&act, labels, WAY_FILE, id.ino, id_where(&id));
	return false;
}

static __always_inline bool on_inode_getxattr(struct dentry *dentry)
{
	return read_stored(dentry);
}
TWIN(inode_getxattr, (struct dentry * dentry), (dentry))

/* Their names are as good as their values. */
static __always_inline bool on_inode_listxattr(struct dentry *dentry)
{
	return read_stored(dentry);
}
TWIN(inode_listxattr, (struct dentry * dentry), (dentry))

/* From 6.2 on; before, inode_getxattr is asked. */
static __always_inline bool on_inode_get_acl(struct dentry *dentry)
{
	return read_stored(dentry);
}
TWIN(inode_get_acl, (void *idmap, struct dentry *dentry), (dentry))

static __always_inline bool on_inode_readlink(struct dentry *dentry)
{
	return read_stored(dentry);
}
TWIN(inode_readlink, (struct dentry * dentry), (dentry))

#define COMMAND(kind, number) ((kind) << 8 | (number))

/*
 * is_unseen tells the commands on files and directories that exchange or move contents,
 * change the number by which a file is known, or show files under other paths; and that
 * make a directory take capitals for small letters. Of a command's number the upper half
 * is the size of its argument, which programs of 32 bits have others of.
 */
static __always_inline bool is_unseen(struct file *file, u32 command)
{
	struct super_block___cased *sb;

	switch (command & 0xffff) {
	case COMMAND('f', 4):	/* EXT4_IOC_SETVERSION */
	case COMMAND('v', 2):	/* FS_IOC_SETVERSION */
	case COMMAND('f', 15):	/* EXT4_IOC_MOVE_EXT */
	case COMMAND('f', 17):	/* EXT4_IOC_SWAP_BOOT */
	case COMMAND(0xf5, 9):	/* F2FS_IOC_MOVE_RANGE */
	case COMMAND('X', 109): /* XFS_IOC_SWAPEXT */
	case COMMAND('X', 129): /* XFS_IOC_EXCHANGE_RANGE */
	case COMMAND('X', 131): /* XFS_IOC_COMMIT_RANGE */
	case COMMAND(0x94, 1):	/* BTRFS_IOC_SNAP_CREATE */
	case COMMAND(0x94, 14): /* BTRFS_IOC_SUBVOL_CREATE */
	case COMMAND(0x94, 15): /* BTRFS_IOC_SNAP_DESTROY */
	case COMMAND(0x94, 23): /* BTRFS_IOC_SNAP_CREATE_V2 */
	case COMMAND(0x94, 24): /* BTRFS_IOC_SUBVOL_CREATE_V2 */
	case COMMAND(0x94, 63): /* BTRFS_IOC_SNAP_DESTROY_V2 */
		return true;
	case COMMAND('f', 2): /* FS_IOC_SETFLAGS: FS_CASEFOLD_FL cannot be told from here */
		sb = (void *)BPF_CORE_READ(file, f_inode, i_sb);
		return inode_type(BPF_CORE_READ(file, f_inode)) == S_IFDIR &&
		       bpf_core_field_exists(sb->s_encoding) && BPF_CORE_READ(sb, s_encoding);
	}
	return false;
}

#define FILE_OPS (BIT(OP_OPEN) | BIT(OP_READ) | BIT(OP_WRITE) | BIT(OP_APPEND) | BIT(OP_UNLINK))

/* governs_files tells whether a policy has labels, or rules about files. */
static __always_inline bool governs_files(struct act *act)
{
	struct image *head = image_at(act->image);

	return !head || head->labels || head->marks || head->kept_all || head->ops & FILE_OPS;
}

/* is_supervision: of what seccomp asks a supervisor, and what one does in the memory of
 * another process by userfaultfd, no hook shows what is told and answered. */
static __always_inline bool is_supervision(struct file *file, u32 command)
{
	struct userfaultfd_ctx *ctx;

	if (!is_anonymous(file))
		return false;
	switch (command >> 8 & 0xff) {
	case '!':
		return true;
	case 0xaa:
		ctx = BPF_CORE_READ(file, private_data);
		return BPF_CORE_READ(ctx, mm) != bpf_get_current_task_btf()->mm;
	}
	return false;
}

static __always_inline bool refuse_unseen(struct act *act, struct file *file)
{
	if (!acquire(act))
		return true;
	locate_file(act, file);
	refuse(act, OP_WRITE, REASON_UNSEEN);
	return end(act);
}

static __always_inline bool on_file_ioctl(struct file *file, u32 command)
{
	u16 type = inode_type(BPF_CORE_READ(file, f_inode));
	struct act act = {};
	enum membership membership = enter(&act);

	if (membership != INSIDE || in_setup(&act))
		return membership == REFUSED;
	if ((type == S_IFREG || type == S_IFDIR) && is_unseen(file, command) && governs_files(&act))
		return refuse_unseen(&act, file);
	return is_supervision(file, command) && follows_labels(&act) &&
	       refuse_unfollowed(&act, OP_SEND);
}
TWIN(file_ioctl, (struct file * file, unsigned int command), (file, command))

/* From 6.8 on; before, calls of 32 bits came to file_ioctl. */
static __always_inline bool on_file_ioctl_compat(struct file *file, u32 command)
{
	return on_file_ioctl(file, command);
}
TWIN(file_ioctl_compat, (struct file * file, unsigned int command), (file, command))
