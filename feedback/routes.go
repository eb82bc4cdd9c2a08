// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"strings"
	"time"
)

// routes is the whole surface of the socket.
func (s *Server) routes() http.Handler {
	type route struct {
		method  string
		handler func(http.ResponseWriter, *http.Request, Process)
	}
	table := map[string]route{
		"/v1/feedback":     {http.MethodGet, s.serveFeedback},
		"/v1/status":       {http.MethodGet, s.serveStatus},
		"/v1/policy":       {http.MethodGet, s.servePolicy},
		"/v1/policy/rules": {http.MethodPost, s.serveNarrow},
		"/v1/check":        {http.MethodPost, s.serveCheck},
		"/v1/acks":         {http.MethodPost, s.serveAcks},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		peer, member := peerOf(r.Context())
		to, known := table[r.URL.Path]
		switch {
		case !member:
			w.Header().Set("Connection", "close")
			s.fail(w, http.StatusForbidden, "the process that asks is not in the container that this socket belongs to")
		case !s.bucket.take(s.now(), s.limits.rate, s.limits.burst):
			w.Header().Set("Retry-After", "1")
			s.fail(w, http.StatusTooManyRequests, "there are too many requests on this socket; try again in a second")
		case !known:
			s.fail(w, http.StatusNotFound, "there is no such path; there are GET /v1/feedback, /v1/status and /v1/policy, and POST /v1/acks, /v1/check and /v1/policy/rules")
		case r.Method != to.method:
			w.Header().Set("Allow", to.method)
			s.fail(w, http.StatusMethodNotAllowed, "this path takes "+to.method+" only")
		case to.method == http.MethodGet && r.ContentLength != 0:
			w.Header().Set("Connection", "close")
			s.fail(w, http.StatusBadRequest, "a GET request has no body here")
		default:
			to.handler(w, r, peer)
		}
	})
}

func (s *Server) serveFeedback(w http.ResponseWriter, r *http.Request, peer Process) {
	query, err := parseQuery(r.URL.RawQuery)
	if err != nil {
		s.fail(w, http.StatusBadRequest, err.Error())
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), query.Wait)
	defer cancel()
	page, err := s.next(query, peer)
	others := 0
	for err == nil && len(page.Items) == 0 && s.scope.Wait(ctx, page.Cursor) == nil {
		if query.Consumer == "" { // a consumer's page begins anew
			others += page.Others
		}
		query.After = page.Cursor // an empty page's: behind all that it looked at
		page, err = s.next(query, peer)
	}
	page.Others += others
	if err != nil {
		w.Header().Set("Retry-After", "1")
		s.fail(w, http.StatusTooManyRequests, err.Error())
		return
	}
	s.answer(w, http.StatusOK, page)
}

// next is the page that a query asks for, as of now.
func (s *Server) next(query Query, peer Process) (Page, error) {
	wanted := inTree(peer, query)
	read := func(after, upTo uint64) Page {
		items := s.scope.Items(after)
		s.bucket.charge(float64(len(items)) / itemsPerToken)
		return newPage(items, after, upTo, wanted)
	}
	if query.Consumer == "" {
		return read(query.After, math.MaxUint64), nil
	}
	return s.ledger.take(query.Consumer, read)
}

// inTree tells which items belong to the process tree that a query is about. In
// doubt an item is told: within a scope there is nothing to keep secret, and
// what is not told cannot be understood.
func inTree(peer Process, query Query) func(Item) bool {
	if query.All || peer.ID == 0 {
		return func(Item) bool { return true }
	}
	root := peer.ID
	if n := len(peer.Ancestors); n > 0 && query.Depth != 0 {
		if query.Depth < 0 || query.Depth > n {
			query.Depth = n
		}
		root = peer.Ancestors[query.Depth-1]
	}
	return func(item Item) bool {
		process := item.Process
		if process.ID == root || process.ID == 0 || len(process.Ancestors) == 0 || process.AncestorsCut {
			return true
		}
		for _, ancestor := range process.Ancestors {
			if ancestor == root {
				return true
			}
		}
		return false
	}
}

// newPage makes a page of the wanted ones of the items above after up to upTo.
// Its cursor lies behind everything that need not be looked at again.
func newPage(items []Item, after, upTo uint64, wanted func(Item) bool) Page {
	page := Page{Items: []Entry{}, Cursor: after}
	if len(items) > 0 && items[0].Sequence > after+1 {
		page.Missed = items[0].Sequence - after - 1
	}
	size := 0
	for _, item := range items {
		if item.Sequence > upTo {
			break
		}
		if !wanted(item) {
			if page.Remaining == 0 {
				page.Cursor = item.Sequence
				page.Others++
			}
			continue
		}
		if page.Remaining > 0 || len(page.Items) >= maxPageItems {
			page.Remaining++
			continue
		}
		entry := newEntry(item)
		if size += entry.size(); size > maxPageBytes && len(page.Items) > 0 {
			page.Remaining++
			continue
		}
		page.Items = append(page.Items, entry)
		page.Cursor = item.Sequence
	}
	return page
}

// size is about what an entry takes on the wire: escapes and all, since a container chooses
// what has to be escaped.
func (e Entry) size() int {
	const entry, name, step = 512, 3, 256
	size := entry + escaped(e.Object, e.Rule, e.Because, e.Clause, e.Reason, e.Message)
	for _, names := range [][]string{e.Args, e.Labels, e.Also, e.Warnings} {
		size += name*len(names) + escaped(names...)
	}
	for _, parent := range e.Parents {
		size += step + escaped(parent.Program)
	}
	for _, origin := range e.Chain {
		size += step + escaped(origin.Label, origin.Gate)
		for _, s := range origin.Steps {
			size += step + escaped(s.Object, s.Program)
		}
	}
	return size
}

// escaped is how many bytes texts take in JSON of ASCII.
func escaped(texts ...string) (size int) {
	const escape = 6
	for _, text := range texts {
		for _, r := range text {
			switch {
			case r < ' ' || r > 0x7e && r < 0x10000:
				size += escape
			case r >= 0x10000:
				size += 2 * escape
			case r == '"' || r == '\\':
				size += 2
			default:
				size++
			}
		}
	}
	return size
}

func (s *Server) serveStatus(w http.ResponseWriter, r *http.Request, _ Process) {
	status := s.scope.Status()
	// Empty lists rather than null, for clients in strict languages.
	status.Layers = append([]PolicyLayer{}, status.Layers...)
	status.Degraded = append([]string{}, status.Degraded...)
	status.Warnings = append([]string{}, status.Warnings...)
	status.Clauses = append([]ClauseMode{}, status.Clauses...)
	s.answer(w, http.StatusOK, status)
}

func (s *Server) servePolicy(w http.ResponseWriter, r *http.Request, _ Process) {
	policy := Policy{Documents: []PolicyDocument{}}
	room := maxPolicySize
	for _, document := range s.scope.Policy() {
		if len(document.Text) > room {
			document.Text, policy.Cut = strings.ToValidUTF8(document.Text[:room], ""), true
		}
		room -= len(document.Text)
		policy.Documents = append(policy.Documents, document)
	}
	s.answer(w, http.StatusOK, policy)
}

func (s *Server) serveAcks(w http.ResponseWriter, r *http.Request, _ Process) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.limits.body))
	var ack Ack
	if err != nil || json.Unmarshal(text, &ack) != nil {
		s.fail(w, http.StatusBadRequest, `the body is not of the form {"consumer":"NAME","cursor":NUMBER}`)
		return
	}
	if err := checkConsumer(ack.Consumer); err != nil {
		s.fail(w, http.StatusBadRequest, err.Error())
		return
	}
	if !s.ledger.acknowledge(ack.Consumer, ack.Cursor) {
		s.fail(w, http.StatusConflict, "no answer with this cursor waits for an acknowledgement of this consumer")
		return
	}
	s.answer(w, http.StatusOK, ack)
}

func (s *Server) fail(w http.ResponseWriter, code int, sentence string) {
	s.answer(w, code, Failure{Error: sentence})
}

// answer writes JSON. A peer that does not take it in time loses its connection.
func (s *Server) answer(w http.ResponseWriter, code int, value any) {
	text, err := EncodeJSON(value)
	if err != nil {
		s.log.Print(err)
		code, text = http.StatusInternalServerError, []byte(`{"error":"the answer could not be written as JSON"}`+"\n")
	}
	s.bucket.charge(float64(len(text)) / bytesPerToken)
	// The error would be that there are no deadlines, which Unix sockets have.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.limits.send))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(text) // to a peer that left
}
