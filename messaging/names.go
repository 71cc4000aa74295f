package messaging

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"strconv"
	"strings"

	rendezvous "github.com/rendezvous-events/rendezvous"
)

// Partitions of MATCH and of PUSH. With consumers draining, publishing falls from 46k/s at 16 to 9k/s at 256. Changing it means a new stream beside a
// draining old one: widening a consumer's filter brings no older messages.
const Partitions = 16

// Names are the subjects, streams and durables of one plane. No subject holds business data but INBOX's tail, which is the producer's.
type Names struct{ prefix string }

// NamesOf are the names under a prefix.
func NamesOf(prefix string) Names { return Names{prefix: prefix} }

// Inbox is the stream of what producers send.
func (n Names) Inbox() string { return n.prefix + "_INBOX" }

// Match is the stream of notices about events and waits to offer.
func (n Names) Match() string { return n.prefix + "_MATCH" }

// Resume is the stream of notices about runs that nobody drives and that have news.
func (n Names) Resume() string { return n.prefix + "_RESUME" }

// Push is the stream of notices about runs with records that their registrations take.
func (n Names) Push() string { return n.prefix + "_PUSH" }

// Rejected is the stream of what never became an event.
func (n Names) Rejected() string { return n.prefix + "_REJECTED" }

// Advisory is the stream of the server's words about messages that their consumer gave up.
func (n Names) Advisory() string { return n.prefix + "_ADVISORY" }

// InboxSubject is where producers send events; tail is free, by convention the event's type.
func (n Names) InboxSubject(tenant, tail string) string {
	return n.prefix + "." + tenant + ".in." + tail
}

// MatchSubject of a partition. Listed one by one: a wildcard in the last token would overlap tenants' subjects.
func (n Names) MatchSubject(partition int) string {
	return n.prefix + ".match." + strconv.Itoa(partition)
}

// ResumeSubject of a tenant's queue.
func (n Names) ResumeSubject(tenant, queue string) string {
	return n.prefix + "." + tenant + ".resume." + queue
}

// PushSubject of a run in a partition: one subject a run, so that its notices coalesce.
func (n Names) PushSubject(partition int, tenant, run string) string {
	return n.pushSubjects(partition, runHash(tenant, run))
}

// PushSubjects are those of a partition.
func (n Names) PushSubjects(partition int) string { return n.pushSubjects(partition, "*") }

func (n Names) pushSubjects(partition int, last string) string {
	return n.prefix + ".push." + strconv.Itoa(partition) + "." + last
}

// runHash stands for a run where its id may not: 16 hexadecimal digits of SHA-256 over tenant, 0x00, run id.
func runHash(tenant, run string) string {
	h := sha256.New()
	_, _ = io.WriteString(h, tenant+"\x00"+run) // never fails
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// RejectedSubject of a tenant.
func (n Names) RejectedSubject(tenant string) string { return n.prefix + "." + tenant + ".rejected" }

// InboxDurable is the consumer of INBOX that every ingest shares.
func (n Names) InboxDurable() string { return "ingest" }

// MatchDurable is the consumer of a partition of MATCH that every delivery-worker shares.
func (n Names) MatchDurable(partition int) string {
	return "match-" + strconv.Itoa(partition)
}

// PushDurable is the consumer of a partition of PUSH that every push-worker shares.
func (n Names) PushDurable(partition int) string { return "push-" + strconv.Itoa(partition) }

// AdvisoryDurable is the consumer of ADVISORY that every sweeper shares.
func (n Names) AdvisoryDurable() string { return "sweep" }

// ResumeDurable is the consumer the executors of a queue share. The tilde is in neither name, so two pairs never read alike.
func (n Names) ResumeDurable(tenant, queue string) string { return tenant + "~" + queue }

// TenantOf is the second token of a subject under the prefix. A reserved word or another shape is an error (invalid).
func (n Names) TenantOf(subject string) (string, error) {
	rest, ok := strings.CutPrefix(subject, n.prefix+".")
	tenant, _, more := strings.Cut(rest, ".")
	if !ok || !more {
		return "", rendezvous.InvalidField("subject", "does not begin %s.<tenant>.", n.prefix)
	}
	return tenant, rendezvous.CheckTenant(tenant)
}

// PushPartition is the partition of PUSH for a workflow's runs: FNV-1a 64 modulo 16 over tenant, 0x00, the workflow's id.
func PushPartition(tenant, workflow string) int {
	return int(fnv1a(fnv1a(fnvOffset, tenant)*fnvPrime, workflow) % Partitions)
}

// Partition of MATCH: FNV-1a 64 modulo 16 over tenant, 0x00 and the first key's namespace, 0x00, value. Without keys (the zero Key) a and b
// stand for namespace and value: an event's source and id, a wait's run and effect. It spreads load; nothing depends on who shares one.
func Partition(tenant string, key rendezvous.Key, a, b string) int {
	if key != (rendezvous.Key{}) {
		a, b = key.Namespace, key.Value
	}
	h := fnv1a(fnvOffset, tenant)
	h = fnv1a(h*fnvPrime, a) // a zero byte changes nothing but the multiplication
	h = fnv1a(h*fnvPrime, b)
	return int(h % Partitions)
}

const (
	fnvOffset uint64 = 14695981039346656037
	fnvPrime  uint64 = 1099511628211
)

func fnv1a(h uint64, s string) uint64 {
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * fnvPrime
	}
	return h
}
