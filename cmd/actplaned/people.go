// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"sync"

	"github.com/sirupsen/logrus"

	"github.com/actplane/actplane/engine/approver"
	"github.com/actplane/actplane/engine/notify"
	"github.com/actplane/actplane/internal/approval"
	"github.com/actplane/actplane/internal/hostcall"
	"github.com/actplane/actplane/shim/prepare"
)

// loadConfig reads the host's configuration, and looks at the programs and secrets in it.
func loadConfig(file string) (*prepare.Config, error) {
	config, err := prepare.LoadConfig(file)
	if err != nil {
		return nil, err
	}
	if err := approval.CheckHost(config.Approvers, config.Notifications); err != nil {
		return nil, fmt.Errorf("host configuration %s: %w", file, err)
	}
	return config, nil
}

// people are who is asked and who is told, as the host's configuration has them. They can
// be others while the engine runs; all else in the file holds from its next start.
type people struct {
	*notify.Notifier
	approvers *approver.Chain
	file      string
	peer      hostcall.Peer
	log       *logrus.Entry

	mu    sync.Mutex
	fault string // why the file was not taken the last time; guarded by mu
}

func newPeople(file string, config *prepare.Config, peer hostcall.Peer, log *logrus.Entry) (*people, error) {
	p := &people{file: file, peer: peer, log: log}
	var err error
	if p.approvers, err = approver.New(config.Approvers, peer, log); err != nil {
		return nil, err
	}
	p.Notifier, err = notify.New(config.Notifications, peer, log)
	return p, err
}

// follow reads the file again at each signal, until the context ends.
func (p *people) follow(ctx context.Context, signals <-chan os.Signal) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-signals:
			p.reload()
		}
	}
}

// reload takes the file as it is now, or, if anything is wrong in it, keeps what was.
func (p *people) reload() {
	config, err := loadConfig(p.file)
	if err == nil {
		err = p.replace(config)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.fault = fmt.Sprintf("approvers and notifications are those from before the last reload: %v", err)
		p.log.WithError(err).Error("the configuration is not taken; what was before holds")
		return
	}
	p.fault = ""
	p.log.WithFields(logrus.Fields{"approvers": len(config.Approvers), "notifications": len(config.Notifications)}).Info("approvers and notifications read again")
}

// replace does both or, as far as can be known before, none.
func (p *people) replace(config *prepare.Config) error {
	if _, err := approver.New(config.Approvers, p.peer, p.log); err != nil {
		return err
	}
	if err := p.Notifier.Replace(config.Notifications); err != nil {
		return err
	}
	return p.approvers.Replace(config.Approvers)
}

// Problems implements what the engine asks of notifications.
func (p *people) Problems() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	problems := p.Notifier.Problems()
	if p.fault != "" {
		problems = append([]string{p.fault}, problems...)
	}
	return problems
}
