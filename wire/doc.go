// Package wire holds the JSON of the verbs (docs/spec/api.md): requests, replies, errors, records and payloads, the same over NATS and HTTP. Both the
// server (api) and the client speak through it. Requests refuse unknown fields; replies may grow.
package wire
