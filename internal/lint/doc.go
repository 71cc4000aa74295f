// Package lint checks what this repository asks of its own source and no common linter knows: who may read the wall clock, which package may import which,
// how long a file may be, and which names say nothing. Its tests check the whole tree; go test ./internal/lint is the command.
//
// A rule that is in the way is changed here, with the reason, and not stepped around.
package lint
