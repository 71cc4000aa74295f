package api

import (
	"strconv"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/wire"
)

// fit encodes a reply in at most limit bytes. What a verb has done is never answered as an error because its reply is long (I17, decision 0007): such replies
// end earlier and say so. Others, which change nothing, are too_large and belong to HTTP.
func fit(reply any, limit int) ([]byte, error) {
	for {
		body, err := rendezvous.EncodeJSON(reply)
		if err != nil || len(body) <= limit {
			return body, err
		}
		less, ok := shorter(reply)
		if !ok {
			return nil, rendezvous.Errorf(rendezvous.CodeTooLarge, "the reply of %d bytes is over this connection's limit of %d; ask over HTTP, or for less", len(body), limit).
				With("limit", limit).With("value", len(body))
		}
		reply = less
	}
}

// shorter is a reply with less in it, nothing of which is lost: records are in the history, events in events.get.
func shorter(reply any) (any, bool) {
	ok := false
	switch r := reply.(type) {
	case wire.History: // read page by page: it holds one record at least, or there would be no getting on
		if len(r.Records) == 1 {
			one := r.Records[0].WithoutPayload()
			ok = one.Omitted && !r.Records[0].Omitted
			r.Records = []wire.Record{one}
			return r, ok
		}
		r.Records, ok = firstHalf(r.Records)
		r.More = r.More || ok
		return r, ok
	case wire.Collected:
		r.Records, ok = firstHalf(r.Records)
		r.More = r.More || ok
		return r, ok
	case wire.Released:
		r.Records, ok = firstHalf(r.Records)
		r.More = r.More || ok
		return r, ok
	case wire.Appended:
		r.Answers, ok = firstHalf(r.Answers)
		r.More = r.More || ok
		return r, ok
	case wire.Registered:
		if r.Answered != nil {
			one := r.Answered.WithoutPayload()
			ok = one.Omitted && !r.Answered.Omitted
			r.Answered = &one
		}
		return r, ok
	case wire.Concluded:
		r.Released, r.Dead, ok = firstHalves(r.Released, r.Dead)
		r.More = r.More || ok
		return r, ok
	case wire.Acted:
		r.Released, r.Dead, ok = firstHalves(r.Released, r.Dead)
		r.More = r.More || ok
		return r, ok
	case wire.Letters:
		return withoutPayloads(r)
	case wire.LetterResults:
		return fewerResults(r)
	case wire.PushPut: // push.attempts has it
		ok = r.Last != nil
		r.Last = nil
		return r, ok
	case wire.PushAttemptList:
		if len(r.Attempts) > 1 {
			r.Attempts, ok = firstHalf(r.Attempts)
			r.NextCursor = strconv.FormatInt(r.Attempts[len(r.Attempts)-1].AttemptNo, 10)
		}
		return r, ok
	case wire.PutResults:
		return withoutWords(r)
	}
	return nil, false
}

// firstHalf is the earlier half of a list; ok says that there was anything to leave out.
func firstHalf[T any](list []T) (half []T, ok bool) { return list[:len(list)/2], len(list) > 0 }

func firstHalves[T any](a, b []T) (halfA, halfB []T, ok bool) {
	halfA, okA := firstHalf(a)
	halfB, okB := firstHalf(b)
	return halfA, halfB, okA || okB
}

// withoutWords leaves the codes of refused events and takes what is said about them.
func withoutWords(r wire.PutResults) (wire.PutResults, bool) {
	const brief = "there is no room for the reason here; send this event alone, or over HTTP"
	results, ok := make([]wire.PutResult, len(r.Results)), false
	for i, one := range r.Results {
		if one.Error != nil {
			ok = ok || one.Error.Message != brief
			one.Error = &wire.Error{Code: one.Error.Code, Message: brief}
		}
		results[i] = one
	}
	return wire.PutResults{Results: results}, ok
}
