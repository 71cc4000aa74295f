package project

import "github.com/rendezvous-events/rendezvous"

const a2aType = "application/a2a+json"

// resultArtifact is the id of the one artifact a task has here.
const resultArtifact = "result"

// states are the task states that kinds lead to; a kind that is not here says nothing to an A2A client.
var states = map[rendezvous.Kind]string{
	rendezvous.RunStarted:     "TASK_STATE_SUBMITTED",
	rendezvous.WaitRegistered: "TASK_STATE_INPUT_REQUIRED",
	rendezvous.WaitAnswered:   "TASK_STATE_WORKING",
	rendezvous.WaitTimedOut:   "TASK_STATE_WORKING",
	rendezvous.RunPaused:      "TASK_STATE_WORKING",
	rendezvous.RunResumed:     "TASK_STATE_WORKING",
	rendezvous.RunReopened:    "TASK_STATE_WORKING",
	rendezvous.RunContinued:   "TASK_STATE_WORKING",
	rendezvous.RunCompleted:   "TASK_STATE_COMPLETED",
	rendezvous.RunFailed:      "TASK_STATE_FAILED",
	rendezvous.RunTimedOut:    "TASK_STATE_FAILED",
	rendezvous.RunCancelled:   "TASK_STATE_CANCELED",
}

// a2a is a record as StreamResponses of A2A 1.0, each with exactly one member.
func a2a(r rendezvous.Record, f facts, o Options) []Message {
	state, ok := states[r.Kind]
	if !ok {
		return nil
	}
	status := func(int) []byte { return statusUpdate(r, f, o, state) }
	if r.Kind != rendezvous.RunCompleted || r.Payload == nil && payloadOf(r, o) == none {
		return numbered(r, a2aType, status)
	}
	artifact := func(int) []byte { return bounded(r, o, func(p payload) []byte { return artifactUpdate(r, o, p) }) }
	messages := numbered(r, a2aType, artifact, status)
	if payloadOf(r, o) == none {
		return messages[1:] // the status has its id in every registration, whether or not they ask for results
	}
	return messages
}

func statusUpdate(r rendezvous.Record, f facts, o Options, state string) []byte {
	var status, metadata object
	status.text("state", state)
	status.text("timestamp", rendezvous.FormatInstant(r.RecordedAt))
	metadata.number("seq", r.Seq)
	metadata.fact("next_run", f.nextRun)
	update := task(r, o)
	update.raw("status", status.end())
	update.raw("metadata", metadata.end())
	return only("statusUpdate", update)
}

func artifactUpdate(r rendezvous.Record, o Options, p payload) []byte {
	var artifact, metadata object
	artifact.text("artifactId", resultArtifact)
	artifact.raw("parts", append(append([]byte("["), part(r, p)...), ']'))
	metadata.number("seq", r.Seq)
	update := task(r, o)
	update.raw("artifact", artifact.end())
	update.raw("lastChunk", []byte("true"))
	update.raw("metadata", metadata.end())
	return only("artifactUpdate", update)
}

// part is the result: data for JSON, text for text, else raw. What is not carried is announced in a data part.
func part(r rendezvous.Record, p payload) []byte {
	var out object
	switch {
	case p != carried:
		var instead object
		announce(&instead, r, p)
		out.raw("data", instead.end())
		return out.end()
	case isJSON(r):
		out.raw("data", r.Payload)
	case isText(r):
		out.text("text", string(r.Payload))
	default:
		out.text("raw", base64Of(r))
	}
	out.fact("mediaType", r.ContentType)
	return out.end()
}

func task(r rendezvous.Record, o Options) object {
	var out object
	out.text("taskId", r.RunID)
	out.text("contextId", o.Workflow)
	return out
}

func only(member string, value object) []byte {
	var out object
	out.raw(member, value.end())
	return out.end()
}
