// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"
)

// How a step opens a file, and for fdopen by its mode.
var (
	opens   = strconv.Itoa(unix.O_ACCMODE) // for neither, with the permissions for both
	writes  = strconv.Itoa(unix.O_WRONLY | unix.O_CREAT)
	appends = strconv.Itoa(unix.O_WRONLY | unix.O_CREAT | unix.O_APPEND)
	modes   = map[string]string{
		"r": strconv.Itoa(unix.O_RDONLY), "w": writes, "a": appends, "rw": strconv.Itoa(unix.O_RDWR | unix.O_CREAT),
	}
)

// command is what a process is told for a step, and what is to be noted when it could
// do it.
func (a *actors) command(s *subject, op string, args []string) (command []string, done func(), err error) {
	switch op {
	case "open":
		return []string{"open", args[0], opens, "-1"}, nil, nil
	case "write":
		return []string{"write", args[0], writes}, nil, nil
	case "append":
		return []string{"write", args[0], appends}, nil, nil
	case "fdopen":
		fd := a.descriptor()
		return []string{"open", args[2], modes[args[1]], strconv.Itoa(fd)}, func() { s.files[args[0]] = fd }, nil
	case "fdread", "fdwrite":
		return []string{op, strconv.Itoa(s.files[args[0]])}, nil, nil
	case "pipe":
		return []string{"fdread", strconv.Itoa(a.shared["pipe "+args[0]][0])}, nil, nil
	case "piperead":
		return []string{"fdread", strconv.Itoa(a.shared["pipe "+args[0]][0])}, nil, nil
	case "pipewrite":
		return []string{"fdwrite", strconv.Itoa(a.shared["pipe "+args[0]][1])}, nil, nil
	case "shm":
		return []string{"shm", strconv.Itoa(a.shared["shm "+args[0]][0])}, nil, nil
	case "ptrace", "memread", "memwrite":
		other, err := a.subject(args[0])
		if err != nil {
			return nil, nil, err
		}
		return []string{op, strconv.Itoa(other.inside)}, nil, nil
	case "connect", "send", "recv", "bind":
		return a.socketCommand(s, op, args[0])
	case "execscript":
		return append([]string{"exec", args[0]}, args[2:]...), nil, nil
	}
	return append([]string{op}, args...), nil, nil
}

func (a *actors) socketCommand(s *subject, op, text string) (command []string, done func(), err error) {
	p, err := parsePeer(text)
	if err != nil {
		return nil, nil, err
	}
	fd, known := s.sockets[text]
	_, serves := s.sockets["at "+text]
	own := a.descriptor()
	address := func(op, kind, key string) ([]string, func(), error) {
		return append([]string{op, kind, strconv.Itoa(own)}, p.words()...), func() { s.sockets[key] = own }, nil
	}
	switch {
	case op == "connect":
		return address("connect", p.kind(), text)
	case op == "bind":
		return address("bind", p.kind(), "at "+text)
	case op == "send" && known:
		return []string{"send", strconv.Itoa(fd)}, nil, nil
	case op == "send": // a datagram, which nothing has to be connected for
		return append([]string{"sendto", "udp", "-1"}, p.words()...), nil, nil
	case known && a.ways != nil: // nobody waits for what perhaps does not come
		return []string{"recv", strconv.Itoa(fd), "20"}, nil, nil
	case known:
		return []string{"recv", strconv.Itoa(fd)}, nil, nil
	case serves && !p.udp:
		return []string{"accept", strconv.Itoa(s.sockets["at "+text]), strconv.Itoa(own)}, func() { s.sockets[text] = own }, nil
	case serves:
		return []string{"recv", strconv.Itoa(s.sockets["at "+text]), "20"}, nil, nil
	}
	return nil, nil, &unreachableError{fmt.Sprintf("%s has no socket to receive from %s", s.name, text)}
}
