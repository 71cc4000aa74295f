package pgtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
)

// programs are the server programs of one installation.
type programs struct {
	initdb   string
	postgres string
}

// installationGlobs are the folders where packages put the server programs outside PATH: Debian, Red Hat's upstream packages, Homebrew (both
// prefixes, plain and versioned), Postgres.app.
var installationGlobs = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/opt/homebrew/opt/postgresql*/bin",
	"/usr/local/opt/postgresql*/bin",
	"/home/linuxbrew/.linuxbrew/opt/postgresql*/bin",
	"/Applications/Postgres.app/Contents/Versions/*/bin",
}

// findPrograms looks in PATH, then in the known folders, the newest version first. Both programs must stand in one folder, because initdb
// runs the postgres beside it.
func findPrograms(path string, globs []string) (programs, bool) {
	for _, dir := range append(programsInPath(path), installed(globs)...) {
		p := programs{initdb: filepath.Join(dir, "initdb"), postgres: filepath.Join(dir, "postgres")}
		if executable(p.initdb) && executable(p.postgres) {
			return p, true
		}
	}
	return programs{}, false
}

// programsInPath resolves links: an initdb linked into a folder of PATH has its postgres beside the link's target.
func programsInPath(path string) []string {
	var dirs []string
	for _, dir := range filepath.SplitList(path) {
		if target, err := filepath.EvalSymlinks(filepath.Join(dir, "initdb")); err == nil {
			dirs = append(dirs, filepath.Dir(target))
		}
	}
	return dirs
}

func installed(globs []string) []string {
	var all []string
	for _, glob := range globs {
		dirs, _ := filepath.Glob(glob) // the patterns are constants, so the only possible error cannot happen
		sort.SliceStable(dirs, func(i, j int) bool { return version(dirs[i]) > version(dirs[j]) })
		all = append(all, dirs...)
	}
	return all
}

// version reads the first number in the folder above bin: 15 of /usr/lib/postgresql/15/bin. None is 0, and so comes last.
func version(bin string) float64 {
	name := filepath.Base(filepath.Dir(bin))
	digits := strings.TrimLeft(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ@-_")
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return 0
	}
	return n
}

func executable(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

func inPath(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}
