// SPDX-License-Identifier: Apache-2.0

// Package console is what people on the host see of the engine: what is under policy,
// what happened, and what waits for an answer. [Watcher] keeps a picture of it that is
// bounded and always up to date; the terminal page (console/top) and the web page
// (console/web) show it.
//
// It is a client of the daemon's API and nothing else: it decides nothing, and what it
// shows of a container is hostile text until package internal/plain has it.
package console
