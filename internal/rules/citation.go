package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// citations maps a rule to the places that cite it, each once, in the order of the files.
type citations map[number][]string

// A citation is EV-12, EV12 or EV_12, not part of a longer upper-case word (CPU-1), maybe followed by the end of a range: EV-1..EV-3, EV-1..3, EV-1–EV-3.
var citation = func() *regexp.Regexp {
	kind := "(" + strings.Join(prefixes, "|") + ")"
	return regexp.MustCompile(`(?:^|[^A-Z])` + kind + `[-_]?([0-9]+)(?:(?:\.\.+|–)(?:` + kind + `[-_]?)?([0-9]+))?`)
}()

// widest is the longest range that is believed; a longer one is a typing error.
const widest = 150

// readCitations looks in every _test.go file and in the battery. This command's own tests are full of numbers that prove nothing.
func readCitations(root string) (citations, error) {
	cited := citations{}
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if entry.IsDir() {
			if name == "internal/rules" || name != "." && strings.HasPrefix(entry.Name(), ".") {
				return filepath.SkipDir
			}
			return nil
		}
		if !mayCite(name) {
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		return cited.add(name, text)
	})
	if err != nil {
		return nil, fmt.Errorf("looking for citations: %w", err)
	}
	return cited, nil
}

func mayCite(name string) bool {
	return strings.HasSuffix(name, "_test.go") ||
		strings.HasSuffix(name, ".go") && strings.HasPrefix(name, "store/storetest/")
}

// add finds the citations of one file.
func (c citations) add(name string, text []byte) error {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, m := range citation.FindAllSubmatchIndex(text, -1) {
		numbers, err := expand(text, m)
		if err != nil {
			return fmt.Errorf("%s:%d: %w", name, lineOf(text, m[2]), err)
		}
		at := place(name, file, set, text, m[2])
		for _, n := range numbers {
			if !slices.Contains(c[n], at) {
				c[n] = append(c[n], at)
			}
		}
	}
	return nil
}

// expand answers every number of a match of citation.
func expand(text []byte, m []int) ([]number, error) {
	group := func(i int) string {
		if m[2*i] < 0 {
			return ""
		}
		return string(text[m[2*i]:m[2*i+1]])
	}
	first, err := strconv.Atoi(group(2))
	if err != nil {
		return nil, err
	}
	last := first
	if group(4) != "" {
		if last, err = strconv.Atoi(group(4)); err != nil {
			return nil, err
		}
	}
	if other := group(3); other != "" && other != group(1) || last < first || last-first > widest {
		return nil, fmt.Errorf("%q is no range of rules", strings.TrimSpace(string(text[m[2]:m[1]])))
	}
	var numbers []number
	for n := first; n <= last; n++ {
		numbers = append(numbers, number{group(1), n})
	}
	return numbers, nil
}

// place names the function that holds the citation, its comment included, as folder.Function; outside of functions, the file and line.
func place(name string, file *ast.File, set *token.FileSet, text []byte, offset int) string {
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		from := f.Pos()
		if f.Doc != nil {
			from = f.Doc.Pos()
		}
		if set.Position(from).Offset <= offset && offset < set.Position(f.End()).Offset {
			return path.Dir(name) + "." + f.Name.Name
		}
	}
	return name + ":" + strconv.Itoa(lineOf(text, offset))
}

func lineOf(text []byte, offset int) int {
	return 1 + strings.Count(string(text[:offset]), "\n")
}
