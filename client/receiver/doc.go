// Package receiver is the receiving end of webhooks: it verifies that a message comes from who holds the key, unchanged and now (push.md section 14). It reads
// Standard Webhooks, so it serves for other senders too.
//
// A [Verifier] judges headers and raw body. [Verifier.Handler] puts it in front of an http.Handler, which then sees verified messages only:
//
//	verifier, err := receiver.New([]string{os.Getenv("WEBHOOK_KEY")})
//	if err != nil {
//		return err
//	}
//	http.Handle("POST /hooks", verifier.Handler(handler, receiver.Dedupe(seen)))
//
// The plane sends a message until it sees a 2xx, so the same one may come again: its id ([Message.ID]) is the same each time, and the signature and timestamp are
// new. Who does not bear repeats remembers ids, by [Dedupe] or in the transaction that the handler makes anyway, which alone is exactly once.
//
// While keys are changed, give the new and the old one.
package receiver
