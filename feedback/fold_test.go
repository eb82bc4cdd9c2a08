// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"fmt"
	"strings"
	"testing"
)

func pageOf(items ...Item) Page {
	var page Page
	for i, item := range items {
		item.Sequence = uint64(i + 1)
		page.Items = append(page.Items, newEntry(item))
		page.Cursor = item.Sequence
	}
	return page
}

func TestFoldCountsRepeats(t *testing.T) {
	other := push()
	other.Rule, other.Because = "other", "Not this."
	var items []Item
	for range 42 {
		items = append(items, push(), other)
	}
	got := Fold(pageOf(items...), 1900)
	want := push().Message() + " (and 41 more like it)\n" + other.Message() + " (and 41 more like it)"
	if got.Text != want || got.Cursor != 84 || got.Left != 0 {
		t.Errorf("got %+v\nwant %s", got, want)
	}
}

func TestFoldCountsWhatOneRuleDid(t *testing.T) {
	var items []Item
	for i := range 100 {
		item := push()
		item.Args = []string{"git", "push", fmt.Sprint(i)}
		items = append(items, item)
	}
	got := Fold(pageOf(items...), 1900)
	want := items[0].Message() + " (and 97 others by the same rule)\n" + items[1].Message() + "\n" + items[2].Message()
	if got.Text != want || got.Cursor != 100 || got.Left != 0 {
		t.Errorf("got %+v\nwant %s", got, want)
	}
}

// Every rule gets its words, in as many texts as it takes, in order, once.
func TestFoldDrains(t *testing.T) {
	var items []Item
	for i := range 60 {
		item := push()
		item.Rule = fmt.Sprintf("rule-%02d", i)
		items = append(items, item)
	}
	all := pageOf(items...)
	told := ""
	rest := all
	for rounds := 0; len(rest.Items) > 0; rounds++ {
		got := Fold(rest, 1900)
		if len(got.Text) > 1900 {
			t.Fatalf("text of %d bytes", len(got.Text))
		}
		covered := len(rest.Items) - got.Left
		if covered == 0 || rounds > 30 {
			t.Fatalf("no progress after %d rounds", rounds)
		}
		if got.Left > 0 != strings.Contains(got.Text, fmt.Sprintf("recorded %d more", got.Left)) {
			t.Errorf("%d left, told: %s", got.Left, got.Text)
		}
		if got.Cursor != rest.Items[covered-1].Sequence {
			t.Errorf("cursor %d after %d items", got.Cursor, covered)
		}
		told += got.Text + "\n"
		rest.Items = rest.Items[covered:]
	}
	at := -1
	for i := range items {
		name := fmt.Sprintf("%q", fmt.Sprintf("rule-%02d", i))
		if strings.Count(told, name) != 1 || strings.Index(told, name) < at {
			t.Errorf("%s is there %d times, or too early", name, strings.Count(told, name))
		}
		at = strings.Index(told, name)
	}
}

func TestFoldTellsOfLostAndRemaining(t *testing.T) {
	item := push()
	item.Lost = 7
	page := pageOf(item)
	page.Remaining = 3
	want := push().Message() + "\nActPlane lost the records of 7 more events." +
		"\nActPlane recorded 3 more; `actplane-guest feedback` prints them."
	if got := Fold(page, 1900); got.Text != want {
		t.Errorf("got %s\nwant %s", got.Text, want)
	}
}

func TestFoldNeverExceedsItsLimit(t *testing.T) {
	item := push()
	item.Because = strings.Repeat("word ", 1000)
	item.Object = strings.Repeat("\xff", 5000)
	for _, limit := range []int{400, 1000, 1900} {
		if got := Fold(pageOf(item, item, push()), limit); len(got.Text) > limit || got.Cursor == 0 {
			t.Errorf("limit %d: %d bytes, cursor %d", limit, len(got.Text), got.Cursor)
		}
	}
}
