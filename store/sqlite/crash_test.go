package sqlite_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	zombie "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store/sqlite"
	"github.com/rendezvous-events/rendezvous/store/storetest"
)

// The variables make this test binary play the process that is killed: it works on the store in a directory until then.
const (
	crashDir  = "RDV_SQLITE_CRASH_DIR"
	crashLife = "RDV_SQLITE_CRASH_LIFE"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		fmt.Fprintln(os.Stderr, work(dir, os.Getenv(crashLife)))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// work plays meetings for ever and tells on the standard output what was acknowledged, one line each.
func work(dir, life string) error {
	b, err := sqlite.Open(bg, sqlite.Config{Dir: dir})
	if err != nil {
		return err
	}
	if often, _ := strconv.ParseInt(life, 10, 64); often%2 == 1 {
		b.FoldOften() // the kill comes while the WAL is folded, or begins anew
	}
	var mu sync.Mutex
	l, err := newLoad(b, life, func(what string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Println(what)
	})
	if err != nil {
		return err
	}
	failed := make(chan error)
	for range 8 {
		go func() {
			for {
				if err := l.step(bg); err != nil {
					failed <- err
					return
				}
			}
		}()
	}
	return <-failed
}

// acknowledged is how to find all that may have been acknowledged of a kind.
var acknowledged = map[string]string{
	"event":  `SELECT id FROM events`,
	"wait":   `SELECT substr(run_id, 3) FROM history WHERE kind = 'wait.registered'`,
	"answer": `SELECT e.id FROM events e JOIN history h ON h.tenant = e.tenant AND h.workflow_id = e.workflow_id AND h.seq = e.seq WHERE h.closes`,
}

// missing are the lines of told that do not stand exactly once.
func missing(t *testing.T, conn *zombie.Conn, told []string) (lines []string) {
	t.Helper()
	stands := map[string]int{}
	for kind, sql := range acknowledged {
		err := sqlitex.ExecuteTransient(conn, sql, &sqlitex.ExecOptions{ResultFunc: func(stmt *zombie.Stmt) error {
			stands[kind+" "+stmt.ColumnText(0)]++
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, line := range told {
		if stands[line] != 1 {
			lines = append(lines, line)
		}
	}
	return lines
}

// TestKilledUnderLoad: whenever the process is killed, what it acknowledged is there, no law is broken, and the next process goes on. A kill loses nothing
// that was written to a file, so this is about what is written when; [TestThePowerIsCut] is about what was synced.
func TestKilledUnderLoad(t *testing.T) {
	rounds := max(storetest.Rounds(t)/5, 2)
	var dir string
	total := 0
	for round := range rounds {
		if round%20 == 0 { // so that judging it stays cheap
			dir = t.TempDir()
		}
		told := killOnce(t, dir, strconv.Itoa(round))
		conn := lawful(t, dir)
		if lost := missing(t, conn, told); len(lost) > 0 {
			t.Errorf("round %d: acknowledged and not there once: %v", round, lost)
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
		total += len(told)
		if t.Failed() {
			return
		}
	}
	if total < rounds {
		t.Errorf("%d acknowledgements in %d rounds: too few to prove anything", total, rounds)
	}
	t.Logf("%d rounds, %d acknowledgements", rounds, total)
}

// killOnce lets a process work for a moment, kills it, and answers what it told whole.
func killOnce(t *testing.T, dir, life string) (told []string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), crashDir+"="+dir, crashLife+"="+life)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	first, err := lines.ReadString('\n') // it works now
	if err != nil {
		t.Fatalf("the process told nothing: %v, %v", err, cmd.Wait())
	}
	told = append(told, strings.TrimSpace(first))
	killed := make(chan error, 1)
	go func() {
		_ = clock.Sleep(bg, clock.System, time.Duration(rand.IntN(150_000))*time.Microsecond)
		killed <- cmd.Process.Kill()
	}()
	for {
		line, err := lines.ReadString('\n')
		if err != nil { // a line cut short was perhaps not acknowledged
			break
		}
		told = append(told, strings.TrimSpace(line))
	}
	if err := <-killed; err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	return told
}

// copyFile copies up to n bytes of a file; n < 0 is all.
func copyFile(t *testing.T, to, from string, n int64) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	var r io.Reader = in
	if n >= 0 {
		r = io.LimitReader(in, n)
	}
	if _, err := io.Copy(out, r); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestThePowerIsCut: the WAL is cut at every frame, where the disk had it when the power went, and within frames, as a torn write leaves it. What is opened
// then is the store as it stood after some commit: no law is broken, and what was acknowledged before that commit is there.
func TestThePowerIsCut(t *testing.T) {
	dir, c := t.TempDir(), clock.System
	b := open(t, dir, c)
	var told []string
	var sizes []int64 // of the WAL when each was acknowledged: so much was synced
	wal := filepath.Join(dir, "rendezvous.db-wal")
	l, err := newLoad(b, "cut", func(what string) {
		info, err := os.Stat(wal)
		if err != nil {
			t.Error(err)
			return
		}
		told, sizes = append(told, what), append(sizes, info.Size())
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 12 {
		if err := l.step(bg); err != nil {
			t.Fatal(err)
		}
	}
	saved := t.TempDir()
	copyFile(t, filepath.Join(saved, "db"), filepath.Join(dir, "rendezvous.db"), -1)
	copyFile(t, filepath.Join(saved, "wal"), wal, -1)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	const header, frame = 32, 24 + 4096
	whole, err := os.Stat(filepath.Join(saved, "wal"))
	if err != nil {
		t.Fatal(err)
	}
	if whole.Size() < 50*frame {
		t.Fatalf("a WAL of %d bytes proves little", whole.Size())
	}
	var cuts []int64
	stride := int64(max(1000/storetest.Rounds(t), 1)) // every frame in the thorough run, some of them in the daily one
	for at := header + rand.Int64N(stride)*frame; at <= whole.Size(); at += stride * frame {
		cuts = append(cuts, at)
	}
	for range max(storetest.Rounds(t)/10, 10) {
		cuts = append(cuts, rand.Int64N(whole.Size()))
	}
	for _, at := range cuts {
		t.Run(fmt.Sprint("at ", at), func(t *testing.T) {
			again := t.TempDir()
			copyFile(t, filepath.Join(again, "rendezvous.db"), filepath.Join(saved, "db"), -1)
			copyFile(t, filepath.Join(again, "rendezvous.db-wal"), filepath.Join(saved, "wal"), at)
			if err := sqlite.Migrate(t.Context(), again); err != nil { // the power may have gone between two versions of the schema
				t.Fatal(err)
			}
			reopened(t, again, told, sizes, at)
		})
	}
	t.Run("within a checkpoint", func(t *testing.T) {
		// A checkpoint copies pages from the WAL to the file in its order; the power goes when some are there, some are torn, and the WAL is whole.
		again := t.TempDir()
		db := filepath.Join(again, "rendezvous.db")
		copyFile(t, db, filepath.Join(saved, "db"), -1)
		copyFile(t, filepath.Join(again, "rendezvous.db-wal"), filepath.Join(saved, "wal"), -1)
		tearPages(t, db, filepath.Join(saved, "wal"), header, frame)
		reopened(t, again, told, sizes, whole.Size())
	})
}

// tearPages writes half of the pages of a WAL over those of the database.
func tearPages(t *testing.T, db, wal string, header, frame int64) {
	t.Helper()
	text, err := os.ReadFile(wal)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(db, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for at := header; at+frame <= int64(len(text)); at += frame {
		number := int64(binary.BigEndian.Uint32(text[at:]))
		if rand.IntN(2) == 0 {
			continue
		}
		page := text[at+24 : at+frame]
		if _, err := file.WriteAt(page[:1+rand.IntN(len(page))], (number-1)*int64(len(page))); err != nil {
			t.Fatal(err)
		}
	}
}

// reopened judges what a cut left, and works on it.
func reopened(t *testing.T, dir string, told []string, sizes []int64, cut int64) {
	t.Helper()
	if cut >= sizes[0] { // before, there may be no tables yet
		conn := lawful(t, dir)
		synced := 0
		for synced < len(told) && sizes[synced] <= cut {
			synced++
		}
		if lost := missing(t, conn, told[:synced]); len(lost) > 0 {
			t.Errorf("synced before %d and not there once: %v", cut, lost)
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
	}
	b := open(t, dir, clock.System)
	l, err := newLoad(b, "after", func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		if err := l.step(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := lawful(t, dir).Close(); err != nil {
		t.Fatal(err)
	}
}
