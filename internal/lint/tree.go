package lint

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Finding is one place that breaks a rule.
type Finding struct {
	File string // slash-separated, from the root of the tree
	Line int
	Text string
}

func (f Finding) String() string { return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Text) }

// File is one Go file of a tree.
type File struct {
	Name   string // slash-separated, from the root of the tree
	Lines  int
	Syntax *ast.File
	set    *token.FileSet
}

// Dir is the folder of the file, "." for the root.
func (f File) Dir() string { return path.Dir(f.Name) }

// Test tells whether only go test compiles the file.
func (f File) Test() bool { return strings.HasSuffix(f.Name, "_test.go") }

func (f File) finding(pos token.Pos, format string, args ...any) Finding {
	return Finding{File: f.Name, Line: f.set.Position(pos).Line, Text: fmt.Sprintf(format, args...)}
}

// Tree is the source of one module.
type Tree struct {
	Module string // the path that go.mod gives
	Files  []File
}

// Load reads the module at root: every Go file but those that the go command leaves out too (testdata, vendor, folders that begin with a dot or an
// underscore, modules inside).
func Load(root string) (Tree, error) {
	module, err := modulePath(filepath.Join(root, "go.mod"))
	if err != nil {
		return Tree{}, err
	}
	tree := Tree{Module: module}
	err = filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && file != root && leftOut(file):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(file, ".go"):
			return nil
		}
		parsed, err := parse(root, file)
		tree.Files = append(tree.Files, parsed)
		return err
	})
	if err != nil {
		return Tree{}, fmt.Errorf("reading the tree: %w", err)
	}
	return tree, nil
}

func leftOut(dir string) bool {
	name := filepath.Base(dir)
	if name == "testdata" || name == "vendor" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
		return true
	}
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

func parse(root, file string) (File, error) {
	name, err := filepath.Rel(root, file)
	if err != nil {
		return File{}, err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return File{}, err
	}
	set := token.NewFileSet()
	syntax, err := parser.ParseFile(set, file, text, parser.ParseComments)
	if err != nil {
		return File{}, err
	}
	return File{Name: filepath.ToSlash(name), Lines: bytes.Count(text, []byte("\n")), Syntax: syntax, set: set}, nil
}

func modulePath(gomod string) (string, error) {
	text, err := os.ReadFile(gomod)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if module, ok := strings.CutPrefix(line, "module "); ok {
			return strings.TrimSpace(module), nil
		}
	}
	return "", fmt.Errorf("%s names no module", gomod)
}

// Check applies every rule.
func Check(tree Tree) []Finding {
	found := checkArrows(tree)
	for _, f := range tree.Files {
		found = append(found, checkClock(f)...)
		found = append(found, checkSize(f)...)
		found = append(found, checkName(f)...)
	}
	slices.SortFunc(found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Text, b.Text))
	})
	return found
}

// within tells whether dir is one of the given folders or stands in one.
func within(dir string, folders ...string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool {
		return dir == folder || strings.HasPrefix(dir, folder+"/")
	})
}
