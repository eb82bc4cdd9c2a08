// SPDX-License-Identifier: Apache-2.0

// Package archtest keeps the shape of the repository: which package may import
// which, where policy must build, and what every package and file says at its head.
//
// It is nothing but tests. They read "go list" and the files, so that a new
// package falls under the rules without being named here; one that no rule knows
// fails, and then the rule is to be written first.
package archtest
