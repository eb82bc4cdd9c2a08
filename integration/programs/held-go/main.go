// SPDX-License-Identifier: Apache-2.0

// Held-go does what the scenario ask holds: each argument pair or triple is a step,
// and each step's outcome a line. It knows nothing of holds. Other goroutines keep
// threads busy meanwhile.
package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
)

func main() {
	for range 3 {
		go func() {
			for {
				os.Getpid()
			}
		}()
	}
	for args := os.Args[1:]; len(args) >= 2; args = args[2:] {
		fmt.Println(args[0], outcome(step(args[0], args[1])))
	}
}

func step(op, object string) error {
	switch op {
	case "open":
		file, err := os.Open(object)
		if err == nil {
			err = file.Close()
		}
		return err
	case "unlink":
		return os.Remove(object)
	case "connect":
		conn, err := net.Dial("tcp4", object)
		if err == nil {
			err = conn.Close()
		}
		return err
	case "send":
		to, err := net.ResolveUDPAddr("udp4", object)
		if err != nil {
			return err
		}
		conn, err := net.ListenUDP("udp4", nil)
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = conn.WriteTo([]byte("x"), to)
		return err
	case "exec":
		return syscall.Exec(object, []string{object}, os.Environ())
	}
	return errors.New("no such step")
}

// outcome: what is refused by who is not there went through.
func outcome(err error) string {
	var errno syscall.Errno
	switch {
	case err == nil || errors.Is(err, syscall.ECONNREFUSED):
		return "ok"
	case errors.As(err, &errno) && errno == syscall.EPERM:
		return "EPERM"
	}
	return err.Error()
}
