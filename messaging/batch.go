package messaging

import (
	"context"
	"encoding/json"
	"maps"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/rendezvous-events/rendezvous/clock"
)

// maxBatch is the most messages of one atomic batch; the server takes 1,000.
const maxBatch = 500

// The headers of an atomic batch: every message has the id and its number from 1, the last one commits.
const (
	headerBatchID       = "Nats-Batch-Id"
	headerBatchSequence = "Nats-Batch-Sequence"
	headerBatchCommit   = "Nats-Batch-Commit"
)

// sendBatches publishes what it can in atomic batches, one sync of the disk for each, and answers what is left for single publishing: too few
// for a batch, or a batch the server did not take (one message in it is known already, say). What may have been stored all the same is
// stored once, by its Nats-Msg-Id.
func (c *Conn) sendBatches(ctx context.Context, out []outgoing) (left []outgoing) {
	for _, group := range byStream(out) {
		for len(group) > 0 {
			n := min(len(group), maxBatch)
			batch := group[:n]
			group = group[n:]
			if n == 1 || !batchable(batch[0].stream, c.names) || c.sendBatch(ctx, batch) != nil {
				left = append(left, batch...)
			}
		}
	}
	return left
}

// batchable streams are made with AllowAtomicPublish on the embedded server.
func batchable(stream string, n Names) bool { return stream == n.Match() || stream == n.Resume() }

// byStream splits by stream, keeping order, and moves repeats of a message id out: a batch with one is refused as a whole.
func byStream(out []outgoing) [][]outgoing {
	at := map[string]int{}
	var groups [][]outgoing
	for _, o := range out {
		i, ok := at[o.stream]
		if !ok {
			i = len(groups)
			at[o.stream], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], o)
	}
	return groups
}

func (c *Conn) sendBatch(ctx context.Context, batch []outgoing) error {
	// Half of the time: should no answer come, the rest is for single publishing.
	ctx, cancel := clock.WithTimeout(ctx, c.deps.Clock, c.cfg.PublishTimeout/2)
	defer cancel()
	ctx, done := whileConnected(ctx, c.pub)
	defer done()
	id := nuid.Next()
	for i, o := range batch[:len(batch)-1] {
		if err := c.pub.PublishMsg(batchMessage(o.msg, id, i+1, false)); err != nil {
			return err
		}
	}
	reply, err := c.pub.RequestMsgWithContext(ctx, batchMessage(batch[len(batch)-1].msg, id, len(batch), true))
	if err != nil {
		return err
	}
	var ack struct {
		Error  *jetstream.APIError `json:"error"`
		Stream string              `json:"stream"`
		Count  int                 `json:"count"`
	}
	if err := json.Unmarshal(reply.Data, &ack); err != nil {
		return err
	}
	if ack.Error != nil {
		return ack.Error
	}
	if ack.Stream == "" || ack.Count != len(batch) {
		return jetstream.ErrInvalidJSAck
	}
	return nil
}

// batchMessage is m with the batch's headers; m stays as it is, for single publishing.
func batchMessage(m *nats.Msg, id string, sequence int, commit bool) *nats.Msg {
	h := make(nats.Header, len(m.Header)+3)
	maps.Copy(h, m.Header)
	h[headerBatchID] = []string{id}
	h[headerBatchSequence] = []string{strconv.Itoa(sequence)}
	if commit {
		h[headerBatchCommit] = []string{"1"}
	}
	return &nats.Msg{Subject: m.Subject, Header: h, Data: m.Data}
}
