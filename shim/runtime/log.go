// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"

	"golang.org/x/sys/unix"
)

// maxMessage bounds what is told to the container manager, in characters.
const maxMessage = 1000

// report tells why the call was refused. containerd shows its user the last
// error record of the log, podman the only one.
func (p *Program) report(call *call, err error) {
	message := oneLine("actplane: " + err.Error())
	if call.log != "" {
		if logErr := appendLog(call.log, call.logFormat, message, time.Now()); logErr != nil {
			message = oneLine(message + " (" + logErr.Error() + ")")
		}
	}
	fmt.Fprintln(p.Stderr, message)
}

// oneLine makes a message printable: names in it may come from the container.
func oneLine(message string) string {
	message = strings.ToValidUTF8(message, "?")
	message = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, message)
	if runes := []rune(message); len(runes) > maxMessage {
		return string(runes[:maxMessage]) + "…"
	}
	return message
}

// appendLog adds an error record in the runtime's log format: json or text.
func appendLog(path, format, message string, now time.Time) error {
	path = strings.TrimPrefix(path, "file:") // crun's way to say it
	if strings.HasPrefix(path, "journald:") || strings.HasPrefix(path, "syslog:") {
		return nil // crun's, and no file
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND|unix.O_NONBLOCK|unix.O_NOCTTY, 0o644)
	if err != nil {
		return fmt.Errorf("write log: %w", err)
	}
	defer file.Close()
	record := record(format, message, now)
	if !endsInNewline(file) {
		record = append([]byte("\n"), record...)
	}
	if _, err := file.Write(record); err != nil {
		return fmt.Errorf("write log: %w", err)
	}
	return nil
}

func record(format, message string, now time.Time) []byte {
	stamp := now.Format(time.RFC3339)
	if format != "json" {
		return fmt.Appendf(nil, "time=%s level=error msg=%s\n", strconv.Quote(stamp), strconv.Quote(message))
	}
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	// A struct of strings always encodes.
	_ = encoder.Encode(struct {
		Level string `json:"level"`
		Msg   string `json:"msg"`
		Time  string `json:"time"`
	}{"error", message, stamp})
	return buffer.Bytes()
}

// endsInNewline is true of what cannot be sought too, such as a terminal.
func endsInNewline(file *os.File) bool {
	end, err := file.Seek(0, io.SeekEnd)
	if err != nil || end == 0 {
		return true
	}
	last := make([]byte, 1)
	if _, err := file.ReadAt(last, end-1); err != nil {
		return true
	}
	return last[0] == '\n'
}
