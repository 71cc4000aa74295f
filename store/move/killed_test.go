package move_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/internal/pgtest"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/move"
	"github.com/rendezvous-events/rendezvous/store/postgres"
	"github.com/rendezvous-events/rendezvous/store/sqlite"
)

// The variables make this test binary play a process that copies until it is killed.
const (
	copyFrom = "RDV_MOVE_FROM"
	copyTo   = "RDV_MOVE_TO"
)

func TestMain(m *testing.M) {
	if from := os.Getenv(copyFrom); from != "" {
		fmt.Println(copyAlone(from, os.Getenv(copyTo)))
		return
	}
	goleak.VerifyTestMain(pgtest.WithCluster(m))
}

// copyAlone copies a few rows at a time and tells of every step.
func copyAlone(from, to string) (move.Report, error) {
	ctx := context.Background()
	source, err := openAlone(ctx, from)
	if err != nil {
		return nil, err
	}
	target, err := openAlone(ctx, to)
	if err != nil {
		return nil, err
	}
	report, err := move.Copy(ctx, source, target, move.Options{From: from, To: to, Rows: 2, Watch: func(p move.Progress) { fmt.Println(p) }})
	if err == nil {
		err = source.Close()
	}
	if err == nil {
		err = target.Close()
	}
	return report, err
}

func openAlone(ctx context.Context, where string) (backend.Backend, error) {
	if strings.HasPrefix(where, "postgres:") {
		return postgres.Open(ctx, postgres.Config{URL: where, Shards: shards, Copying: true})
	}
	return sqlite.Open(ctx, sqlite.Config{Dir: where, Clock: clock.System, Shards: shards, Copying: true})
}

// killedAfter starts a copy and kills its process after so many steps, wherever it is by then. It answers the last line of one that ended before.
func killedAfter(t *testing.T, from, to string, steps int) (last string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), copyFrom+"="+from, copyTo+"="+to)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); steps-- {
		if last = lines.Text(); steps == 0 {
			_ = cmd.Process.Kill() // it may have ended
		}
	}
	_ = cmd.Wait()
	return last
}

// A copy that is killed again and again, wherever it is, ends as one that was left alone, in both directions.
func TestACopyGoesOnAfterAKill(t *testing.T) {
	t.Parallel()
	from, _, _ := filled(t)
	here, back, url := t.TempDir(), filepath.Join(t.TempDir(), "back"), migrated.Database(t)
	source := embedded(t, here, now())
	want := copied(t, from, source)
	closed(t, source)
	for _, way := range []struct{ from, to string }{{here, url}, {url, back}} {
		kills, last := 0, ""
		for !strings.HasPrefix(last, "map[") {
			if kills++; kills > 100 || strings.Contains(last, "invalid") {
				t.Fatal(last)
			}
			last = killedAfter(t, way.from, way.to, rand.N(10+10*kills))
		}
		t.Logf("%d kills", kills-1)
		if kills < 3 {
			t.Errorf("only %d kills", kills-1)
		}
	}
	for where, b := range map[string]backend.Backend{"postgres": server(t, url), "sqlite": embedded(t, back, now())} {
		to := inMemory(now())
		t.Log(where)
		same(t, want, copied(t, b, to))
		closed(t, b)
	}
}
