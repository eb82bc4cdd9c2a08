// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/actplane/actplane/feedback"
	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/replay"
)

// Bounds of what a log may cost, however long it is: bytes of a line, different outcomes
// that are shown and their bytes, different events and containers that are remembered,
// lines reported because they are no events.
const (
	maxLogLine       = 1 << 20
	maxGroups        = 10_000
	maxGroupBytes    = 16 << 20
	maxReplayCache   = 100_000
	maxReplayScopes  = 10_000
	maxUnreadable    = 10
	maxScopesOfGroup = 10
	maxScopeName     = 256
)

// replayer decides the events of a log again. It keeps what is decided otherwise, equal
// ones together.
type replayer struct {
	program *ir.Program
	scope   string

	records, alike, otherRule, itself int
	unshown                           int
	lost                              uint64
	missing                           uint64            // by the gaps between their numbers
	added                             int               // times that rules were added at run time
	byAdded                           int               // records that such rules decided
	scopes                            map[digest]uint64 // the number of the last record
	first, last                       time.Time
	groups                            []*replayGroup
	groupBytes                        int
	byEvent                           map[digest]*replayed
	broken                            int
	unreadable                        []string // the first of the broken lines
}

// digest stands for texts, which may be long.
type digest [sha256.Size]byte

// replayed is what has become of an event, and of all that are the same.
type replayed struct {
	kind  replay.Kind
	rule  string       // that decides now
	group *replayGroup // nil when it is alike, or not shown
}

// replayGroup is events that are the same, but for who and when.
type replayGroup struct {
	event       eventLine // the first
	count       int
	first, last time.Time
	scopes      []string // the first of those where it happened, by name or id
	outcome     replay.Outcome
}

func newReplayer(p *ir.Program, scope string) *replayer {
	return &replayer{program: p, scope: scope, scopes: map[digest]uint64{}, byEvent: map[digest]*replayed{}}
}

// read replays a log, an object a line.
func (r *replayer) read(log io.Reader) error {
	in := bufio.NewReaderSize(log, 1<<16)
	for number := 1; ; number++ {
		line, tooLong, err := readLine(in)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if line = bytes.TrimSpace(line); len(line) == 0 && !tooLong {
			continue
		}
		var e eventLine
		switch {
		case tooLong:
			r.failed(number, fmt.Errorf("the line has more than %d bytes", maxLogLine))
		default:
			if err := decodeEvent(line, &e); err != nil {
				r.failed(number, fmt.Errorf("it is no event as actplane events --json prints it: %w", err))
			} else if e.Operation == "" || e.Effect == "" {
				r.failed(number, errors.New("it is no event as actplane events --json prints it: no operation or effect"))
			} else {
				r.event(&e, len(line))
			}
		}
	}
}

// readLine reads a line without its end; of one that is too long it drops the rest.
func readLine(in *bufio.Reader) (line []byte, tooLong bool, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if room := maxLogLine - len(line); len(part) > room {
			part, tooLong = part[:room], true
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return line, tooLong, nil
		case errors.Is(err, io.EOF) && len(line) > 0:
			return line, tooLong, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, false, err
		}
	}
}

// decodeEvent decodes an event. It refuses a key that is there twice, and one that is
// another only by the case of its letters: package json would take either for the field.
func decodeEvent(line []byte, e *eventLine) error {
	if err := json.Unmarshal(line, e); err != nil {
		return err
	}
	keys := json.NewDecoder(bytes.NewReader(line))
	if start, err := keys.Token(); err != nil || start != json.Delim('{') {
		return cmp.Or(err, errors.New("it is no object"))
	}
	known := eventKeys()
	seen := map[string]bool{}
	for keys.More() {
		token, err := keys.Token()
		if err != nil {
			return err
		}
		key, _ := token.(string)
		if i := slices.IndexFunc(known, func(k string) bool { return strings.EqualFold(k, key) }); i >= 0 && known[i] != key {
			return fmt.Errorf("the key %q is written %q", key, known[i])
		}
		if seen[key] {
			return fmt.Errorf("the key %q is there twice", key)
		}
		seen[key] = true
		var value json.RawMessage
		if err := keys.Decode(&value); err != nil {
			return err
		}
	}
	return nil
}

// eventKeys are the keys of an event.
func eventKeys() (out []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[eventLine]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		out = append(out, name)
	}
	return out
}

// sum adds, up to the largest number.
func sum(a, b uint64) uint64 {
	if a+b < a {
		return math.MaxUint64
	}
	return a + b
}

func (r *replayer) failed(line int, err error) {
	if r.broken++; len(r.unreadable) < maxUnreadable {
		r.unreadable = append(r.unreadable, fmt.Sprintf("%d: %v", line, err))
	}
}

// addedPosition begins the positions of rules that were added at run time: the engine
// names their documents so.
const addedPosition = "added-"

// event replays one event of a line's length, if it is of the scope that is asked for.
func (r *replayer) event(e *eventLine, length int) {
	if r.scope != "" && !strings.HasPrefix(e.Scope, r.scope) && e.Name != r.scope {
		return
	}
	r.lost = sum(r.lost, e.Lost)
	r.numbered(e)
	switch outcome := feedback.Outcome(e.Outcome); {
	case outcome == feedback.Added:
		r.added++
		return
	case outcome.OfRequest():
		return
	case outcome == feedback.Used: // it was asked about, and went on
		e.Effect = ir.Ask.String()
	}
	r.records++
	if strings.HasPrefix(e.Position, addedPosition) {
		r.byAdded++
	}
	within(&r.first, &r.last, e.Time)
	x := r.replayed(e, length)
	switch x.kind {
	case replay.Itself:
		r.itself++
	case replay.Alike:
		r.alike++
		if x.rule != e.Rule {
			r.otherRule++
		}
	default:
		if x.group == nil {
			r.unshown++
			return
		}
		x.group.add(e)
	}
}

// numbered counts what is missing between the records of a container: they are numbered
// without gaps, and from 1 again when it comes back after long.
func (r *replayer) numbered(e *eventLine) {
	key := digest(sha256.Sum256([]byte(e.Scope)))
	last, known := r.scopes[key]
	if !known && len(r.scopes) == maxReplayScopes {
		return
	}
	if known && e.Sequence > last+1 {
		r.missing = sum(r.missing, e.Sequence-last-1)
	}
	r.scopes[key] = e.Sequence
}

// within widens a time from first to last.
func within(first, last *time.Time, t time.Time) {
	if first.IsZero() || t.Before(*first) {
		*first = t
	}
	if t.After(*last) {
		*last = t
	}
}

func (g *replayGroup) add(e *eventLine) {
	g.count++
	within(&g.first, &g.last, e.Time)
	name := cmp.Or(e.Name, short(e.Scope))
	if len(name) <= maxScopeName && len(g.scopes) < maxScopesOfGroup && !slices.Contains(g.scopes, name) {
		g.scopes = append(g.scopes, name)
	}
}

// replayed decides an event, unless one that is the same has been.
func (r *replayer) replayed(e *eventLine, length int) *replayed {
	labels := slices.Sorted(slices.Values(e.Labels))
	key := digest(sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %t %q %q %q %t", e.Effect, e.Operation, e.Object, e.Args, e.ArgsCut, e.Rule, e.Clause, labels, e.Unrecorded > 0)))
	if x := r.byEvent[key]; x != nil {
		return x
	}
	outcome := replay.Replay(r.program, &replay.Record{
		Effect: e.Effect, Operation: e.Operation, Object: e.Object, Args: e.Args, ArgsCut: e.ArgsCut,
		Rule: e.Rule, Clause: e.Clause, Labels: e.Labels, Unrecorded: e.Unrecorded > 0,
	})
	x := &replayed{kind: outcome.Kind}
	switch outcome.Kind {
	case replay.Alike:
		x.rule = outcome.Answers[0].Rule
	case replay.Itself:
	default:
		if r.groupBytes += length; len(r.groups) < maxGroups && r.groupBytes <= maxGroupBytes {
			x.group = &replayGroup{event: *e, outcome: outcome}
			r.groups = append(r.groups, x.group)
		}
	}
	if len(r.byEvent) < maxReplayCache {
		r.byEvent[key] = x
	}
	return x
}

// kind names the outcome of a group.
func (g *replayGroup) kind() string {
	switch g.outcome.Kind {
	case replay.Unclear:
		return "unclear"
	case replay.Depends:
		return "depends"
	}
	denied := g.event.Effect != ir.Notify.String()
	switch now := g.outcome.Answers[0].Denied(); {
	case denied && !now:
		return "allowed"
	case !denied && now:
		return "denied"
	}
	return "otherwise"
}

// span says from when to when the log goes, and of how many scopes it is.
func (r *replayer) span() string {
	text := ""
	switch n := len(r.scopes); {
	case n == maxReplayScopes:
		text = fmt.Sprintf(" of %d or more containers", n)
	case n > 1:
		text = fmt.Sprintf(" of %d containers", n)
	}
	if r.first.IsZero() {
		return text
	}
	return text + fmt.Sprintf(", %s to %s", r.first.UTC().Format(time.DateTime), r.last.UTC().Format(time.DateTime+" UTC"))
}

// tally says how much there is of each outcome.
func (r *replayer) tally() (out []string) {
	n := map[string]int{"unclear": 0}
	for _, g := range r.groups {
		n[g.kind()] += g.count
	}
	add := func(n int, text string) {
		if n > 0 {
			out = append(out, fmt.Sprintf("%d %s", n, text))
		}
	}
	alike := "alike"
	if r.otherRule > 0 {
		alike += fmt.Sprintf(" (%d by another rule)", r.otherRule)
	}
	add(r.alike, alike)
	add(n["allowed"], "allowed now")
	add(n["denied"], "denied now")
	add(n["otherwise"], "in another way")
	add(n["depends"], "not certain")
	add(n["unclear"], "unclear")
	add(r.unshown, "not shown")
	add(r.itself, "by ActPlane itself")
	if len(out) == 0 {
		out = []string{"nothing to replay"}
	}
	return out
}
