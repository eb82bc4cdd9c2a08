// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Bounds of what a peer may ask for.
const (
	MaxWait        = 30 * time.Second
	MaxConsumer    = 128 // bytes of a consumer's name
	maxDepth       = 64
	maxQueryLength = 512
)

// Query is what GET /v1/feedback is asked.
type Query struct {
	// After is the cursor from which to go on. Not with a Consumer.
	After uint64
	// Consumer asks for what was not delivered to this consumer yet.
	Consumer string
	// Wait is how long to wait for an item, at most MaxWait.
	Wait time.Duration
	// All asks for the whole scope's items, not only the process tree's.
	All bool
	// Depth is how many ancestors above the caller the root of its tree is; a
	// negative one means as far up as is known.
	Depth int
}

// Encode is the query as part of a URL.
func (q Query) Encode() string {
	values := url.Values{}
	if q.After != 0 {
		values.Set("after", strconv.FormatUint(q.After, 10))
	}
	if q.Consumer != "" {
		values.Set("consumer", q.Consumer)
	}
	if q.Wait != 0 {
		values.Set("wait", q.Wait.String())
	}
	if q.All {
		values.Set("tree", "all")
	}
	if q.Depth >= 0 {
		values.Set("depth", strconv.Itoa(min(q.Depth, maxDepth)))
	}
	return values.Encode()
}

// parseQuery reads a URL's query; its errors are sentences for the peer, and
// hold nothing of what the peer sent but by quotation.
func parseQuery(raw string) (Query, error) {
	query := Query{Depth: -1}
	if len(raw) > maxQueryLength {
		return query, fmt.Errorf("the query is longer than %d bytes", maxQueryLength)
	}
	values, err := url.ParseQuery(raw)
	if err != nil {
		return query, errors.New("the query is not of the form name=value&name=value")
	}
	for name, given := range values {
		if len(given) != 1 {
			return query, fmt.Errorf("the parameter %s is given more than once", quote(name, maxNameShown))
		}
		if err := query.set(name, given[0]); err != nil {
			return query, err
		}
	}
	if query.Consumer != "" && values.Has("after") {
		return query, errors.New("after and consumer exclude each other: a consumer's cursor is kept here")
	}
	return query, nil
}

func (q *Query) set(name, value string) error {
	var err error
	switch name {
	case "after":
		if q.After, err = strconv.ParseUint(value, 10, 64); err != nil {
			return errors.New("after is not a cursor: a whole number, 0 or more")
		}
	case "wait":
		if q.Wait, err = time.ParseDuration(value); err != nil || q.Wait < 0 || q.Wait > MaxWait {
			return fmt.Errorf("wait is not a duration from 0s to %s, such as 500ms", MaxWait)
		}
	case "tree":
		if value != "self" && value != "all" {
			return errors.New("tree is neither self nor all")
		}
		q.All = value == "all"
	case "depth":
		depth, err := strconv.ParseUint(value, 10, 16)
		if err != nil || depth > maxDepth {
			return fmt.Errorf("depth is not a whole number from 0 to %d", maxDepth)
		}
		q.Depth = int(depth)
	case "consumer":
		if err := checkConsumer(value); err != nil {
			return err
		}
		q.Consumer = value
	default:
		return fmt.Errorf("there is no parameter %s; there are after, consumer, wait, tree and depth",
			quote(name, maxNameShown))
	}
	return nil
}

// checkConsumer refuses names that are no consumer's.
func checkConsumer(name string) error {
	odd := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._:-", r))
	}
	if name == "" || len(name) > MaxConsumer || strings.ContainsFunc(name, odd) {
		return fmt.Errorf("a consumer's name is 1 to %d of the characters A-Z a-z 0-9 . _ : -", MaxConsumer)
	}
	return nil
}
