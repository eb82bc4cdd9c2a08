# SPDX-License-Identifier: Apache-2.0
"""Prints the BPF programs, maps and links that the kernel holds, one a line."""
import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)
INFO_BY_FD = 15


def bpf(command, *words):
    """bpf(2) with an attribute of 32-bit words; what the kernel wrote, or None."""
    attribute = (ctypes.c_uint32 * 32)(*words)
    result = libc.syscall(321, command, attribute, ctypes.sizeof(attribute))
    return None if result < 0 else (result, attribute)


def name_of(fd, offset):
    info = ctypes.create_string_buffer(256)
    address = ctypes.addressof(info)
    bpf(INFO_BY_FD, fd, len(info), address & 0xFFFFFFFF, address >> 32)
    return info.raw[offset:offset + 16].split(b"\0")[0].decode()


def objects(kind, next_id, fd_by_id, name_offset):
    number = 0
    while found := bpf(next_id, number):
        number = found[1][1]
        if opened := bpf(fd_by_id, number):
            name = name_of(opened[0], name_offset) if name_offset else ""
            os.close(opened[0])
            print("bpf", kind, name)


# The commands BPF_*_GET_NEXT_ID and BPF_*_GET_FD_BY_ID, and where struct
# bpf_*_info has the name; links have none.
objects("program", 11, 13, 64)
objects("map", 12, 14, 24)
objects("link", 31, 30, 0)
