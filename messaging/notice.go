package messaging

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strconv"

	"github.com/nats-io/nats.go"

	rendezvous "github.com/rendezvous-events/rendezvous"
)

// Notice is a message that says which row to look at: a [MatchNotice], a [ResumeNotice] or a [PushNotice].
type Notice interface {
	// message is the notice on the wire under the names n, and the stream it belongs to.
	message(ctx context.Context, n Names) (stream string, m *nats.Msg, err error)
}

// MatchNotice asks a delivery-worker to offer an event (Source and ID) or a wait (Run and Effect).
type MatchNotice struct {
	Tenant string `json:"tenant"`
	Source string `json:"source,omitempty"`
	ID     string `json:"id,omitempty"`
	Run    string `json:"run_id,omitempty"`
	Effect string `json:"effect,omitempty"`
	// Attempt tells this sending from earlier ones: within the dedup window of two minutes a notice of the same event or wait with the same
	// attempt is stored once, so a repeat that is meant needs a new Attempt.
	Attempt uint64 `json:"attempt,omitempty"`

	// Key is the first key of the event or wait, zero without keys. It chooses the partition and is not sent.
	Key rendezvous.Key `json:"-"`
	// Trace to carry; zero: the span in the context of Publish. On a received notice: the one it carried.
	Trace rendezvous.Trace `json:"-"`
	// Delivered counts deliveries of a received notice, from 1.
	Delivered uint64 `json:"-"`
}

// ForEvent reports whether the notice names an event; otherwise it names a wait.
func (m MatchNotice) ForEvent() bool { return m.Source != "" || m.ID != "" }

// Partition the notice is sent to.
func (m MatchNotice) Partition() int {
	if m.ForEvent() {
		return Partition(m.Tenant, m.Key, m.Source, m.ID)
	}
	return Partition(m.Tenant, m.Key, m.Run, m.Effect)
}

func (m MatchNotice) check() error {
	if err := rendezvous.CheckTenant(m.Tenant); err != nil {
		return err
	}
	pair := [2]string{m.Source, m.ID}
	if !m.ForEvent() {
		pair = [2]string{m.Run, m.Effect}
	}
	if pair[0] == "" || pair[1] == "" || (m.ForEvent() && m.Run+m.Effect != "") {
		return rendezvous.InvalidField("notice", "names neither one event (source, id) nor one wait (run_id, effect)")
	}
	return nil
}

func (m MatchNotice) message(ctx context.Context, n Names) (string, *nats.Msg, error) {
	if err := m.check(); err != nil {
		return "", nil, err
	}
	id := intent("match", m.Tenant, m.Source, m.ID, m.Run, m.Effect, strconv.FormatUint(m.Attempt, 10))
	msg, err := noticeMessage(ctx, n.MatchSubject(m.Partition()), n.Match(), id, m.Trace, m)
	return n.Match(), msg, err
}

// ResumeNotice tells the executors of a queue that a run nobody drives has news.
type ResumeNotice struct {
	Tenant     string           `json:"-"`
	Queue      string           `json:"-"`
	WorkflowID string           `json:"workflow_id"`
	RunID      string           `json:"run_id"`
	Seq        uint64           `json:"seq"`
	Cause      rendezvous.Cause `json:"cause"`
	// Attempt tells a repeat that is meant (a lost notice sent again) from the first sending; see [MatchNotice].
	Attempt uint64 `json:"-"`

	Trace     rendezvous.Trace `json:"-"`
	Delivered uint64           `json:"-"`
}

func (r ResumeNotice) message(ctx context.Context, n Names) (string, *nats.Msg, error) {
	if err := checkTenantQueue(r.Tenant, r.Queue); err != nil {
		return "", nil, err
	}
	if r.WorkflowID == "" || r.RunID == "" {
		return "", nil, rendezvous.InvalidField("notice", "names no run; give workflow_id and run_id")
	}
	id := intent("resume", r.Tenant, r.RunID, strconv.FormatUint(r.Seq, 10), string(r.Cause), strconv.FormatUint(r.Attempt, 10))
	msg, err := noticeMessage(ctx, n.ResumeSubject(r.Tenant, r.Queue), n.Resume(), id, r.Trace, r)
	return n.Resume(), msg, err
}

// PushNotice tells push-workers that a run has records which its registrations take. Notices of one run coalesce: the stream keeps the last.
type PushNotice struct {
	Tenant     string `json:"tenant"`
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id"`
	Head       int64  `json:"head"`
	// Attempt tells a repeat that is meant from the first sending; see [MatchNotice].
	Attempt uint64 `json:"attempt,omitempty"`

	Trace     rendezvous.Trace `json:"-"`
	Delivered uint64           `json:"-"`
}

func (p PushNotice) check() error {
	if err := rendezvous.CheckTenant(p.Tenant); err != nil {
		return err
	}
	if p.WorkflowID == "" || p.RunID == "" {
		return rendezvous.InvalidField("notice", "names no run; give workflow_id and run_id")
	}
	return nil
}

func (p PushNotice) message(ctx context.Context, n Names) (string, *nats.Msg, error) {
	if err := p.check(); err != nil {
		return "", nil, err
	}
	id := intent("push", p.Tenant, p.RunID, strconv.FormatInt(p.Head, 10), strconv.FormatUint(p.Attempt, 10))
	msg, err := noticeMessage(ctx, n.PushSubject(PushPartition(p.Tenant, p.WorkflowID), p.Tenant, p.RunID), n.Push(), id, p.Trace, p)
	return n.Push(), msg, err
}

func checkTenantQueue(tenant, queue string) error {
	if err := rendezvous.CheckTenant(tenant); err != nil {
		return err
	}
	return rendezvous.CheckQueue(queue)
}

func noticeMessage(ctx context.Context, subject, stream, id string, t rendezvous.Trace, body any) (*nats.Msg, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return nil, rendezvous.InvalidField("notice", "cannot be written as JSON").Because(err)
	}
	h := nats.Header{nats.MsgIdHdr: {id}, nats.ExpectedStreamHdr: {stream}}
	putTrace(ctx, h, t)
	return &nats.Msg{Subject: subject, Header: h, Data: data}, nil
}

// intent is the Nats-Msg-Id of one intended sending. Hashed, because ids hold any UTF-8 up to 512 bytes and a header holds less.
func intent(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte(p))
		h.Write([]byte{0})
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:18])
}

// decodeMatch reads a received match notice.
func decodeMatch(m Msg) (MatchNotice, error) {
	var n MatchNotice
	if err := json.Unmarshal(m.Data, &n); err != nil {
		return n, rendezvous.Errorf(rendezvous.CodeCorrupt, "match notice does not decode").Because(err)
	}
	n.Trace, n.Delivered = m.Trace(), m.Delivered
	return n, n.check()
}

// decodePush reads a received push notice.
func decodePush(m Msg) (PushNotice, error) {
	var n PushNotice
	if err := json.Unmarshal(m.Data, &n); err != nil {
		return n, rendezvous.Errorf(rendezvous.CodeCorrupt, "push notice does not decode").Because(err)
	}
	n.Trace, n.Delivered = m.Trace(), m.Delivered
	return n, n.check()
}

// decodeResume reads a received resume notice; tenant and queue stand in the subject.
func decodeResume(tenant, queue string) func(Msg) (ResumeNotice, error) {
	return func(m Msg) (ResumeNotice, error) {
		var n ResumeNotice
		if err := json.Unmarshal(m.Data, &n); err != nil {
			return n, rendezvous.Errorf(rendezvous.CodeCorrupt, "resume notice does not decode").Because(err)
		}
		if n.RunID == "" {
			return n, rendezvous.Errorf(rendezvous.CodeCorrupt, "resume notice names no run")
		}
		n.Tenant, n.Queue, n.Trace, n.Delivered = tenant, queue, m.Trace(), m.Delivered
		return n, nil
	}
}
