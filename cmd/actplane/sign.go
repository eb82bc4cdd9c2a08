// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/actplane/actplane/internal/atomicfile"
	"github.com/actplane/actplane/policy/signature"
)

func signCommand() *cli.Command {
	return &cli.Command{
		Name:      "sign",
		Usage:     "sign policy files with an SSH key",
		ArgsUsage: "FILE…",
		Description: "Writes FILE" + signature.Suffix + " beside each file, in place of one that is there: what\n" +
			"\"ssh-keygen -Y sign -n " + signature.Namespace + "\" writes. A FILE that is called - is standard\n" +
			"input: its signature is printed. A passphrase is asked for on the terminal, unless the SSH\n" +
			"agent has the key. The exit status is 3 when there is no key or it cannot sign.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "key", Aliases: []string{"k"}, Usage: "a private key's `FILE`, or the public half of one that the SSH agent has; without it the agent's only key signs"},
		},
		Action: signFiles,
	}
}

func signFiles(c *cli.Context) error {
	if !c.Args().Present() {
		return usageError("sign: name a policy file, such as actplane.yaml")
	}
	if err := inputOnce(c); err != nil {
		return err
	}
	// What cannot be read is found before a passphrase is asked for.
	texts := make([][]byte, c.NArg())
	for i, name := range c.Args().Slice() {
		var err error
		if texts[i], err = readInput(c, name); err != nil {
			return err
		}
	}
	key, err := findSigningKey(c.Context, c.String("key"), os.Getenv("SSH_AUTH_SOCK"))
	if err != nil {
		return environmentError("%v", err)
	}
	defer key.close()
	for i, name := range c.Args().Slice() {
		armored, err := signature.Sign(texts[i], key.signer)
		if err != nil {
			return environmentError("%v", err)
		}
		if err := writeSignature(c, name, armored, signature.Describe(key.signer.PublicKey())); err != nil {
			return environmentError("write signature: %v", err)
		}
	}
	return nil
}

func writeSignature(c *cli.Context, name string, armored []byte, by string) error {
	if name == standardInput {
		_, err := c.App.Writer.Write(armored)
		return err
	}
	if err := atomicfile.Write(name+signature.Suffix, armored, atomicfile.Options{Mode: 0o644, Sync: true}); err != nil {
		return err
	}
	_, err := fmt.Fprintf(c.App.Writer, "%s: signed with the %s\n", clean(name+signature.Suffix), by)
	return err
}

// readBounded reads a file of at most that many bytes.
func readBounded(name string, limit int) ([]byte, error) {
	file, err := openFile(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, int64(limit)+1))
	if err != nil {
		return nil, err
	}
	if len(text) > limit {
		return nil, fmt.Errorf("%s is larger than %d KiB", name, limit>>10)
	}
	return text, nil
}
