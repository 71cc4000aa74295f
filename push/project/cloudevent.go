package project

import (
	"fmt"

	"github.com/rendezvous-events/rendezvous"
)

const cloudEventType = "application/cloudevents+json; charset=UTF-8"

// cloudEvent is a record as a structured CloudEvent.
func cloudEvent(r rendezvous.Record, f facts, o Options, p payload) []byte {
	var out object
	out.text("specversion", "1.0")
	out.text("id", MessageID(r.RunID, r.Seq, 0))
	out.text("source", o.Source+"/"+escape(o.Tenant, ".")+"/"+escape(o.Workflow, "."))
	out.text("type", rendezvous.ReservedType+string(r.Kind))
	out.text("subject", r.RunID)
	out.text("time", rendezvous.FormatInstant(r.RecordedAt))
	out.text("sequence", fmt.Sprintf("%020d", r.Seq))
	out.text("tenantid", o.Tenant)
	out.fact("traceparent", o.Trace.Parent)
	out.text("datacontenttype", "application/json")
	out.raw("data", cloudEventData(r, f, o, p))
	return out.end()
}

func cloudEventData(r rendezvous.Record, f facts, o Options, p payload) []byte {
	var data object
	data.text("run_id", r.RunID)
	data.text("workflow_id", o.Workflow)
	data.number("seq", r.Seq)
	data.text("kind", string(r.Kind))
	data.fact("effect", r.Effect)
	data.fact("event_type", f.eventType)
	if r.Kind.Terminal() {
		data.text("outcome", string(r.Kind.Status()))
	}
	data.fact("code", f.code)
	data.fact("reason", f.reason)
	data.fact("next_run", f.nextRun)
	switch {
	case p == carried && isJSON(r):
		data.raw("payload", r.Payload)
	case p == carried:
		data.text("payload_base64", base64Of(r))
		data.fact("payload_content_type", r.ContentType)
	default:
		announce(&data, r, p)
	}
	return data.end()
}
