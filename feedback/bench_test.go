// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"context"
	"testing"
)

// What a request costs the engine at most: a full page out of a full log.
func BenchmarkFullPage(b *testing.B) {
	scope := newFakeScope()
	for range LogSize {
		scope.Append(push())
	}
	server := NewServer(scope, Options{})
	for b.Loop() {
		page, err := server.next(Query{All: true}, scope.peer)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := EncodeJSON(page); err != nil {
			b.Fatal(err)
		}
	}
}

// From an item to the answer of a client that waits for it.
func BenchmarkWaitToAnswer(b *testing.B) {
	scope := newFakeScope()
	server := NewServer(scope, Options{})
	for b.Loop() {
		after := scope.Last()
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = scope.Wait(context.Background(), after)
			_, _ = server.next(Query{All: true, After: after}, scope.peer)
		}()
		scope.Append(push())
		<-done
	}
}
