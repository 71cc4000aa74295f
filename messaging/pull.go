package messaging

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	pullExpires   = 30 * time.Second
	pullHeartbeat = 5 * time.Second
)

// puller asks the broker for messages: one standing request for each durable, and a new one as soon as it has ended and there is room.
//
// It reads the protocol itself, because the client library takes any message with a Status header and no body for a word of the broker,
// and producers' headers are theirs: such an event would never be taken in, and could stop the consumer. Here a message is what has an
// acknowledgement subject.
type puller struct {
	src   source
	opts  Batch
	share int // messages of one durable that may be pulled and not taken
	bytes int // most bytes of one request; 0: no limit
	buf   *buffer
	gap   func()

	inbox  string
	sub    *nats.Subscription
	news   []*nats.Subscription // deletions
	closed chan struct{}        // the subscription has handed over its last message
	kick   chan struct{}        // capacity 1: some feed is broken

	mu      sync.Mutex
	feeds   []feed
	index   map[string]int // durable's name → feed
	stopped bool
	late    []verdictOn // what could not be said while its feed was broken
	tries   uint64      // heals since the broker last gave a sign of life
}

// feed is one durable as the puller sees it: idle, pulling or broken.
type feed struct {
	name     string
	pulling  bool
	broken   bool
	breaks   uint64 // how often it broke
	no       uint64 // number of the standing request; statuses of older ones are ignored
	want     int    // messages the standing request may still bring
	got      int    // messages it has brought
	buffered int
	bytes    int
	born     time.Time // since when the durable has been there
	single   bool      // the next message is larger than a request may be: take it alone
	seen     time.Time // last sign of life while pulling
}

func newPuller(src source, opts Batch, buf *buffer, gap func()) *puller {
	p := &puller{
		src: src, opts: opts, buf: buf, gap: gap, inbox: src.nc.NewInbox(), closed: make(chan struct{}), kick: make(chan struct{}, 1),
		share: opts.Size, index: map[string]int{},
	}
	if n := len(src.durables); n > 1 {
		p.share = max(16, 4*opts.Size/n)
	} else {
		p.bytes = opts.Bytes
	}
	for i, name := range src.durables {
		p.feeds = append(p.feeds, feed{name: name, broken: true})
		p.index[name] = i
	}
	return p
}

func (p *puller) subscribe() error {
	sub, err := p.src.nc.Subscribe(p.inbox+".>", p.receive)
	if err != nil {
		return err
	}
	// What we asked for is bounded; the library's own limits must not drop it.
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		return err
	}
	sub.SetClosedHandler(func(string) { close(p.closed) })
	p.sub = sub
	return p.listen()
}

// listen learns of deletions from the broker. A durable with no standing request is told of its end in no other way.
func (p *puller) listen() error {
	for _, subject := range []string{
		"$JS.EVENT.ADVISORY.STREAM.DELETED." + p.src.stream,
		"$JS.EVENT.ADVISORY.CONSUMER.DELETED." + p.src.stream + ".*",
	} {
		sub, err := p.src.nc.Subscribe(subject, p.deleted)
		if err != nil {
			return err
		}
		p.news = append(p.news, sub)
	}
	return nil
}

// deleted hears of a deletion: of the stream, or of a consumer, its last token.
func (p *puller) deleted(m *nats.Msg) {
	last := m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.feeds {
		if last == p.src.stream || last == p.feeds[i].name {
			p.breakFeed(&p.feeds[i])
		}
	}
}

// unsubscribe ends the subscription; what is on its way still arrives, as long as the connection stands.
func (p *puller) unsubscribe(ctx context.Context) {
	p.mu.Lock()
	p.stopped = true
	p.mu.Unlock()
	for _, sub := range p.news {
		_ = sub.Unsubscribe() // fails only when it is gone already
	}
	if !p.src.nc.IsConnected() || p.sub.Drain() != nil {
		_ = p.sub.Unsubscribe() // fails only when it is gone already
		return
	}
	select {
	case <-p.closed:
	case <-ctx.Done():
	}
}

// take removes a batch from the buffer and asks for more in its place.
func (p *puller) take(opts Batch) []held {
	batch := p.buf.take(opts)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range batch {
		f := &p.feeds[h.from]
		f.buffered--
		f.bytes -= h.size
	}
	for i := range p.feeds {
		p.refill(i)
	}
	return batch
}

// blocked reports whether a durable has brought its whole share: waiting long for company of other durables would keep the rest
// of it at the broker.
func (p *puller) blocked() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.feeds {
		if f := &p.feeds[i]; !f.pulling && !f.broken && !p.room(f) {
			return true
		}
	}
	return false
}

// room reports whether half of a durable's share is free. The caller holds mu.
func (p *puller) room(f *feed) bool {
	return f.buffered <= p.share/2 && (p.bytes == 0 || f.bytes <= p.bytes/2)
}

// receive is the subscription's callback.
func (p *puller) receive(m *nats.Msg) {
	msg, durable, ok := received(m)
	if !ok {
		p.status(m)
		return
	}
	i, known := p.index[durable]
	if !known {
		return // not ours: it comes again to whoever it is for
	}
	h := held{Msg: msg, size: msg.size(), from: i}
	h.born = p.book(i, h.size)
	if !p.buf.add(h) {
		p.acknowledge(h, Release())
	}
}

// book counts a message that has come for a durable and answers since when that has been there.
func (p *puller) book(i, size int) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := &p.feeds[i]
	p.alive(f)
	f.buffered++
	f.bytes += size
	f.got++
	if f.want--; f.want <= 0 {
		f.pulling, f.single = false, false
		p.refill(i)
	}
	return f.born
}

// status reads a word of the broker about a request.
func (p *puller) status(m *nats.Msg) {
	i, no, ok := p.request(m.Subject)
	if !ok {
		return
	}
	code, text := m.Header.Get("Status"), strings.ToLower(m.Header.Get("Description"))
	p.mu.Lock()
	defer p.mu.Unlock()
	f := &p.feeds[i]
	if no != f.no || !f.pulling {
		return
	}
	switch {
	case code == "100":
		p.alive(f)
	case code == "408" || code == "404" || strings.Contains(text, "batch completed"):
		p.alive(f)
		f.pulling = false
		p.refill(i)
	case strings.Contains(text, "exceeds maxbytes"):
		p.alive(f)
		f.pulling, f.single = false, f.got == 0
		p.refill(i)
	default: // consumer deleted, no responders, server shutdown, leadership change, a limit of the server
		p.src.deps.Log.Debug("pull ended", "stream", p.src.stream, "consumer", f.name, "status", code, "description", text)
		p.breakFeed(f)
	}
}

// request reads which feed and which of its requests a status is about.
func (p *puller) request(subject string) (feed int, no uint64, ok bool) {
	rest, ok := strings.CutPrefix(subject, p.inbox+".")
	a, b, two := strings.Cut(rest, ".")
	if !ok || !two {
		return 0, 0, false
	}
	i, err1 := strconv.Atoi(a)
	n, err2 := strconv.ParseUint(b, 10, 64)
	return i, n, err1 == nil && err2 == nil && i >= 0 && i < len(p.feeds)
}

func (p *puller) alive(f *feed) {
	f.seen = p.src.deps.Clock.Now()
	p.tries = 0
}

func (p *puller) breakFeed(f *feed) {
	f.pulling, f.broken, f.breaks = false, true, f.breaks+1
	select {
	case p.kick <- struct{}{}:
	default:
	}
}

// refill asks for more when the standing request has ended and half of the share is free. The caller holds mu.
func (p *puller) refill(i int) {
	f := &p.feeds[i]
	if f.pulling || f.broken || p.stopped || !p.room(f) {
		return
	}
	n, bytes := p.share-f.buffered, p.bytes
	if f.single {
		n, bytes = 1, 0
	}
	req, _ := json.Marshal(pullRequest{Expires: pullExpires, Batch: n, MaxBytes: bytes, Heartbeat: pullHeartbeat}) // four numbers
	f.no++
	f.pulling, f.want, f.got, f.seen = true, n, 0, p.src.deps.Clock.Now()
	subject := p.src.api + "CONSUMER.MSG.NEXT." + p.src.stream + "." + f.name
	reply := p.inbox + "." + strconv.Itoa(i) + "." + strconv.FormatUint(f.no, 10)
	if err := p.src.nc.PublishRequest(subject, reply, req); err != nil {
		p.breakFeed(f)
	}
}

// pullRequest is JetStream's request for messages; durations in nanoseconds.
type pullRequest struct {
	Expires   time.Duration `json:"expires"`
	Batch     int           `json:"batch"`
	MaxBytes  int           `json:"max_bytes,omitempty"`
	Heartbeat time.Duration `json:"idle_heartbeat"`
}
