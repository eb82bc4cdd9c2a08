// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Of a secret, as the Standard Webhooks specification has it.
const (
	secretPrefix = "whsec_"
	minSecret    = 24
	maxSecret    = 64
)

// CheckHost says what is wrong on this host with what the configuration names: programs
// that are not there or that others can change, users, secrets that others can read.
func CheckHost(approvers []Approver, notifications []Notification) error {
	var errs []error
	for i := range approvers {
		if err := approvers[i].checkHost(); err != nil {
			errs = append(errs, fmt.Errorf("approvers: %q: %w", approvers[i].Name, err))
		}
	}
	for i := range notifications {
		n := &notifications[i]
		err := n.checkHost()
		if err == nil && n.SecretFile != "" {
			_, err = ReadSecret(n.SecretFile)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("notifications: %q: %w", n.Name, err))
		}
	}
	return errors.Join(errs...)
}

func (t *Target) checkHost() error {
	if len(t.Command) == 0 {
		return nil
	}
	if _, err := t.Credential(); err != nil {
		return err
	}
	return checkProgram(t.Command[0])
}

// Credential is whom the program runs as; nil is as this process.
func (t *Target) Credential() (*syscall.Credential, error) {
	if t.User == "" {
		return nil, nil
	}
	who, err := user.Lookup(t.User)
	if err != nil {
		return nil, fmt.Errorf("user: %w", err)
	}
	uid, err := strconv.ParseUint(who.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user: %q has the number %q", t.User, who.Uid)
	}
	gid, err := strconv.ParseUint(who.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user: %q has the group %q", t.User, who.Gid)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// checkProgram: nobody but root, or who runs this, can put another program in its place.
func checkProgram(name string) error {
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return fmt.Errorf("command: %w", err)
	}
	info, err := os.Stat(real)
	if err != nil {
		return fmt.Errorf("command: %w", err)
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
		return fmt.Errorf("command: %q is not a program that can be run", name)
	}
	for _, path := range []string{name, real} {
		for at := path; ; at = filepath.Dir(at) {
			if err := checkOwned(at); err != nil {
				return fmt.Errorf("command: %w", err)
			}
			if at == "/" {
				break
			}
		}
	}
	return nil
}

// checkOwned looks at one file or folder on the way to a program. In a folder with the
// sticky bit others can make files, and not take away those that are there.
func checkOwned(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if owner := info.Sys().(*syscall.Stat_t).Uid; owner != 0 && int(owner) != os.Geteuid() {
		return fmt.Errorf("%q belongs to user %d, who could have another program run", path, owner)
	}
	sticky := info.IsDir() && info.Mode()&os.ModeSticky != 0
	if info.Mode()&os.ModeSymlink == 0 && !sticky && info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("others than its owner can write %q, and could have another program run; chmod go-w it", path)
	}
	return nil
}

// ReadSecret reads the secret that signs webhooks: of 24 to 64 bytes, as it is or, behind
// "whsec_", in base64. Nobody but its owner, root or who runs this, may read it.
func ReadSecret(name string) ([]byte, error) {
	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("secret_file: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("secret_file: %w", err)
	}
	owner := info.Sys().(*syscall.Stat_t).Uid
	switch {
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("secret_file: %q is not a regular file", name)
	case info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("secret_file: others than its owner can read %q; chmod 600 it", name)
	case owner != 0 && int(owner) != os.Geteuid():
		return nil, fmt.Errorf("secret_file: %q belongs to user %d", name, owner)
	}
	text := make([]byte, 4*maxSecret)
	n, err := file.Read(text)
	if err != nil {
		return nil, fmt.Errorf("secret_file: read %q: %w", name, err)
	}
	secret := bytes.TrimSpace(text[:n])
	if encoded, ok := strings.CutPrefix(string(secret), secretPrefix); ok {
		if secret, err = base64.StdEncoding.DecodeString(encoded); err != nil {
			return nil, fmt.Errorf("secret_file: what stands behind %q in %q is not base64", secretPrefix, name)
		}
	}
	if len(secret) < minSecret || len(secret) > maxSecret {
		return nil, fmt.Errorf("secret_file: the secret in %q has %d bytes; it takes %d to %d", name, len(secret), minSecret, maxSecret)
	}
	return secret, nil
}
