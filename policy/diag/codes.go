// SPDX-License-Identifier: Apache-2.0

package diag

// Code names a kind of diagnostic. Codes are stable: they keep their meaning,
// and one that is no longer used is not given away again. docs/language.md
// explains each.
type Code string

// The file.
const (
	NotUTF8       Code = "P001"
	ControlChar   Code = "P002"
	TooLarge      Code = "P003"
	BadYAML       Code = "P004"
	WrongType     Code = "P005"
	UnknownKey    Code = "P006"
	DuplicateKey  Code = "P007"
	BadVersion    Code = "P008"
	TwoPolicies   Code = "P009"
	AliasBomb     Code = "P010"
	BadLimit      Code = "P011"
	BadWorkspace  Code = "P012"
	MixedDomains  Code = "P013"
	UnknownName   Code = "P014"
	BadDisable    Code = "P015"
	DomainCycle   Code = "P016"
	NoDomain      Code = "P017"
	EmptyBody     Code = "P018"
	BadMode       Code = "P019"
	FoldedComment Code = "P020"
)

// The syntax of the policy text.
const (
	Unexpected         Code = "P101"
	UnterminatedString Code = "P102"
	BadCharacter       Code = "P103"
	UnknownWord        Code = "P104"
	ReservedWord       Code = "P105"
	EmptyRule          Code = "P106"
	TooDeep            Code = "P107"
	ClauseAfterBecause Code = "P108"
	BadNumber          Code = "P109"
	BadDuration        Code = "P110"
)

// What names and patterns mean.
const (
	DuplicateRule    Code = "P201"
	WrongKind        Code = "P202"
	UndeclaredLabel  Code = "P203"
	ExitsOnNonExec   Code = "P204"
	BadGateEvent     Code = "P205"
	ArgsOnNonExec    Code = "P206"
	BadGlob          Code = "P207"
	NeverMatches     Code = "P208"
	BadAddress       Code = "P209"
	BadPort          Code = "P210"
	UnknownSet       Code = "P211"
	NotExpanded      Code = "P212"
	OuterLabel       Code = "P213"
	SourceOfEndorsed Code = "P214"
	DuplicateDefault Code = "P215"
	NoContents       Code = "P216"
)

// Warnings.
const (
	LabelNeverProduced Code = "P301"
	MixedAndOr         Code = "P302"
	ClauseNeverMatches Code = "P303"
	RepeatedClause     Code = "P304"
	AssumedWorkspace   Code = "P305"
	EmptyPolicy        Code = "P306"
	NothingToLift      Code = "P307"
	OtherPlace         Code = "P308"
	WritableGate       Code = "P309"
	LooksLikeRegex     Code = "P310"
	NoEffect           Code = "P311"
	SpacedProgram      Code = "P312"
	DirectoryAlone     Code = "P313"
	OddBackslash       Code = "P314"
	Misleading         Code = "P315"
	ScriptGate         Code = "P316"
	FolderGate         Code = "P317"
)

// Limits, and what is not built yet. NotSupported is an error where a policy is
// to be enforced and for words that nothing gives a meaning yet; where a policy
// is only checked it warns of what the engine cannot enforce.
const (
	OverLimit    Code = "P401"
	NotSupported Code = "P501"
	NotAtRunTime Code = "P502"
)

// Codes returns all codes with one line about each, in order.
func Codes() []struct {
	Code  Code
	Title string
} {
	return []struct {
		Code  Code
		Title string
	}{
		{NotUTF8, "the file is not UTF-8"},
		{ControlChar, "a control character"},
		{TooLarge, "the file is too large"},
		{BadYAML, "the file is not YAML"},
		{WrongType, "a value of the wrong type"},
		{UnknownKey, "an unknown key"},
		{DuplicateKey, "a key that is there twice"},
		{BadVersion, "an unknown version"},
		{TwoPolicies, "both policy and ifc"},
		{AliasBomb, "aliases that expand without bound"},
		{BadLimit, "a limit that makes no sense"},
		{BadWorkspace, "a workspace that is no absolute path"},
		{MixedDomains, "both a policy and domains"},
		{UnknownName, "a rule or domain that does not exist"},
		{BadDisable, "a domain disables what it cannot"},
		{DomainCycle, "domains that are their own parents"},
		{NoDomain, "several domains and no default"},
		{EmptyBody, "rules or domains without content"},
		{BadMode, "an unknown mode of a binding"},
		{FoldedComment, "a comment that takes in the lines that follow"},
		{Unexpected, "something else was expected here"},
		{UnterminatedString, "a string without its closing quote"},
		{BadCharacter, "a character that the language does not use"},
		{UnknownWord, "a word that the language does not know here"},
		{ReservedWord, "a word of the language used as a name"},
		{EmptyRule, "a rule without a clause"},
		{TooDeep, "parentheses nested too deep"},
		{ClauseAfterBecause, "a clause after because"},
		{BadNumber, "a number that is out of range"},
		{BadDuration, "a malformed duration"},
		{DuplicateRule, "two rules of one name"},
		{WrongKind, "a kind of object that the operation does not have"},
		{UndeclaredLabel, "a label that is not declared"},
		{ExitsOnNonExec, "exits after something other than exec"},
		{BadGateEvent, "an operation that after and since cannot name"},
		{ArgsOnNonExec, "argv tokens on something other than exec"},
		{BadGlob, "a pattern that is not a glob"},
		{NeverMatches, "a pattern that can never match"},
		{BadAddress, "a malformed address"},
		{BadPort, "a malformed port"},
		{UnknownSet, "an unknown address set"},
		{NotExpanded, "a pattern that counts on a shell"},
		{OuterLabel, "a transform of an outer layer's label"},
		{SourceOfEndorsed, "a source of an endorsed label"},
		{DuplicateDefault, "two defaults of one operation"},
		{NoContents, "target modified of something without contents"},
		{LabelNeverProduced, "a label that nothing produces"},
		{MixedAndOr, "and mixed with or"},
		{ClauseNeverMatches, "a clause that can never match"},
		{RepeatedClause, "a clause that is there twice"},
		{AssumedWorkspace, "relative patterns without a workspace"},
		{EmptyPolicy, "a policy that says nothing"},
		{NothingToLift, "an allow without a default"},
		{OtherPlace, "a pattern that points elsewhere because of the workspace"},
		{WritableGate, "a gate on a program that the container can write"},
		{LooksLikeRegex, "a pattern that looks like a regular expression"},
		{NoEffect, "a key that has no effect here"},
		{SpacedProgram, "a program and its arguments in one string"},
		{DirectoryAlone, "a directory without what is in it"},
		{OddBackslash, "a backslash that has no meaning"},
		{Misleading, "a pattern that is not what it looks like"},
		{ScriptGate, "a gate on the exit status of a script that becomes another program"},
		{FolderGate, "a gate that its own program makes stale"},
		{OverLimit, "more than the engine holds"},
		{NotSupported, "not supported by this version"},
		{NotAtRunTime, "what rules that are added to a running container cannot say"},
	}
}

// Severity returns what diagnostics of this code are: P3xx are warnings.
func (c Code) Severity() Severity {
	if len(c) > 1 && c[1] == '3' {
		return Warning
	}
	return Error
}
