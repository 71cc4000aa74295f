// Package ingest takes events in. Its two doors, the INBOX stream and the request door, feed one group commit ([Door]): everything waiting goes into one
// transaction, then one notice per event to MATCH. A request is answered after the commit; an INBOX message is acknowledged after the commit and its
// notices. So a crash between the two is repaired by the message coming again: the store calls it a duplicate, and a duplicate is offered again.
//
// What cannot become an event goes to the REJECTED stream with its reason, one event of a batch alone, and is counted. Nothing is dropped silently.
//
// Ingest looks at no wait and knows no run, but for events that name their run (rdvrun): those go to the store's targeted verb.
package ingest
