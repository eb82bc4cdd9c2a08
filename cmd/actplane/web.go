// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"log"
	"net"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/actplane/actplane/console/web"
)

// webSocket is where the page listens, in the engine's run directory.
const webSocket = "web.sock"

func webCommand() *cli.Command {
	return &cli.Command{
		Name:  "web",
		Usage: "serve a page that shows what is under policy, and answers requests, to a browser",
		Description: "It listens on web.sock in the engine's run directory, which root alone can reach. From another machine:\n\n" +
			"   ssh -N -L 127.0.0.1:8700:/run/actplane/web.sock root@HOST\n\n" +
			"and then open http://127.0.0.1:8700/ with the token that is printed. With --listen 127.0.0.1:0 a browser on this\n" +
			"host opens the printed address. The token is new for each run; who has it can approve. Processes in containers\n" +
			"get no connection.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "listen", Usage: "a loopback `ADDRESS` and port, such as 127.0.0.1:0, in place of the socket"},
			runDirFlag(),
		},
		Action: webAction,
	}
}

func webAction(c *cli.Context) error {
	if c.Args().Present() {
		return usageError("web: unexpected argument %q", c.Args().First())
	}
	ctx, stop := signal.NotifyContext(c.Context, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	watcher, err := watch(ctx, c)
	if err != nil {
		return err
	}
	listener, err := listenWeb(c)
	if err != nil {
		return err
	}
	server := web.NewServer(web.Options{Source: watcher, Answers: answersBy("web"), Log: log.New(c.App.ErrWriter, "actplane: ", 0)})
	if err := tellAddress(c, listener, server.Token()); err != nil {
		listener.Close()
		return environmentError("print the address: %v", err)
	}
	if err := server.Serve(ctx, listener); err != nil {
		return environmentError("serve the page: %v", err)
	}
	return nil
}

func listenWeb(c *cli.Context) (net.Listener, error) {
	listen := web.ListenUnix
	address := filepath.Join(c.String("run-dir"), webSocket)
	if c.IsSet("listen") {
		listen, address = web.ListenLoopback, c.String("listen")
		if err := web.CheckLoopback(address); err != nil {
			return nil, usageError("web: --listen: %v", err)
		}
	}
	listener, err := listen(address)
	if err != nil {
		return nil, environmentError("%v", err)
	}
	return listener, nil
}

// tellAddress prints what a browser opens.
func tellAddress(c *cli.Context, listener net.Listener, token string) error {
	var text strings.Builder
	address := listener.Addr().String()
	if listener.Addr().Network() == "unix" {
		fmt.Fprintf(&text, "The page is on %s. From another machine:\n\n    ssh -N -L 127.0.0.1:8700:%[1]s root@HOST\n\nand open there\n\n", address)
		address = "127.0.0.1:8700"
	} else {
		text.WriteString("Open\n\n")
	}
	fmt.Fprintf(&text, "    http://%s/#token=%s\n\nWho has this address can approve; it is of no use when this command has ended. Ctrl-C ends it.\n", address, token)
	_, err := fmt.Fprint(c.App.Writer, text.String())
	return err
}
