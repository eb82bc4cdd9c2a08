// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"fmt"
	"io"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

var text = []byte("version: 1\n")

// newSigner makes the signer of a new Ed25519 key.
func newSigner(t testing.TB) ssh.Signer {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return signerOf(t, key)
}

func signerOf(t testing.TB, key any) ssh.Signer {
	t.Helper()
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

func rsaSigner(t testing.TB, bits int) ssh.Signer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return signerOf(t, key)
}

func sign(t testing.TB, signer ssh.Signer) string {
	t.Helper()
	armored, err := Sign(text, signer)
	if err != nil {
		t.Fatal(err)
	}
	return string(armored)
}

// raw signs without the checks of Sign.
func raw(t testing.TB, signer ssh.Signer, namespace string) string {
	t.Helper()
	signed, err := sshsig.Sign(bytes.NewReader(text), signer, sshsig.HashSHA256, namespace)
	if err != nil {
		t.Fatal(err)
	}
	return string(sshsig.Armor(signed))
}

func line(signer ssh.Signer, before string) string {
	return before + " " + string(ssh.MarshalAuthorizedKey(signer.PublicKey()))
}

func verify(t testing.TB, signers, armored string) error {
	t.Helper()
	parsed, err := ParseSigners("allowed_signers", []byte(signers), time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	_, err = parsed.Verify(text, []byte(armored), "", time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	return err
}

// sha1Signer signs as programs did before 2021.
type sha1Signer struct{ ssh.AlgorithmSigner }

func (s sha1Signer) SignWithAlgorithm(random io.Reader, data []byte, _ string) (*ssh.Signature, error) {
	return s.AlgorithmSigner.SignWithAlgorithm(random, data, ssh.KeyAlgoRSA)
}

// dsaKey is one in the wire format; its numbers don't matter.
func dsaKey() []byte {
	number := big.NewInt(4711)
	return ssh.Marshal(struct {
		Type       string
		P, Q, G, Y *big.Int
	}{dsaType, number, number, number, number})
}

// byDSA is a signature that claims to be by a DSA key.
func byDSA() string {
	blob := ssh.Marshal(struct {
		Magic                                     [6]byte
		Version                                   uint32
		Key                                       []byte
		Namespace, Reserved, Algorithm, Signature string
	}{[6]byte([]byte("SSHSIG")), 1, dsaKey(), Namespace, "", "sha512", string(ssh.Marshal(ssh.Signature{Format: dsaType, Blob: make([]byte, 40)}))})
	return begin + "\n" + base64.StdEncoding.EncodeToString(blob) + "\n" + end + "\n"
}

// certified is a signer whose public key is a certificate.
func certified(t testing.TB, signer ssh.Signer) ssh.Signer {
	t.Helper()
	certificate := &ssh.Certificate{Key: signer.PublicKey(), CertType: ssh.UserCert, ValidPrincipals: []string{"alice"}, ValidBefore: ssh.CertTimeInfinity}
	if err := certificate.SignCert(rand.Reader, newSigner(t)); err != nil {
		t.Fatal(err)
	}
	out, err := ssh.NewCertSigner(certificate, signer)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestGood(t *testing.T) {
	for name, signer := range map[string]ssh.Signer{"ed25519": newSigner(t), "rsa": rsaSigner(t, 2048)} {
		parsed, err := ParseSigners("f", []byte(line(signer, "alice@example.com,bob")), time.UTC)
		if err != nil {
			t.Fatal(err)
		}
		for _, armored := range []string{sign(t, signer), raw(t, signer, Namespace), strings.TrimSuffix(sign(t, signer), "\n") + "\r\n\n"} {
			verified, err := parsed.Verify(text, []byte(armored), "bob", time.Now())
			if err != nil || verified.Principals != "alice@example.com,bob" || !bytes.Equal(verified.Key.Marshal(), signer.PublicKey().Marshal()) {
				t.Errorf("%s: %+v, %v", name, verified, err)
			}
		}
	}
}

// What is refused, and the sentence that says so.
func TestRefused(t *testing.T) {
	signer, other, strong := newSigner(t), newSigner(t), rsaSigner(t, 2048)
	good := sign(t, signer)
	blob := func(change func([]byte) []byte) string {
		body := strings.TrimSuffix(strings.TrimPrefix(good, begin+"\n"), end+"\n")
		decoded, err := base64.StdEncoding.DecodeString(body)
		if err != nil {
			t.Fatal(err)
		}
		return begin + "\n" + base64.StdEncoding.EncodeToString(change(decoded)) + "\n" + end + "\n"
	}
	own := line(signer, "alice")
	for name, test := range map[string]struct{ signers, armored, says string }{
		"unknown":           {line(other, "alice"), good, "allowed_signers does not name the ED25519 key SHA256:"},
		"nobody":            {"", good, "allowed_signers does not name the ED25519 key SHA256:"},
		"of another":        {line(other, "alice"), strings.Replace(good, good[200:230], sign(t, other)[200:230], 1), ""},
		"other text":        {own, raw2(t, signer, "version: 2\n"), "is not of this text: one of them was changed"},
		"namespace":         {own, raw(t, signer, "file"), `is for the namespace "file", and that of a policy is for "actplane-policy": sign it with`},
		"for git":           {line(signer, `alice namespaces="git,file"`), good, `allowed_signers:1: the ED25519 key SHA256:`},
		"expired":           {line(signer, `alice valid-before="20260501"`), good, "has expired: it was valid until 2026-05-01T00:00:00Z"},
		"not yet":           {line(signer, `alice valid-after="202605011201"`), good, "is valid from 2026-05-01T12:01:00Z on, not yet"},
		"text behind":       {own, good + "x", "there is text after the signature, which nobody has signed"},
		"blank behind":      {own, good + " \n", "there is text after the signature"},
		"two":               {own, good + good, "there is text after the signature"},
		"text before":       {own, "x\n" + good, "there is text before the signature"},
		"empty":             {own, "", "is no SSH signature"},
		"a key":             {own, own, "is no SSH signature"},
		"cut off":           {own, good[:len(good)-5], "the signature is cut off"},
		"not base64":        {own, strings.Replace(good, "U1NIU0lH", "U1NIU0l!", 1), "it is not in base64"},
		"header":            {own, strings.Replace(good, begin+"\n", begin+"\nComment: x\n\n", 1), "it is not in base64"},
		"CR LF":             {own, strings.ReplaceAll(good, "\n", "\r\n"), "end as on Windows"},
		"CR":                {own, strings.ReplaceAll(good, "\n", "\r"), "end as on Windows"},
		"no lines":          {own, strings.ReplaceAll(good, "\n", ""), "its first line is not"},
		"no first line":     {own, strings.Replace(good, begin+"\n", begin, 1), "its first line is not"},
		"no last line":      {own, strings.Replace(good, "\n"+end, end, 1), "does not begin a line"},
		"byte order mark":   {own, "\ufeff" + good, "there is text before the signature"},
		"large":             {own, good + strings.Repeat("\n", MaxSize), "larger than 64 KiB"},
		"trailing bytes":    {own, blob(func(b []byte) []byte { return append(b, 0) }), "cannot be read"},
		"cut blob":          {own, blob(func(b []byte) []byte { return b[:len(b)-1] }), "cannot be read"},
		"empty blob":        {own, blob(func([]byte) []byte { return nil }), "cannot be read"},
		"magic":             {own, blob(func(b []byte) []byte { b[0] = 'X'; return b }), "cannot be read: invalid magic preamble"},
		"version":           {own, blob(func(b []byte) []byte { b[9] = 2; return b }), "unsupported signature version 2"},
		"one bit":           {own, blob(func(b []byte) []byte { b[len(b)-1] ^= 1; return b }), "is not of this text"},
		"hash algorithm":    {own, blob(func(b []byte) []byte { return bytes.Replace(b, []byte("sha512"), []byte("sha384"), 1) }), `unsupported hash algorithm "sha384"`},
		"reserved":          {own, blob(func(b []byte) []byte { return reserve(b) }), "there is more in it than a signature"},
		"short RSA":         {own, raw(t, rsaSigner(t, 1024), Namespace), "has 1024 bits, and 2048 are the least"},
		"DSA":               {own, byDSA(), "is a DSA key, which is too weak"},
		"SHA-1":             {line(strong, "alice"), raw(t, sha1Signer{strong.(ssh.AlgorithmSigner)}, Namespace), "is made with SHA-1, which is too weak"},
		"certificate":       {own, raw(t, certified(t, signer), Namespace), "is a certificate, which this version does not accept"},
		"SHA-1 certificate": {line(strong, "alice"), raw(t, certified(t, sha1Signer{strong.(ssh.AlgorithmSigner)}), Namespace), "is a certificate"},
	} {
		err := verify(t, test.signers, test.armored)
		if err == nil || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", name, err, test.says)
		}
	}
}

// raw2 signs another text.
func raw2(t testing.TB, signer ssh.Signer, text string) string {
	t.Helper()
	armored, err := Sign([]byte(text), signer)
	if err != nil {
		t.Fatal(err)
	}
	return string(armored)
}

// reserve fills the reserved field, which is empty and not signed.
func reserve(blob []byte) []byte {
	at := bytes.Index(blob, []byte("\x00\x00\x00\x06sha512"))
	return append(append(append([]byte{}, blob[:at-4]...), 0, 0, 0, 1, 'x'), blob[at:]...)
}

// A signature is of all bytes of a text: no other text has it.
func TestTampering(t *testing.T) {
	signer := newSigner(t)
	parsed, err := Parse([]byte(sign(t, signer)))
	if err != nil {
		t.Fatal(err)
	}
	if err := parsed.Check(text); err != nil {
		t.Fatal(err)
	}
	for i := range text {
		for bit := range 8 {
			other := bytes.Clone(text)
			other[i] ^= 1 << bit
			if parsed.Check(other) == nil {
				t.Errorf("bit %d of byte %d does not count", bit, i)
			}
		}
	}
	for _, other := range []string{"", string(text) + "\n", string(text) + " ", "\ufeff" + string(text), strings.TrimSpace(string(text)), strings.ReplaceAll(string(text), "\n", "\r\n")} {
		if parsed.Check([]byte(other)) == nil {
			t.Errorf("%q is taken for the text", other)
		}
	}
}

func TestSignRefusesWeakKeys(t *testing.T) {
	for says, signer := range map[string]ssh.Signer{
		"has 1024 bits": rsaSigner(t, 1024), "is a certificate": certified(t, newSigner(t)),
	} {
		if _, err := Sign(text, signer); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

func FuzzParse(f *testing.F) {
	signer := newSigner(f)
	good := sign(f, signer)
	f.Add([]byte(good))
	f.Add([]byte(raw(f, signer, "file")))
	f.Add([]byte(begin + "\n" + end))
	signers, err := ParseSigners("f", []byte(line(signer, "alice")), time.UTC)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, armored []byte) {
		_, err := signers.Verify(text, armored, "", time.Unix(1, 0))
		if err == nil && strings.NewReplacer("\r", "", "\n", "").Replace(string(armored)) != strings.ReplaceAll(good, "\n", "") {
			t.Errorf("another signature counts:\n%s", armored)
		}
	})
}

func ExampleSigners_Verify() {
	signers, err := ParseSigners("allowed_signers", nil, time.UTC)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = signers.Verify([]byte("version: 1\n"), []byte("none\n"), "alice@example.com", time.Now())
	fmt.Println(err)
	// Output: this is no SSH signature: it has no line "-----BEGIN SSH SIGNATURE-----"
}
