package node_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/client"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/cloudevents"
	"github.com/rendezvous-events/rendezvous/internal/node"
	"github.com/rendezvous-events/rendezvous/internal/nodetest"
	"github.com/rendezvous-events/rendezvous/internal/pgtest"
	"github.com/rendezvous-events/rendezvous/wire"
)

// pair is what a wait of this test listens on.
type pair struct {
	Type string
	Key  rendezvous.Key
}

// feed is a file of events and its distinct (type, key) pairs in the order they first appear.
type feed struct {
	lines  []json.RawMessage
	events []rendezvous.Event
	pairs  []pair
}

// deliveries are 329 real webhook deliveries, found in RDV_SHARED or beside the repository; where they are absent, events made up in their shape stand in.
func deliveries(t *testing.T) feed {
	t.Helper()
	shared := os.Getenv("RDV_SHARED")
	if shared == "" {
		shared = filepath.Join("..", "..", "..", "shared")
	}
	raw, err := os.ReadFile(filepath.Join(shared, "data", "github-events.jsonl"))
	if err != nil {
		t.Logf("%v: running on made-up events of the same shape", err)
		return newFeed(t, madeUp())
	}
	f := newFeed(t, raw)
	if len(f.lines) != 329 || len(f.pairs) != 257 {
		t.Fatalf("%d events with %d pairs, want 329 and 257: is this the right file?", len(f.lines), len(f.pairs))
	}
	return f
}

func newFeed(t *testing.T, raw []byte) feed {
	t.Helper()
	var f feed
	known := map[pair]bool{}
	scan := bufio.NewScanner(bytes.NewReader(raw))
	scan.Buffer(nil, 4<<20)
	for scan.Scan() {
		line := bytes.Clone(scan.Bytes())
		m := cloudevents.DecodeObject(line)
		must(t, m.Err)
		f.lines, f.events = append(f.lines, line), append(f.events, m.Event)
		for _, k := range m.Event.Keys {
			if p := (pair{m.Event.Type, k}); !known[p] {
				known[p] = true
				f.pairs = append(f.pairs, p)
			}
		}
	}
	must(t, scan.Err())
	return f
}

// madeUp is 329 events of 40 types in 20 repositories, of which every third has an issue and every fifth a commit beside, some of them odd to read.
func madeUp() []byte {
	var b bytes.Buffer
	for i := range 329 {
		repository := fmt.Sprintf("octo-örg/repo-%d", i*i%20)
		var keys []string
		if i%3 == 0 {
			keys = append(keys, fmt.Sprintf("issue=%s#%d", repository, i%7))
		}
		if i%5 == 0 {
			keys = append(keys, fmt.Sprintf("commit=%07x", i%11), fmt.Sprintf("release=v1.%d%%2C 🚀", i%4))
		}
		e := map[string]any{
			"specversion": "1.0", "id": fmt.Sprint("e-", i), "source": "https://example.com/" + repository, "type": fmt.Sprint("com.example.t", i*7%40), "subject": repository,
			"datacontenttype": "application/json", "data": map[string]any{"n": i, "text": "line\u2028end"},
		}
		if len(keys) > 0 {
			e["rdvkeys"] = strings.Join(keys, ",")
		}
		line, _ := json.Marshal(e) // it is made of texts and numbers
		b.Write(append(line, '\n'))
	}
	return b.Bytes()
}

// model answers which wait each event meets, by M1..M3 and O1..O3 and nothing clever: as long as a pair is each other's first, it is made. Events and waits
// are given in the order of their numbers. No event here is targeted, expires or is erased, and no wait has a deadline or a source (M4, M5, M2).
func model(events []rendezvous.Event, waits []pair) map[int]int {
	meets := func(e rendezvous.Event, w pair) bool { return e.Type == w.Type && slices.Contains(e.Keys, w.Key) }
	waitOf, eventOf := map[int]int{}, map[int]int{}
	firstWait := func(e int) int {
		return slices.IndexFunc(indexes(len(waits)), func(w int) bool { _, taken := eventOf[w]; return !taken && meets(events[e], waits[w]) })
	}
	firstEvent := func(w int) int {
		return slices.IndexFunc(indexes(len(events)), func(e int) bool { _, taken := waitOf[e]; return !taken && meets(events[e], waits[w]) })
	}
	for again := true; again; {
		again = false
		for e := range events {
			if _, taken := waitOf[e]; taken {
				continue
			}
			if w := firstWait(e); w >= 0 && firstEvent(w) == e {
				waitOf[e], eventOf[w], again = w, e, true
			}
		}
	}
	return waitOf
}

func indexes(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func TestRealDeliveriesMeetExactlyWhomTheModelSays(t *testing.T) {
	t.Run("memory", func(t *testing.T) { meetDeliveries(t, func(*node.Config) {}) })
	t.Run("postgres", func(t *testing.T) {
		url := pgtest.Database(t)
		meetDeliveries(t, func(c *node.Config) { c.Store = url })
	})
}

func meetDeliveries(t *testing.T, change func(*node.Config)) {
	f := deliveries(t)
	n := nodetest.Start(t, change)
	c, err := client.New(client.Options{Tenant: "acme", URL: "http://" + n.HTTP, NATSURL: n.NATSURL})
	must(t, err)
	defer c.Close()

	half := len(f.pairs) / 2
	register(t, c, f.pairs, 0, half)
	put(t, c, f, wire.Accepted)
	register(t, c, f.pairs, half, len(f.pairs))
	settled(t, c)
	want := model(f.events, f.pairs)
	before := look(t, c, f)
	for i := range f.events {
		w, met := want[i]
		e := before.Events[i]
		switch {
		case !met && (e.State != rendezvous.EventLive || e.RunID != ""):
			t.Errorf("event %d is %s, met by %s %s; the model has nobody for it", i, e.State, e.RunID, e.Effect)
		case met && (e.State != rendezvous.EventConsumed || e.RunID != runOf(w)):
			t.Errorf("event %d is %s, met by %q; the model gives it to %s", i, e.State, e.RunID, runOf(w))
		}
	}
	answers := 0
	for w, records := range before.Histories {
		answers += checkHistory(t, f, want, w, records)
	}
	if open := len(before.Waits); answers != len(want) || open != len(f.pairs)-len(want) {
		t.Errorf("%d answers and %d open waits, want %d and %d", answers, open, len(want), len(f.pairs)-len(want))
	}
	t.Logf("%d events, %d waits, %d met", len(f.events), len(f.pairs), answers)

	put(t, c, f, wire.Duplicate)
	settled(t, c)
	if after := look(t, c, f); !reflect.DeepEqual(before, after) {
		t.Error("feeding the file again changed something")
	}
}

// checkHistory compares a wait's history with the model and answers how many answers it holds.
func checkHistory(t *testing.T, f feed, want map[int]int, w int, records []wire.Record) int {
	t.Helper()
	kinds := make([]rendezvous.Kind, len(records))
	for i, r := range records {
		kinds[i] = r.Kind
	}
	for e, met := range want {
		if met != w {
			continue
		}
		if !slices.Equal(kinds, []rendezvous.Kind{rendezvous.RunStarted, rendezvous.WaitRegistered, rendezvous.WaitAnswered}) {
			t.Errorf("wait %d: %v", w, kinds)
			return 0
		}
		var d rendezvous.WaitAnsweredData
		must(t, json.Unmarshal(records[2].Data, &d))
		payload, _, err := records[2].Payload.Bytes()
		must(t, err)
		if d.EventSource != f.events[e].Source || d.EventID != f.events[e].ID || d.Key == nil || *d.Key != f.pairs[w].Key || !bytes.Equal(payload, f.events[e].Payload) {
			t.Errorf("wait %d was answered by %s %s on %v, not by event %d whole", w, d.EventSource, d.EventID, d.Key, e)
		}
		return 1
	}
	if !slices.Equal(kinds, []rendezvous.Kind{rendezvous.RunStarted, rendezvous.WaitRegistered}) {
		t.Errorf("wait %d, which the model leaves open: %v", w, kinds)
	}
	return 0
}

func runOf(w int) string { return fmt.Sprintf("run-%03d", w) }

// register starts a run for each of the pairs from..to and registers its wait, one after the other.
func register(t *testing.T, c *client.Client, pairs []pair, from, to int) {
	t.Helper()
	for w := from; w < to; w++ {
		_, err := c.StartRun(t.Context(), wire.StartRun{WorkflowID: "w-" + runOf(w), RunID: runOf(w), Type: "listener"})
		must(t, err)
		_, err = c.RegisterWait(t.Context(), wire.RegisterWait{RunID: runOf(w), Effect: "meet", Type: pairs[w].Type, Keys: []rendezvous.Key{pairs[w].Key}})
		must(t, err)
	}
}

// put feeds the file through the request door, a hundred events a request.
func put(t *testing.T, c *client.Client, f feed, want string) {
	t.Helper()
	for part := range slices.Chunk(f.lines, 100) {
		results, err := c.PutEncoded(t.Context(), part)
		must(t, err)
		for _, r := range results {
			if r.Outcome != want {
				t.Errorf("%s %s: %s, want %s", r.Source, r.ID, r.Outcome, want)
			}
		}
	}
}

// settled returns when every notice of MATCH is worked.
func settled(t *testing.T, c *client.Client) {
	t.Helper()
	js, err := jetstream.New(c.NATS())
	must(t, err)
	s, err := js.Stream(t.Context(), "rdv_MATCH")
	must(t, err)
	for quiet, end := 0, time.Now().Add(nodetest.Patience); quiet < 3; clock.Sleep(context.Background(), clock.System, 20*time.Millisecond) {
		info, err := s.Info(t.Context())
		must(t, err)
		if quiet++; info.State.Msgs > 0 {
			quiet = 0
		}
		if time.Now().After(end) {
			t.Fatalf("%d notices stay in MATCH", info.State.Msgs)
		}
	}
}

// seen is everything a client can see of the feed.
type seen struct {
	Events    []wire.Event
	Waits     []wire.Wait
	Histories map[int][]wire.Record
}

func look(t *testing.T, c *client.Client, f feed) seen {
	t.Helper()
	s := seen{Histories: map[int][]wire.Record{}}
	number := int64(0)
	for i, e := range f.events {
		got, err := c.GetEvent(t.Context(), e.EventID, true)
		must(t, err)
		if got.Number <= number {
			t.Errorf("event %d has number %d, behind %d: not in the order of the file", i, got.Number, number)
		}
		number = got.Number
		s.Events = append(s.Events, got)
	}
	for w := range f.pairs {
		page, err := c.HistoryPage(t.Context(), wire.ReadHistory{WorkflowID: "w-" + runOf(w)})
		must(t, err)
		s.Histories[w] = page.Records
	}
	list, err := c.ListWaits(t.Context(), wire.ListWaits{Limit: 1000})
	must(t, err)
	s.Waits = list.Waits
	return s
}
