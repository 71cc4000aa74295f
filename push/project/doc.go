// Package project makes messages of records: as CloudEvents, or as updates of A2A tasks (push.md section 13). It is a pure function of the record and the options,
// so that every attempt, by every worker, sends the same bytes: members in a fixed order, strings without escapes that are meant for HTML, JSON payloads byte for
// byte.
package project
