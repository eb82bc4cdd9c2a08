// SPDX-License-Identifier: Apache-2.0

// Package signature makes and checks signatures of policy files in the format of
// OpenSSH (SSHSIG), as `ssh-keygen -Y sign` and `-Y verify` do, and reads the file
// of those whose signatures a host accepts.
//
// A signature is of a text, made with a key, for a namespace. Check tells that, and
// nothing of whose key it is: that is for Signers. The package asks nobody and reads
// no files; keys and the time come from the caller.
package signature

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

const (
	// Namespace is what a policy is signed for, so that a signature of a mail or of
	// a commit is none of a policy.
	Namespace = "actplane-policy"
	// Suffix is what follows a file's name in that of its signature.
	Suffix = ".sig"
	// MaxSize bounds a signature's text, in bytes; one by an RSA key of 16,384 bits
	// has 6 KiB.
	MaxSize = 64 << 10
)

// begin and end are the lines around a signature.
const (
	begin = "-----BEGIN SSH SIGNATURE-----"
	end   = "-----END SSH SIGNATURE-----"
)

// Signature is a signature as read: well-formed, and of nothing yet.
type Signature struct{ parsed *sshsig.Signature }

// Sign signs a text for Namespace. It refuses keys that Check would refuse.
func Sign(text []byte, signer ssh.Signer) ([]byte, error) {
	if err := Usable(signer.PublicKey()); err != nil {
		return nil, err
	}
	signed, err := sshsig.Sign(bytes.NewReader(text), signer, sshsig.HashSHA512, Namespace)
	if err != nil {
		return nil, fmt.Errorf("sign with %s: %w", Describe(signer.PublicKey()), err)
	}
	return sshsig.Armor(signed), nil
}

// Parse reads a signature. There must be nothing else in the text: what stands
// around a signature nobody has signed.
func Parse(armored []byte) (*Signature, error) {
	blob, err := unarmor(armored)
	if err != nil {
		return nil, err
	}
	parsed, err := sshsig.ParseSignature(blob)
	switch {
	case err != nil && strings.Contains(err.Error(), `"`+ssh.KeyAlgoRSA+`"`):
		return nil, errors.New("the signature is made with SHA-1, which is too weak; sign again with a newer program")
	case err != nil && strings.Contains(err.Error(), `"`+dsaType+`"`):
		return nil, errDSA
	case err != nil:
		return nil, fmt.Errorf("the signature cannot be read: %s", strings.TrimPrefix(err.Error(), "ssh: "))
	case !bytes.Equal(parsed.Marshal(), blob) || len(parsed.Signature.Rest) > 0 && !isHardware(parsed.PublicKey):
		return nil, errors.New("the signature cannot be read: there is more in it than a signature")
	}
	if err := Usable(parsed.PublicKey); err != nil {
		return nil, err
	}
	return &Signature{parsed}, nil
}

// unarmor gives what is between the lines that begin and end a signature.
func unarmor(armored []byte) ([]byte, error) {
	if len(armored) > MaxSize {
		return nil, fmt.Errorf("the signature is larger than %d KiB", MaxSize>>10)
	}
	before, rest, found := strings.Cut(string(armored), begin)
	if !found {
		return nil, fmt.Errorf("this is no SSH signature: it has no line %q", begin)
	}
	if before != "" {
		return nil, errors.New("there is text before the signature, which nobody has signed")
	}
	// ssh-keygen wants the first and the last line to be lines, and of the others nothing.
	body, after, found := strings.Cut(rest, "\n"+end)
	switch {
	case strings.HasPrefix(rest, "\r"):
		return nil, errors.New("the signature's lines end as on Windows (CR LF), which ssh-keygen does not read: it has to stay as it was written (in git: `*.sig -text` in .gitattributes)")
	case !strings.HasPrefix(rest, "\n"):
		return nil, fmt.Errorf("the signature cannot be read: its first line is not %q alone", begin)
	case !found && strings.Contains(rest, end):
		return nil, fmt.Errorf("the signature cannot be read: %q does not begin a line", end)
	case !found:
		return nil, fmt.Errorf("the signature is cut off: it has no line %q", end)
	}
	if strings.Trim(after, "\r\n") != "" {
		return nil, errors.New("there is text after the signature, which nobody has signed")
	}
	blob, err := base64.StdEncoding.Strict().DecodeString(body) // which passes over line ends
	if err != nil {
		return nil, errors.New("the signature cannot be read: it is not in base64")
	}
	return blob, nil
}

// Check tells whether the signature is of this text and for Namespace. The error is
// a sentence.
func (s *Signature) Check(text []byte) error {
	if s.parsed.Namespace != Namespace {
		return fmt.Errorf("the signature is for the namespace %q, and that of a policy is for %q: sign it with \"actplane sign\", or \"ssh-keygen -Y sign -n %[2]s\"",
			s.parsed.Namespace, Namespace)
	}
	err := sshsig.Verify(bytes.NewReader(text), s.parsed, s.parsed.PublicKey, s.parsed.HashAlgorithm, Namespace)
	if err != nil {
		return fmt.Errorf("the signature, by the %s, is not of this text: one of them was changed", Describe(s.parsed.PublicKey))
	}
	return nil
}

// Key is the key with which the signature claims to be made; Check tells whether it
// is.
func (s *Signature) Key() ssh.PublicKey { return s.parsed.PublicKey }
