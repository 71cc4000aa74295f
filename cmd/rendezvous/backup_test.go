package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/rendezvous-events/rendezvous/internal/nodetest"
)

// serving starts `up` on a store, as a process of its own, and answers the address of its API when it serves.
func serving(t *testing.T, store string) (*exec.Cmd, string) {
	t.Helper()
	cmd, server, _ := greeting(t, store)
	return cmd, server
}

// greeting is serving, and answers what stands below the addresses too.
func greeting(t *testing.T, store string) (cmd *exec.Cmd, server, below string) {
	t.Helper()
	cmd = nodetest.Command(t, nil, "up", "--store", store, "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--nats-listen", "127.0.0.1:0")
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if at := listens.FindStringSubmatch(lines.Text()); at != nil {
			lines.Scan()
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return cmd, at[1], lines.Text()
		}
	}
	t.Fatal("it does not serve")
	return nil, "", ""
}

// producers send events until they are stopped, and tell which were acknowledged.
type producers struct {
	acks  chan string
	acked []string // those heard of
	stop  context.CancelFunc
	group sync.WaitGroup
}

func produce(ctx context.Context, server string) *producers {
	ctx, cancel := context.WithCancel(ctx)
	p := &producers{acks: make(chan string), stop: cancel}
	for w := range 4 {
		p.group.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				id := fmt.Sprintf("e-%d-%d", w, i)
				if !send(ctx, server, id) {
					continue
				}
				select {
				case p.acks <- id:
				case <-ctx.Done():
				}
			}
		})
	}
	return p
}

// until hears of n more acknowledged events, and answers all that it has heard of.
func (p *producers) until(t *testing.T, n int) []string {
	t.Helper()
	for range n {
		select {
		case id := <-p.acks:
			p.acked = append(p.acked, id)
		case <-t.Context().Done():
			t.Fatal("no events are acknowledged")
		}
	}
	return p.acked
}

func send(ctx context.Context, server, id string) bool {
	body := fmt.Sprintf(`{"specversion":"1.0","id":%q,"source":"urn:test","type":"t","rdvkeys":"order=1","datacontenttype":"application/json","data":{"x":%q}}`, id, strings.Repeat("x", 2000))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, server+"/v1/default/events", strings.NewReader(body))
	if err != nil {
		return false
	}
	req.Header.Set("Content-Type", "application/cloudevents+json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode < 300
}

// A store is backed up while another process writes to it, and after that process was killed: what was acknowledged before is in the backup, which is a store
// itself; and a store moves while nobody has it.
func TestBackupOfAStoreThatAnotherProcessUses(t *testing.T) {
	dir := t.TempDir()
	store, live, dead := "sqlite:"+filepath.Join(dir, "store"), filepath.Join(dir, "live"), filepath.Join(dir, "dead")
	up, server := serving(t, store)
	p := produce(t.Context(), server)
	u := &tool{t: t}
	before := p.until(t, 300)
	u.ok("it is sound", "backup", "--store", store, live)
	during := p.until(t, 100)
	u.fails(2, "is there already", "backup", "--store", store, live)
	u.fails(2, `in use by another process \(pid [0-9]+`, "migrate", "copy", store, "sqlite:"+filepath.Join(dir, "moved"))
	u.ok(`store +ok +sqlite is sound`, "doctor", "--server", server, "--store", store)
	must(t, up.Process.Kill())
	p.stop()
	p.group.Wait()
	_ = up.Wait() // killed
	u.env = []string{"RENDEZVOUS_STORE=" + store}
	u.ok("it is sound", "backup", dead)

	moved := "sqlite:" + filepath.Join(dir, "moved")
	r := u.run("migrate", "copy", store, moved)
	if r.code != 0 || !regexp.MustCompile(`events +[0-9]+ +[0-9a-f]{16}\n`).MatchString(r.out) || !strings.Contains(r.err, "reading the target, events: ") {
		t.Errorf("migrate copy: %+v", r)
	}
	u.fails(2, "is not empty", "migrate", "copy", store, moved)

	for copied, acked := range map[string][]string{"sqlite:" + live: before, "sqlite:" + dead: during, moved: p.acked} {
		again, at := serving(t, copied)
		v := &tool{t: t, env: []string{"RENDEZVOUS_SERVER=" + at}}
		for _, id := range []string{acked[0], acked[len(acked)/2], acked[len(acked)-1]} {
			v.ok("live", "event", "get", "urn:test", id)
		}
		v.ok("accepted", "event", "put", "--type", "t", "--source", "urn:test", "--id", "new")
		must(t, again.Process.Kill())
	}
}
