// Package outcome decides what follows from an attempt (push.md sections 6 to 8): the class of an answer, when the next attempt is, and when there is none. It is
// pure: instants, random numbers and limits come in, a [Decision] comes out.
package outcome
