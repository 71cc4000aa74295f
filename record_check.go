package rendezvous

import (
	"bytes"
	"cmp"
	"encoding/json"
	"time"

	exact "github.com/go-json-experiment/json"
)

// CheckAppended judges a record offered to an append by its shape alone: kind, data, payload, effect, limits. It answers it with defaults filled in
// and data canonical. Legal order (G1..G10) is judged by the store.
func (r Record) CheckAppended() (Record, error) {
	if !r.Kind.Known() {
		return r, InvalidField("kind", "%q is not a kind of record", r.Kind)
	}
	if unbuilt(r.Kind) {
		return r, InvalidField("kind", "%s is not supported by this build; leave the record out", r.Kind)
	}
	if r.V != 0 && r.V != KindVersion {
		return r, InvalidField("v", "%d is not a version of %s; this build writes %d", r.V, r.Kind, KindVersion)
	}
	r.V = KindVersion
	if err := CheckID("run_id", r.RunID); err != nil {
		return r, err
	}
	if err := r.checkEffect(); err != nil {
		return r, err
	}
	if err := r.checkPayload(); err != nil {
		return r, err
	}
	if err := r.Operator.Check("operator"); err != nil {
		return r, err
	}
	r.Attempt = attemptOf(r)
	return r.checkData()
}

// unbuilt names the kinds whose role this build does not have: attributes come with a later step.
func unbuilt(k Kind) bool { return k == AttributesUpdated }

func attemptOf(r Record) int {
	if r.Kind.Phase() == PhaseNone {
		return 0
	}
	return max(r.Attempt, 1)
}

func (r Record) checkEffect() error {
	if r.Kind.Phase() == PhaseNone {
		if r.Effect != "" || r.Attempt != 0 {
			return InvalidField("effect", "a record of kind %s names no effect", r.Kind)
		}
		return nil
	}
	if r.Attempt < 0 {
		return InvalidField("attempt", "%d is below 1", r.Attempt)
	}
	return CheckID("effect", r.Effect)
}

func (r Record) checkPayload() error {
	if r.Payload != nil && !r.Kind.TakesPayload() {
		return InvalidField("payload", "a record of kind %s carries none", r.Kind)
	}
	if len(r.Payload) > MaxPayload {
		return OverLimit("payload", MaxPayload, len(r.Payload))
	}
	if r.Source != "" {
		if err := CheckID("source", r.Source); err != nil {
			return err
		}
	}
	return CheckContentType(r.ContentType)
}

// checkData decodes the kind's own fields, judges them, and makes them canonical. Unknown members are kept.
func (r Record) checkData() (Record, error) {
	if len(r.Data) > MaxRecordData {
		return r, OverLimit("data", MaxRecordData, len(r.Data))
	}
	if len(r.Data) == 0 {
		r.Data = json.RawMessage("{}")
	}
	canonical, err := CanonicalJSON(r.Data)
	if err != nil || !bytes.HasPrefix(canonical, []byte("{")) {
		return r, InvalidField("data", "of %s is not one JSON object with unique members, in UTF-8 without halves of surrogate pairs", r.Kind)
	}
	if len(canonical) > MaxRecordData {
		return r, OverLimit("data", MaxRecordData, len(canonical))
	}
	r.Data = canonical
	if r.Kind == RunStarted || r.Kind == WaitRegistered {
		if err := checkBuilt(canonical); err != nil {
			return r, err
		}
	}
	return r, r.checkFields()
}

// checkBuilt refuses by name the members whose role this build does not have.
func checkBuilt(object json.RawMessage) error {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(object, &members) // it is canonical
	for _, later := range [...]string{"attributes"} {
		if _, given := members[later]; given {
			return NotBuilt("data." + later)
		}
	}
	return nil
}

func (r Record) checkFields() error {
	decode := func(v any) error {
		if err := exact.Unmarshal(r.Data, v); err != nil {
			return InvalidField("data", "of %s has a member of the wrong type", r.Kind)
		}
		return nil
	}
	switch r.Kind {
	case RunStarted:
		var d RunStartedData
		if err := decode(&d); err != nil {
			return err
		}
		return d.check()
	case RunFailed:
		var d RunFailedData
		if err := decode(&d); err != nil {
			return err
		}
		return cmp.Or(CheckID("data.code", d.Code), CheckReason("data.reason", d.Reason), optionalID("data.failed_effect", d.FailedEffect))
	case EffectFailed:
		var d EffectFailedData
		if err := decode(&d); err != nil {
			return err
		}
		return cmp.Or(CheckID("data.code", d.Code), CheckReason("data.reason", d.Reason))
	case RunCancelled, RunPaused, RunResumed, WaitWithdrawn:
		var d ReasonData
		if err := decode(&d); err != nil {
			return err
		}
		return CheckReason("data.reason", d.Reason)
	case RunContinued:
		var d RunContinuedData
		if err := decode(&d); err != nil {
			return err
		}
		return CheckID("data.next_run", d.NextRun)
	case EffectStarted, Note:
		var d NameData
		if err := decode(&d); err != nil {
			return err
		}
		return CheckID("data.name", d.Name)
	case WaitRegistered:
		var d WaitRegisteredData
		if err := decode(&d); err != nil {
			return err
		}
		if _, err := (Wait{WaitID: WaitID{r.RunID, r.Effect}, Type: d.Type, Keys: d.Keys, From: d.From}).Check(); err != nil {
			return err
		}
		return checkDeadline(d.Deadline, d.DeadlineAfter)
	case TimerStarted:
		var d TimerStartedData
		if err := decode(&d); err != nil {
			return err
		}
		return d.check()
	case TimerFired:
		var d TimerFiredData
		if err := decode(&d); err != nil {
			return err
		}
		return cmp.Or(CheckTimerID("data.timer_id", d.TimerID), checkArmed(d.ArmedSeq), optionalInstant("data.fire_at", d.FireAt))
	case TimerCancelled:
		var d TimerCancelledData
		if err := decode(&d); err != nil {
			return err
		}
		return cmp.Or(CheckTimerID("data.timer_id", d.TimerID), checkArmed(d.ArmedSeq), CheckReason("data.reason", d.Reason))
	case WaitTimedOut, RunTimedOut:
		var d DeadlineData
		if err := decode(&d); err != nil {
			return err
		}
		return optionalInstant("data.deadline", d.Deadline)
	case WaitAnswered:
		var d WaitAnsweredData
		if err := decode(&d); err != nil {
			return err
		}
		return cmp.Or(CheckID("data.event_source", d.EventSource), CheckID("data.event_id", d.EventID))
	}
	return nil
}

func (d RunStartedData) check() error {
	return cmp.Or(CheckID("type", d.Type), CheckQueue(d.Queue), optionalID("previous_run", d.PreviousRun),
		optionalID("parent", d.Parent), optionalID("code_version", d.CodeVersion), checkDeadline(d.Deadline, d.DeadlineAfter))
}

func (d TimerStartedData) check() error {
	if err := CheckTimerID("data.timer_id", d.TimerID); err != nil {
		return err
	}
	_, err := Resolve("data.fire_at", d.FireAt, "data.after", d.After, time.Time{})
	return err
}

// checkDeadline judges a deadline in a record's data: none, an instant, or a duration.
func checkDeadline(at string, after *int64) error {
	if at == "" && after == nil {
		return nil
	}
	_, err := Resolve("data.deadline", at, "data.deadline_after", after, time.Time{})
	return err
}

func checkArmed(seq int64) error {
	if seq < 1 {
		return InvalidField("data.armed_seq", "%d is not the seq of a record that armed a timer", seq)
	}
	return nil
}

func optionalInstant(field, text string) error {
	if text == "" {
		return nil
	}
	_, err := ParseInstant(field, text)
	return err
}

func optionalID(field, s string) error {
	if s == "" {
		return nil
	}
	return CheckID(field, s)
}
