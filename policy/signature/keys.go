// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"crypto/rsa"
	"errors"
	"fmt"

	"golang.org/x/crypto/ssh"
)

// dsaType is that of DSA keys, which the library does not know any more.
const dsaType = "ssh-dss"

var errDSA = errors.New("the key is a DSA key, which is too weak: use an Ed25519 key")

// minRSA is the length, in bits, of the shortest RSA key that is no weak one.
const minRSA = 2048

// Usable refuses keys by which nothing is proved, or that this package does not
// know. The error is a sentence.
func Usable(key ssh.PublicKey) error {
	// An agent's keys know no more than their type.
	if parsed, err := ssh.ParsePublicKey(key.Marshal()); err == nil {
		key = parsed
	}
	switch key.Type() {
	case ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521, ssh.KeyAlgoSKED25519, ssh.KeyAlgoSKECDSA256:
		return nil
	case ssh.KeyAlgoRSA:
		if n := bits(key); n < minRSA {
			return fmt.Errorf("the RSA key %s has %d bits, and %d are the least: use another key", ssh.FingerprintSHA256(key), n, minRSA)
		}
		return nil
	case dsaType:
		return errDSA
	}
	if _, ok := key.(*ssh.Certificate); ok {
		return fmt.Errorf("%s is a certificate, which this version does not accept: sign with a key that allowed_signers names itself", key.Type())
	}
	return fmt.Errorf("keys of the type %q are not known: use an Ed25519 key", key.Type())
}

// isHardware tells keys in a security token: their signatures have a counter and
// flags behind them.
func isHardware(key ssh.PublicKey) bool {
	return key.Type() == ssh.KeyAlgoSKED25519 || key.Type() == ssh.KeyAlgoSKECDSA256
}

func bits(key ssh.PublicKey) int {
	if own, ok := key.(ssh.CryptoPublicKey); ok {
		if public, ok := own.CryptoPublicKey().(*rsa.PublicKey); ok {
			return public.N.BitLen()
		}
	}
	return 0
}

// Describe names a key as ssh-keygen does: its kind and fingerprint.
func Describe(key ssh.PublicKey) string {
	kind := map[string]string{
		ssh.KeyAlgoED25519: "ED25519", ssh.KeyAlgoSKED25519: "ED25519-SK", ssh.KeyAlgoRSA: "RSA",
		ssh.KeyAlgoECDSA256: "ECDSA", ssh.KeyAlgoECDSA384: "ECDSA", ssh.KeyAlgoECDSA521: "ECDSA", ssh.KeyAlgoSKECDSA256: "ECDSA-SK",
	}[key.Type()]
	if kind == "" {
		kind = key.Type()
	}
	return kind + " key " + ssh.FingerprintSHA256(key)
}
