package rendezvous

import (
	"bytes"
	"encoding/json"
	"errors"
	"time"

	exact "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Record is one entry of a history (history.md section 2). Tenant and workflow are the history's.
type Record struct {
	Seq         int64
	RunID       string
	Kind        Kind
	V           int             // format version of the kind; 0 on the way in means [KindVersion]
	Effect      string          // effect and wait kinds only
	Attempt     int             // effect and wait kinds only, from 1; 0 on the way in means 1
	Data        json.RawMessage // the kind's own fields, canonical JSON; nil is {}
	Payload     []byte          // nil is none
	ContentType string
	Source      string // for WaitAnswered the event's source
	Operator    *Operator
	RecordedAt  time.Time
	Batch       string // id of the batch that wrote it, if it was named

	// Unknown marks a record read back whose kind or version this build does not know: it is returned verbatim, and a run holding one is
	// not driven by this build.
	Unknown bool
}

// The kinds' own fields, their members in byte order: so encoding them is canonical as it is, which a record of every answer is worth. Unknown fields in stored data are kept and ignored; absent optional ones decode to their zero value.
type (
	// RunStartedData is the data of run.started.
	RunStartedData struct {
		CodeVersion string `json:"code_version,omitempty"`
		Deadline    string `json:"deadline,omitempty"`
		// DeadlineAfter, in microseconds, stands for Deadline on the way in; the store records the instant.
		DeadlineAfter *int64 `json:"deadline_after,omitempty"`
		Parent        string `json:"parent,omitempty"`
		PreviousRun   string `json:"previous_run,omitempty"`
		Queue         string `json:"queue"`
		Type          string `json:"type"`
	}
	// RunFailedData is the data of run.failed.
	RunFailedData struct {
		Code         string `json:"code"`
		FailedEffect string `json:"failed_effect,omitempty"`
		Reason       string `json:"reason"`
	}
	// ReasonData is the data of run.cancelled, run.paused, run.resumed and wait.withdrawn.
	ReasonData struct {
		Reason string `json:"reason,omitempty"`
	}
	// RunContinuedData is the data of run.continued.
	RunContinuedData struct {
		NextRun string `json:"next_run"`
	}
	// NameData is the data of effect.started and note.
	NameData struct {
		Name string `json:"name"`
	}
	// EffectFailedData is the data of effect.failed.
	EffectFailedData struct {
		Code      string `json:"code"`
		Reason    string `json:"reason"`
		Retryable bool   `json:"retryable"`
	}
	// WaitRegisteredData is the data of wait.registered.
	WaitRegisteredData struct {
		Deadline      string `json:"deadline,omitempty"`
		DeadlineAfter *int64 `json:"deadline_after,omitempty"` // as in RunStartedData
		From          string `json:"from,omitempty"`
		Keys          []Key  `json:"keys"`
		Type          string `json:"type"`
	}
	// WaitAnsweredData is the data of wait.answered. Key is which key met; a targeted event that shares none has Targeted instead.
	WaitAnsweredData struct {
		EventID     string `json:"event_id"`
		EventSource string `json:"event_source"`
		EventType   string `json:"event_type"`
		Key         *Key   `json:"key,omitempty"`
		ReceivedAt  string `json:"received_at"`
		Targeted    bool   `json:"targeted,omitempty"`
	}
	// DeadlineData is the data of run.timed_out and wait.timed_out: the instant that was due.
	DeadlineData struct {
		Deadline string `json:"deadline"`
	}
	// RunReopenedData is the data of run.reopened: Superseded are the effects, in byte order, that failed for good and may be tried again.
	RunReopenedData struct {
		Reason     string   `json:"reason,omitempty"`
		Superseded []string `json:"superseded"`
	}
	// TimerStartedData is the data of timer.started. After, in microseconds, stands for FireAt on the way in; the store records the instant.
	TimerStartedData struct {
		After   *int64 `json:"after,omitempty"`
		FireAt  string `json:"fire_at,omitempty"`
		TimerID string `json:"timer_id"`
	}
	// TimerFiredData is the data of timer.fired: FireAt is the instant that was due, however late it fired.
	TimerFiredData struct {
		ArmedSeq int64  `json:"armed_seq"`
		FireAt   string `json:"fire_at"`
		TimerID  string `json:"timer_id"`
	}
	// TimerCancelledData is the data of timer.cancelled.
	TimerCancelledData struct {
		ArmedSeq int64  `json:"armed_seq"`
		Reason   string `json:"reason,omitempty"`
		TimerID  string `json:"timer_id"`
	}
)

// EncodeData makes a record's canonical data of one of the Data structs.
func EncodeData(v any) json.RawMessage {
	raw, err := EncodeJSON(v)
	if err != nil {
		panic("rendezvous: encode record data: " + err.Error()) // the structs above always encode
	}
	switch v.(type) {
	case RunStartedData, RunFailedData, ReasonData, RunContinuedData, NameData, EffectFailedData, WaitRegisteredData, WaitAnsweredData, DeadlineData,
		RunReopenedData, TimerStartedData, TimerFiredData, TimerCancelledData:
		return raw
	}
	data, err := CanonicalJSON(raw)
	if err != nil {
		panic("rendezvous: canonical record data: " + err.Error())
	}
	return data
}

// EncodeJSON is v as JSON without the escapes that are meant for HTML: strings and payloads stay as they are.
func EncodeJSON(v any) (json.RawMessage, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// DecodeData reads a record's data into v, which points to the kind's Data struct. Members match in their exact names, nested ones too: "Keys" beside
// "keys" is an unknown member, not a second value of it.
func DecodeData(r Record, v any) error {
	if len(r.Data) == 0 {
		return nil
	}
	if err := exact.Unmarshal(r.Data, v); err != nil {
		return Errorf(CodeCorrupt, "the data of record %d (%s) does not decode", r.Seq, r.Kind).With("seq", r.Seq).Because(err)
	}
	return nil
}

// CanonicalJSON is raw with sorted members, without blanks, numbers verbatim. Two members of one name, a second value, anything that is not JSON
// in UTF-8, and half of a surrogate pair, which would become one and the same character whichever half it is, are refused.
func CanonicalJSON(raw []byte) (json.RawMessage, error) {
	if !jsontext.Value(raw).IsValid() {
		return nil, errors.New("not one JSON value with unique members and whole characters")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	return EncodeJSON(v)
}
