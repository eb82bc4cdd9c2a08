// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/actplane/actplane/policy/signature"
)

// allowedSigners is the host's file of those whose signatures count.
const allowedSigners = "/etc/actplane/allowed_signers"

func verifyCommand() *cli.Command {
	return &cli.Command{
		Name:      "verify",
		Usage:     "verify the signatures of policy files",
		ArgsUsage: "FILE…",
		Description: "Tells whether FILE" + signature.Suffix + " is a signature of the FILE as it is, for the namespace\n" +
			signature.Namespace + ", by a key that the allowed_signers file names and that is valid now; that\n" +
			"file's format is in ssh-keygen(1), and \"ssh-keygen -Y verify\" tells the same. A FILE that is\n" +
			"called - is standard input, with --signature. The exit status is 0 when all are good, 1 when one\n" +
			"is not, 2 for a wrong command line and 3 when a file or the signers cannot be read.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "allowed-signers", Aliases: []string{"f"}, Value: allowedSigners, Usage: "the `FILE` of those whose signatures count"},
			&cli.StringFlag{Name: "signer", Aliases: []string{"I"}, Usage: "only a signature of this `NAME` counts, which the file's principals have to match"},
			&cli.StringFlag{Name: "signature", Aliases: []string{"s"}, Usage: "the signature's `FILE`, of a single FILE"},
			&cli.BoolFlag{Name: "any-signer", Usage: "tell only whether the signature is of the FILE, whoever made it"},
		},
		Action: verifyFiles,
	}
}

func verifyFiles(c *cli.Context) error {
	if err := checkVerifyArguments(c); err != nil {
		return err
	}
	var signers *signature.Signers
	if !c.Bool("any-signer") {
		var err error
		if signers, err = readSigners(c.String("allowed-signers")); err != nil {
			return environmentError("%v", err)
		}
	}
	bad := 0
	for _, name := range c.Args().Slice() {
		good, err := verifyFile(c, name, signers)
		if err != nil {
			return err
		}
		if !good {
			bad++
		}
	}
	if bad > 0 {
		return &failure{code: exitDiagnostics}
	}
	return nil
}

func checkVerifyArguments(c *cli.Context) error {
	switch {
	case !c.Args().Present():
		return usageError("verify: name a policy file, such as actplane.yaml")
	case c.IsSet("signature") && c.NArg() > 1:
		return usageError("verify: --signature is of one file, and there are %d", c.NArg())
	case c.IsSet("signer") && c.String("signer") == "":
		return usageError("verify: --signer names nobody; is a variable empty?")
	case c.Bool("any-signer") && (c.IsSet("signer") || c.IsSet("allowed-signers")):
		return usageError("verify: --any-signer asks for nobody; leave out --signer and --allowed-signers")
	}
	for _, name := range c.Args().Slice() {
		if name == standardInput && !c.IsSet("signature") {
			return usageError("verify: name the signature of standard input with --signature")
		}
	}
	return nil
}

func readSigners(name string) (*signature.Signers, error) {
	text, err := readBounded(name, signature.MaxSigners)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no %s, so nobody's signature counts: write it as ssh-keygen(1) says under ALLOWED SIGNERS, or name one with --allowed-signers", name)
	}
	if err != nil {
		return nil, fmt.Errorf("read allowed signers: %w", err)
	}
	return signature.ParseSigners(name, text, time.Local)
}

// verifyFile tells of one file: what is good on standard output, what is not on the
// other. Without signers, anybody is one.
func verifyFile(c *cli.Context, name string, signers *signature.Signers) (good bool, err error) {
	text, err := readInput(c, name)
	if err != nil {
		return false, err
	}
	path := c.String("signature")
	if path == "" {
		path = name + signature.Suffix
	}
	armored, err := readBounded(path, signature.MaxSize)
	var fact string
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = fmt.Errorf("it is not signed: there is no %s", path)
	case err != nil:
		return false, environmentError("read signature: %v", err)
	case signers == nil:
		fact, err = checkOnly(text, armored)
	default:
		fact, err = signedBy(signers, text, armored, c.String("signer"))
	}
	if err != nil {
		fmt.Fprintf(c.App.ErrWriter, "actplane: %s: %s\n", clean(inputName(name)), clean(err.Error()))
		return false, nil
	}
	if _, err := fmt.Fprintf(c.App.Writer, "%s: %s\n", clean(inputName(name)), clean(fact)); err != nil {
		return false, environmentError("print result: %v", err)
	}
	return true, nil
}

func signedBy(signers *signature.Signers, text, armored []byte, signer string) (string, error) {
	verified, err := signers.Verify(text, armored, signer, time.Now())
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("good signature by %q with the %s", verified.Principals, signature.Describe(verified.Key)), nil
}

func checkOnly(text, armored []byte) (string, error) {
	parsed, err := signature.Parse(armored)
	if err != nil {
		return "", err
	}
	if err := parsed.Check(text); err != nil {
		return "", err
	}
	return fmt.Sprintf("the signature is of this text, by the %s; whose that is was not asked", signature.Describe(parsed.Key())), nil
}
