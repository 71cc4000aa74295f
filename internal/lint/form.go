package lint

import (
	"go/ast"
	"slices"
	"strings"
)

// longest is how many lines a file may have. One that is scrolled twice is two files; tests may be longer, as tables are.
const longest = 600

func checkSize(f File) []Finding {
	if f.Test() || f.Lines <= longest || ast.IsGenerated(f.Syntax) {
		return nil
	}
	return []Finding{f.finding(f.Syntax.Package, "%d lines, more than %d: make it two files", f.Lines, longest)}
}

// empty are names that fit everything and so tell nothing.
var empty = []string{"util", "utils", "common", "helper", "helpers", "manager", "managers", "impl"}

func checkName(f File) []Finding {
	name := strings.TrimSuffix(f.Syntax.Name.Name, "_test")
	if !slices.ContainsFunc(empty, func(e string) bool { return strings.HasSuffix(name, e) }) {
		return nil
	}
	return []Finding{f.finding(f.Syntax.Name.Pos(), "package %s: name it after what it does", name)}
}
