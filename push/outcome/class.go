package outcome

import (
	"time"

	"github.com/rendezvous-events/rendezvous"
)

// OfStatus is the class of an answer whose header section is complete.
func OfStatus(status int) rendezvous.PushClass {
	switch {
	case status >= 200 && status <= 299:
		return rendezvous.ClassAccepted
	case status >= 300 && status <= 399:
		return rendezvous.ClassRedirect
	}
	switch status {
	case 410:
		return rendezvous.ClassGone
	case 400, 413, 415, 422:
		return rendezvous.ClassRejected
	case 401, 403:
		return rendezvous.ClassRefused
	case 429, 503:
		return rendezvous.ClassThrottled
	}
	return rendezvous.ClassFailed
}

// Charged reports whether an attempt of that class counts as a failure of the receiver.
func Charged(class rendezvous.PushClass) bool {
	switch class {
	case rendezvous.ClassAccepted, rendezvous.ClassProxy, rendezvous.ClassOwn, rendezvous.ClassSkipped:
		return false
	}
	return true
}

// floor is the shortest wait behind a failure of that class.
func floor(class rendezvous.PushClass) time.Duration {
	switch class {
	case rendezvous.ClassRefused:
		return time.Minute
	case rendezvous.ClassThrottled:
		return 5 * time.Second
	}
	return 0
}
