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
func (c *Conn) sendBatches(ctx context.Context, out []outgoing) []outgoing {
	groups, left := batches(out, c.names)
	for _, group := range groups {
		for len(group) > 0 {
			n := min(len(group), maxBatch)
			batch := group[:n]
			group = group[n:]
			if n == 1 || c.sendBatch(ctx, batch) != nil {
				left = append(left, batch...)
			}
		}
	}
	return left
}

// batches splits by stream, keeping order. What is left: messages for streams that take no batches (see provision.go), and repeats of a message
// id, since a batch with one is refused as a whole.
func batches(out []outgoing, n Names) (groups map[string][]outgoing, left []outgoing) {
	groups = map[string][]outgoing{}
	ids := make(map[string]bool, len(out))
	for _, o := range out {
		id := o.msg.Header.Get(nats.MsgIdHdr)
		if ids[id] || (o.stream != n.Match() && o.stream != n.Resume()) {
			left = append(left, o)
			continue
		}
		ids[id] = true
		groups[o.stream] = append(groups[o.stream], o)
	}
	return groups, left
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
