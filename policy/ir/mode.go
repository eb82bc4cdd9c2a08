// SPDX-License-Identifier: Apache-2.0

package ir

// OrKill tells whether an effect on an operation may be a kill, on a host whose tier
// cannot bring argv into memory (killedExec): where it is not there, an exec is refused
// by killing the process before the first instruction of the new program.
func OrKill(op Op, effect Effect, killedExec bool) bool {
	return killedExec && op == Exec && (effect == Block || effect == Ask)
}

// Mode is what an effect really is for an operation on a host, in a word or few, such as
// "block or kill".
func Mode(op Op, effect Effect, killedExec bool) string {
	if OrKill(op, effect, killedExec) {
		return effect.String() + " or kill"
	}
	return effect.String()
}
