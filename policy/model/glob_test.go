// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"strings"
	"testing"

	"github.com/actplane/actplane/policy/model"
	"github.com/actplane/actplane/policy/pattern"
)

// Stars that almost match cost no more than the product of the two lengths; tried
// one by one, these would take longer than the test may.
func TestManyStars(t *testing.T) {
	key := strings.Repeat("a", 200)
	for glob, mode := range map[string]pattern.Mode{
		strings.Repeat("*a", 20) + "b":               pattern.Name,
		strings.Repeat("*a*", 20) + "b":              pattern.Token,
		"/" + strings.Repeat("**a", 20) + "b":        pattern.Path,
		strings.Repeat("/**/a", 20) + "/b":           pattern.Path,
		"/" + strings.Repeat("*[ab]?", 20) + "/none": pattern.Path,
	} {
		text := key
		if mode == pattern.Path {
			text = strings.Repeat("/a", 100)
		}
		if model.Match(glob, text, mode) {
			t.Errorf("%s matches", glob)
		}
	}
}
