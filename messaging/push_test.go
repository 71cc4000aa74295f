package messaging_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"sync"
	"testing"

	"github.com/rendezvous-events/rendezvous/messaging"
)

// heads are the push notices that a handler saw: the heads of each run, in the order they came.
type heads struct {
	mu  sync.Mutex
	of  map[string][]int64
	all int
}

func (h *heads) handle(_ context.Context, batch []messaging.PushNotice) []messaging.Outcome {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]messaging.Outcome, len(batch))
	for i, n := range batch {
		h.of[n.RunID] = append(h.of[n.RunID], n.Head)
		h.all++
		out[i] = messaging.Ack()
	}
	return out
}

func (h *heads) runs() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.of)
}

func pushes(runs int, head int64) []messaging.Notice {
	list := make([]messaging.Notice, runs)
	for i := range list {
		list[i] = messaging.PushNotice{Tenant: "acme", WorkflowID: fmt.Sprint("wf-", i), RunID: fmt.Sprint("r-", i), Head: head, Attempt: uint64(head)}
	}
	return list
}

// messaging.md section 2: notices of one run coalesce in the stream, whoever published them; those of others stay.
func TestPushNoticesOfARunCoalesce(t *testing.T) {
	p := newPlane(t)
	p.provision()
	for head := range 5 {
		p.publish(pushes(100, int64(head+1))...)
	}
	if n := p.stream("rdv_PUSH").State.Msgs; n != 100 {
		t.Errorf("the stream holds %d notices of 100 runs", n)
	}
	h := &heads{of: map[string][]int64{}}
	c, err := p.conn.ConsumePush(messaging.ConsumeOptions{}, h.handle)
	must(t, err)
	p.eventually("every run was noticed", func() bool { return h.runs() == 100 })
	p.eventually("PUSH is empty", func() bool { return p.stream("rdv_PUSH").State.Msgs == 0 })
	stop(t, c)
	for run, got := range h.of {
		if len(got) != 1 || got[0] != 5 {
			t.Errorf("%s: heads %v", run, got)
		}
	}
}

// A stream that is deleted is made again, the worker is told that notices may be lost, and later ones arrive.
func TestADeletedPushStreamIsMadeAgain(t *testing.T) {
	p := newPlane(t)
	p.provision()
	gaps := make(chan struct{}, 100)
	h := &heads{of: map[string][]int64{}}
	c, err := p.conn.ConsumePush(messaging.ConsumeOptions{Gap: func() { gaps <- struct{}{} }}, h.handle)
	must(t, err)
	<-gaps // at start
	must(t, p.conn.JetStream().DeleteStream(t.Context(), "rdv_PUSH"))
	<-gaps
	p.publish(pushes(50, 1)...)
	p.eventually("every run was noticed", func() bool { return h.runs() == 50 })
	stop(t, c)
}

// The subject of a run: its workflow's partition and its own hash, and nothing of its ids.
func TestPushSubjects(t *testing.T) {
	used := map[int]bool{}
	for i := range 1000 {
		workflow := fmt.Sprint("wf-", i)
		f := fnv.New64a()
		f.Write([]byte("acme\x00" + workflow))
		partition := messaging.PushPartition("acme", workflow)
		if want := int(f.Sum64() % 16); partition != want {
			t.Fatalf("%s: partition %d, want %d", workflow, partition, want)
		}
		used[partition] = true
	}
	if len(used) != messaging.Partitions {
		t.Errorf("1000 workflows use %d partitions", len(used))
	}
	sum := sha256.Sum256([]byte("acme\x00r.1 *"))
	if got, want := messaging.NamesOf("rdv").PushSubject(3, "acme", "r.1 *"), "rdv.push.3."+hex.EncodeToString(sum[:8]); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
