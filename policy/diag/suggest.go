// SPDX-License-Identifier: Apache-2.0

package diag

import "strings"

// maxSuggest bounds the words that are compared.
const maxSuggest = 64

// Suggest returns the candidate that word is most likely a misspelling of, or
// "". Letter case counts less than letters.
func Suggest(word string, candidates []string) string {
	if word == "" || len(word) > maxSuggest {
		return ""
	}
	best, bestDistance := "", max(1, len(word)/3)+1
	for _, c := range candidates {
		if c == word || len(c) > maxSuggest {
			continue
		}
		d := distance(strings.ToLower(word), strings.ToLower(c))
		if d < bestDistance && d < len(c) {
			best, bestDistance = c, d
		}
	}
	return best
}

// distance is the number of insertions, deletions, replacements and swaps of
// neighbours that lead from a to b.
func distance(a, b string) int {
	prev2, prev, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], prev2[j-2]+1)
			}
		}
		prev2, prev, row = prev, row, prev2
	}
	return prev[len(b)]
}
