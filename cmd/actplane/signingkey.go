// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	"golang.org/x/term"

	"github.com/actplane/actplane/policy/signature"
)

// maxKey bounds a key's file, in bytes.
const maxKey = 64 << 10

// passphraseTries is how often a passphrase may be wrong.
const passphraseTries = 3

// signingKey is a key that can sign until it is closed.
type signingKey struct {
	signer ssh.Signer
	close  func()
}

// findSigningKey finds the key that a file names, or else the only one that the agent
// on a socket has. No secret comes by arguments or the environment.
func findSigningKey(ctx context.Context, path, socket string) (*signingKey, error) {
	if path == "" {
		return agentKey(socket, nil)
	}
	text, err := readBounded(path, maxKey)
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	if public, _, _, _, err := ssh.ParseAuthorizedKey(text); err == nil {
		return agentKey(socket, public)
	}
	if err := checkKeyMode(path); err != nil {
		return nil, err
	}
	signer, err := ssh.ParsePrivateKey(text)
	var locked *ssh.PassphraseMissingError
	if errors.As(err, &locked) {
		if locked.PublicKey != nil {
			if key, err := agentKey(socket, locked.PublicKey); err == nil {
				return key, nil // it has been asked there
			}
		}
		signer, err = unlock(ctx, path, text)
	}
	if err != nil {
		return nil, fmt.Errorf("read key %s: %w", path, err)
	}
	return &signingKey{signer: signer, close: func() {}}, nil
}

// checkKeyMode refuses a private key of ours that others may read, as ssh does.
func checkKeyMode(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("read key: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if ok && int(stat.Uid) == os.Getuid() && info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("the private key %s may be read by others (mode %04o): chmod 600 %[1]s", path, info.Mode().Perm())
	}
	return nil
}

// agentKey finds a key in the SSH agent: the one that is wanted, or else the only one
// that is of use.
func agentKey(socket string, wanted ssh.PublicKey) (*signingKey, error) {
	if socket == "" {
		if wanted != nil {
			return nil, fmt.Errorf("the %s is a public key, and there is no SSH agent to sign with it: name the private key, or start an agent", signature.Describe(wanted))
		}
		return nil, errors.New("there is no SSH agent (SSH_AUTH_SOCK): name a key with --key")
	}
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("ask the SSH agent: %w", err)
	}
	signers, err := agent.NewClient(conn).Signers()
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("ask the SSH agent: %w", err)
	}
	signer, err := choose(signers, wanted)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return &signingKey{signer: signer, close: func() { conn.Close() }}, nil
}

func choose(signers []ssh.Signer, wanted ssh.PublicKey) (ssh.Signer, error) {
	var usable []ssh.Signer
	for _, signer := range signers {
		if wanted != nil {
			if bytes.Equal(signer.PublicKey().Marshal(), wanted.Marshal()) {
				return signer, nil
			}
			continue
		}
		if signature.Usable(signer.PublicKey()) == nil {
			usable = append(usable, signer)
		}
	}
	switch {
	case wanted != nil:
		return nil, fmt.Errorf("the SSH agent does not have the %s: run ssh-add, or name the private key", signature.Describe(wanted))
	case len(usable) == 0:
		return nil, errors.New("the SSH agent has no key that can sign a policy: run ssh-add, or name a key with --key")
	case len(usable) > 1:
		return nil, fmt.Errorf("the SSH agent has %d keys, which ssh-add -L lists: name the public half of one with --key", len(usable))
	}
	return usable[0], nil
}

// unlock asks for the passphrase of a key on the terminal.
func unlock(ctx context.Context, path string, text []byte) (ssh.Signer, error) {
	terminal, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil, errors.New("it has a passphrase, and there is no terminal to ask for it: run ssh-add, and the agent signs")
	}
	defer terminal.Close()
	for range passphraseTries {
		fmt.Fprintf(terminal, "Passphrase of %s: ", clean(path))
		passphrase, err := readPassphrase(ctx, terminal)
		fmt.Fprintln(terminal)
		if err != nil {
			return nil, err
		}
		signer, err := ssh.ParsePrivateKeyWithPassphrase(text, passphrase)
		clear(passphrase)
		if err == nil {
			return signer, nil
		}
		if !errors.Is(err, x509.IncorrectPasswordError) {
			return nil, err
		}
		fmt.Fprintln(terminal, "That is not it.")
	}
	return nil, errors.New("the passphrase was wrong")
}

// readPassphrase reads a line without echo, and gives the terminal its echo back
// when a signal comes.
func readPassphrase(ctx context.Context, terminal *os.File) ([]byte, error) {
	fd := int(terminal.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return nil, fmt.Errorf("ask for the passphrase: %w", err)
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	type answer struct {
		text []byte
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		text, err := term.ReadPassword(fd)
		answers <- answer{text, err}
	}()
	select {
	case a := <-answers:
		if a.err != nil {
			return nil, fmt.Errorf("ask for the passphrase: %w", a.err)
		}
		return a.text, nil
	case <-ctx.Done():
		_ = term.Restore(fd, before) // there is nothing else to do about it
		return nil, errors.New("the passphrase was not given")
	}
}
