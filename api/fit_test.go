package api_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/api"
	"github.com/rendezvous-events/rendezvous/internal/node"
	"github.com/rendezvous-events/rendezvous/internal/nodetest"
	"github.com/rendezvous-events/rendezvous/wire"
)

// RN-6, I17: what a verb has done is answered, however long the reply: it ends earlier and says so.
func TestWhatWasDoneIsNeverAnsweredTooLarge(t *testing.T) {
	const limit = 4096
	large := wire.Record{Seq: 3, RunID: "r", Kind: rendezvous.WaitAnswered, Payload: wire.PayloadOf(make([]byte, 3*limit), "a/b")}
	ids := make([]rendezvous.EventID, 1000)
	refusals := make([]wire.PutResult, 10)
	for i := range ids {
		ids[i] = rendezvous.EventID{Source: strings.Repeat("s", 100), ID: fmt.Sprint(i)}
	}
	for i := range refusals {
		refusals[i] = wire.PutResult{Outcome: wire.Rejected, Error: &wire.Error{Code: rendezvous.CodeInvalid, Message: strings.Repeat("m", limit)}}
	}
	for name, c := range map[string]struct {
		reply any
		want  string
	}{
		"append": {wire.Appended{FirstSeq: 2, HeadSeq: 3, Answers: []wire.Answer{{Record: large}}}, `{"first_seq":2,"head_seq":3,"answers":[],"more":true,"requests":null,"mail":0}`},
		"await": {
			wire.Registered{Answered: &large, Seq: 3},
			`{"answered":{"seq":3,"run_id":"r","kind":"wait.answered","payload_omitted":true,"payload_size":12288},"seq":3}`,
		},
		"collect": {wire.Collected{Records: []wire.Record{large}, HeadSeq: 3}, `{"records":[],"head_seq":3,"more":true}`},
		"release": {wire.Released{Outcome: "continue", Records: []wire.Record{large}, HeadSeq: 3}, `{"outcome":"continue","records":[],"head_seq":3,"requests":null,"more":true}`},
		"history": {
			wire.History{Records: []wire.Record{large, large}, HeadSeq: 4},
			`{"records":[{"seq":3,"run_id":"r","kind":"wait.answered","payload_omitted":true,"payload_size":12288}],"head_seq":4,"more":true}`,
		},
		"conclude": {wire.Concluded{Seq: 3, Released: ids, Dead: ids[:1]}, ``},
		"cancel":   {wire.Acted{Outcome: "cancelled", Dead: ids}, ``},
		"put":      {wire.PutResults{Results: refusals}, ``},
		"requeue":  {wire.LetterResults{Results: make([]wire.LetterResult, 500), More: true, NextCursor: "c"}, ``},
		"letters": {
			wire.Letters{Letters: []wire.Letter{{Source: "s", ID: "1", Number: 7, Type: "t", Payload: large.Payload}}, NextCursor: "c"},
			`{"letters":[{"source":"s","id":"1","number":7,"type":"t","keys":null,"reason":"","received_at":"<time>","dead_at":"<time>","erased":false,"payload_omitted":true}],"next_cursor":"c"}`,
		},
	} {
		body, err := api.Fit(c.reply, limit)
		if err != nil || len(body) > limit {
			t.Errorf("%s: %d bytes, %v", name, len(body), err)
			continue
		}
		if c.want != "" {
			match(t, c.want, body)
		}
		if !strings.Contains(string(body), `"more":true`) && !strings.Contains(string(body), "over HTTP") && !strings.Contains(string(body), "omitted") {
			t.Errorf("%s does not say that something is left out: %s", name, body)
		}
	}
	if _, err := api.Fit(wire.Event{Payload: large.Payload}, limit); !errors.Is(err, rendezvous.ErrTooLarge) {
		t.Errorf("a read: %v", err)
	}
}

// An append whose answers are over one message is answered, again too, and its answers are all in the history.
func TestAnAppendIsAnsweredThoughItsAnswersAreLarge(t *testing.T) {
	at, external := nodetest.Broker(t, func(o *server.Options) { o.MaxPayload = 256 << 10 })
	n := nodetest.Start(t, external, func(c *node.Config) { c.Limit = 64 << 10 })
	web, requests := newHTTPDoor(t, n, ""), natsDoor{nodetest.NATS(t, at)}
	ok(t, web, "acme", "runs.start", `{"workflow_id":"w","run_id":"run-1","type":"order"}`)
	var waits []string
	for i := range 10 {
		ok(t, requests, "acme", "events.put", fmt.Sprintf(
			`{"events":[{"specversion":"1.0","id":"e-%d","source":"s","type":"t","rdvkeys":"k=%d","datacontenttype":"text/plain","data":%q}]}`, i, i, strings.Repeat("x", 60_000)))
		waits = append(waits, fmt.Sprintf(`{"kind":"wait.registered","effect":"w-%d","data":{"type":"t","keys":[{"namespace":"k","value":"%d"}]}}`, i, i))
	}
	request := `{` + run1 + `,"expected_seq":1,"batch_id":"b","records":[` + strings.Join(waits, ",") + `]}`
	for _, again := range []bool{false, true} {
		var got wire.Appended
		must(t, json.Unmarshal(ok(t, requests, "acme", "runs.append", request), &got))
		if got.FirstSeq != 2 || got.HeadSeq != 21 || !got.More || len(got.Answers) == 10 || got.Again != again {
			t.Errorf("first %d, head %d, more %v, %d answers, again %v", got.FirstSeq, got.HeadSeq, got.More, len(got.Answers), got.Again)
		}
	}
	whole := 0
	for seen := int64(11); seen < 21; {
		var page wire.History
		must(t, json.Unmarshal(ok(t, requests, "acme", "runs.history", fmt.Sprintf(`{"workflow_id":"w","from_seq":%d}`, seen+1)), &page))
		for _, r := range page.Records {
			seen = r.Seq
			if p := r.Payload; p != nil && p.Base64 != nil && len(*p.Base64) == 60_000 {
				whole++
			}
		}
	}
	if whole != 10 {
		t.Errorf("%d of 10 answers are whole in the history", whole)
	}
}
