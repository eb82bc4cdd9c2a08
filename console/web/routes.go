// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"crypto/subtle"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/actplane/actplane/console"
	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/feedback"
	"github.com/actplane/actplane/internal/plain"
)

//go:embed assets
var assets embed.FS

// contentPolicy lets the page load what is here and nothing else, run no text as a script,
// and be in no frame.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

const maxBecause = 1000 // characters

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	for path, file := range map[string]string{
		"GET /{$}": "index.html", "GET /app.js": "app.js", "GET /graph.js": "graph.js", "GET /style.css": "style.css", "GET /icon.svg": "icon.svg",
	} {
		mux.HandleFunc(path, s.asset(file))
	}
	mux.HandleFunc("GET /api/stream", s.authorized(s.stream))
	mux.HandleFunc("GET /api/graph", s.authorized(s.graph))
	mux.HandleFunc("POST /api/answer", s.authorized(s.answer))
	mux.HandleFunc("POST /api/lock", s.authorized(s.lock))
	return s.guard(mux)
}

// guard refuses what no page of ours asks, and says to the browser what ours may.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", contentPolicy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cache-Control", "no-store")
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.limits.send)) // else the connection is broken anyway
		origin, site := r.Header.Values("Origin"), r.Header.Get("Sec-Fetch-Site")
		switch {
		case !localHost(r.Host):
			fail(w, http.StatusMisdirectedRequest, "this page is at localhost, 127.0.0.1 or [::1], under no other name")
		case len(origin) > 1 || len(origin) == 1 && origin[0] != "http://"+r.Host || !slices.Contains([]string{"", "none", "same-origin"}, site):
			fail(w, http.StatusForbidden, "another site's page asked for this")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// localHost tells whether a Host header names this host as nobody's DNS can.
func localHost(host string) bool {
	name := host
	if n, port, err := net.SplitHostPort(host); err == nil {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return false
		}
		name = n
	} else if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		name = host[1 : len(host)-1]
	}
	if name == "localhost" {
		return true
	}
	address, err := netip.ParseAddr(name)
	return err == nil && address.IsLoopback() && address.Zone() == ""
}

// authorized asks for the token. It is in a header that a browser sends for nobody but the
// page that has it.
func (s *Server) authorized(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		token, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !found || subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) != 1 {
			fail(w, http.StatusUnauthorized, "the token is missing or of another run: open the address that \"actplane web\" has printed")
			return
		}
		next(w, r)
	}
}

func (s *Server) asset(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		text, err := assets.ReadFile("assets/" + name)
		if err != nil {
			fail(w, http.StatusInternalServerError, err.Error())
			return
		}
		kinds := map[string]string{"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
		w.Header().Set("Content-Type", kinds[name[strings.LastIndexByte(name, '.')+1:]]+"; charset=utf-8")
		_, _ = w.Write(text) // who has gone does not read
	}
}

// answerBody is what the page sends.
type answerBody struct {
	ID string `json:"id"` // of the request, or the scope
	// Seen is the state of it that was on the screen.
	Seen    string `json:"seen"`
	What    string `json:"what"` // "once", "ten-minutes", "deny" or "revoke"; "lock" or "unlock"
	Because string `json:"because"`
}

// sentByPage reads what the page itself has sent; if it has not, the call is over.
func (s *Server) sentByPage(w http.ResponseWriter, r *http.Request) (body answerBody, ok bool) {
	if len(r.Header.Values("Origin")) != 1 || r.Header.Get("Content-Type") != "application/json" {
		fail(w, http.StatusForbidden, "an answer comes from the page itself, as JSON")
		return body, false
	}
	body, err := readAnswer(http.MaxBytesReader(w, r.Body, s.limits.body))
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
	}
	return body, err == nil
}

// lock locks a scope, or unlocks it, if it is still as it was on the screen.
func (s *Server) lock(w http.ResponseWriter, r *http.Request) {
	body, ok := s.sentByPage(w, r)
	if !ok {
		return
	}
	now := s.options.Source.View().Scope(body.ID)
	unlock := body.What == "unlock"
	switch {
	case !unlock && body.What != "lock":
		fail(w, http.StatusBadRequest, "what is to become of the scope is not known")
		return
	case now == nil || lockSeen(now) != body.Seen || unlock != (now.Lock != nil):
		fail(w, http.StatusConflict, "the scope has changed meanwhile; nothing was done")
		return
	}
	var lock *api.Lock
	var err error
	if unlock {
		lock, err = s.options.Source.Unlock(r.Context(), &api.UnlockRequest{Scope: now.Id, By: s.options.Answers()})
	} else {
		lock, err = s.options.Source.Lockdown(r.Context(), &api.LockdownRequest{Scope: now.Id, Because: body.Because, By: s.options.Answers()})
	}
	if err != nil {
		fail(w, http.StatusBadGateway, err.Error())
		return
	}
	reply(w, http.StatusOK, map[string]string{"id": now.Id, "done": console.LockText(lock, unlock)})
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request) {
	body, ok := s.sentByPage(w, r)
	if !ok {
		return
	}
	send, known := s.senders(body)[body.What]
	if !known {
		fail(w, http.StatusBadRequest, "what is to be answered is not known")
		return
	}
	if now := s.options.Source.View().Request(body.ID); now == nil || seenOf(now) != body.Seen {
		fail(w, http.StatusConflict, "the request has changed meanwhile; nothing was answered")
		return
	}
	answered, err := send(r.Context())
	if err != nil {
		fail(w, http.StatusBadGateway, err.Error())
		return
	}
	reply(w, http.StatusOK, map[string]string{"id": answered.Id, "state": answered.State, "done": plain.Text(answered.Id + " is " + answered.State + ".")})
}

// senders are what can be said of a request.
func (s *Server) senders(body answerBody) map[string]func(context.Context) (*api.Request, error) {
	by := s.options.Answers()
	answer := func(request *api.AnswerRequest) func(context.Context) (*api.Request, error) {
		request.Id, request.By = body.ID, by
		return func(ctx context.Context) (*api.Request, error) { return s.options.Source.Answer(ctx, request) }
	}
	return map[string]func(context.Context) (*api.Request, error){
		"once":        answer(&api.AnswerRequest{Count: 1}),
		"ten-minutes": answer(&api.AnswerRequest{ForMs: (10 * time.Minute).Milliseconds()}),
		"deny":        answer(&api.AnswerRequest{Denied: true, ScopeLifetime: true, Because: body.Because}),
		"revoke": func(ctx context.Context) (*api.Request, error) {
			return s.options.Source.Revoke(ctx, &api.RevokeRequest{Id: body.ID, By: by})
		},
	}
}

func readAnswer(from io.Reader) (answerBody, error) {
	var body answerBody
	decoder := json.NewDecoder(from)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&body); err != nil {
		return body, fmt.Errorf("read the answer: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return body, errors.New("read the answer: there is more behind it")
	}
	if utf8.RuneCountInString(body.Because) > maxBecause {
		return body, fmt.Errorf("the reason has more than %d characters", maxBecause)
	}
	return body, nil
}

func (s *Server) graph(w http.ResponseWriter, r *http.Request) {
	id, err := strconv.ParseUint(r.URL.Query().Get("row"), 10, 64)
	if err != nil {
		fail(w, http.StatusBadRequest, "row is a number")
		return
	}
	for _, row := range s.options.Source.View().Rows {
		if row.ID == id {
			reply(w, http.StatusOK, graphOf(s.options.Source.Graph(r.Context(), row.Event, s.options.Zone)))
			return
		}
	}
	fail(w, http.StatusNotFound, "the event is no longer kept")
}

func fail(w http.ResponseWriter, status int, sentence string) {
	reply(w, status, map[string]string{"error": sentence})
}

func reply(w http.ResponseWriter, status int, value any) {
	text, err := feedback.EncodeJSON(value)
	if err != nil {
		status, text = http.StatusInternalServerError, []byte(`{"error":"the answer cannot be written"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text) // who has gone does not read
}
