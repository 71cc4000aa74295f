package outcome_test

import (
	"math/rand/v2"
	"net/textproto"
	"slices"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/push/outcome"
)

var (
	at       = time.Date(2026, 11, 29, 16, 0, 0, 123_000, time.UTC)
	defaults = outcome.Limits{MaxAttempts: 64, OnRejectLimit: 8, MaxAge: outcome.DefaultMaxAge}
)

const almostOne = 1 - 1.0/(1<<53)

// draws is a scripted source; it fails the test when it is asked too often.
func draws(t *testing.T, numbers ...float64) outcome.Random {
	t.Helper()
	return func() float64 {
		if len(numbers) == 0 {
			t.Fatal("one draw too many")
		}
		u := numbers[0]
		numbers = numbers[1:]
		return u
	}
}

func header(values ...string) textproto.MIMEHeader {
	h := textproto.MIMEHeader{}
	for i := 0; i < len(values); i += 2 {
		h.Add(values[i], values[i+1])
	}
	return h
}

func TestPU59AcceptedIsExactly2xx(t *testing.T) {
	for status := range 1000 {
		accepted := status >= 200 && status <= 299
		if got := outcome.OfStatus(status); got == rendezvous.ClassAccepted != accepted || accepted == outcome.Charged(got) {
			t.Errorf("%d: %s, charged %v", status, got, outcome.Charged(got))
		}
	}
	for _, status := range []int{300, 301, 302, 303, 304, 307, 308, 399} {
		if got := outcome.OfStatus(status); got != rendezvous.ClassRedirect {
			t.Errorf("%d: %s", status, got)
		}
	}
}

func TestPU60ClassesOfStatuses(t *testing.T) {
	for class, statuses := range map[rendezvous.PushClass][]int{
		rendezvous.ClassGone: {410}, rendezvous.ClassRejected: {400, 413, 415, 422}, rendezvous.ClassRefused: {401, 403}, rendezvous.ClassThrottled: {429, 503},
		rendezvous.ClassFailed: {0, 101, 199, 402, 404, 405, 408, 409, 411, 421, 423, 425, 451, 499, 500, 501, 502, 504, 599, 600, 999},
	} {
		for _, status := range statuses {
			if got := outcome.OfStatus(status); got != class {
				t.Errorf("%d: %s, want %s", status, got, class)
			}
		}
	}
}

// Section 6, column by column: what each class does to a registration that failed once before.
func TestPU60WhatFollowsFromAClass(t *testing.T) {
	state := outcome.State{Attempts: 1, FailingSince: at.Add(-time.Minute)}
	for class, want := range map[rendezvous.PushClass]struct {
		action outcome.Action
		reason rendezvous.ParkReason
		wait   time.Duration
	}{
		rendezvous.ClassAccepted:  {outcome.Advance, "", 0},
		rendezvous.ClassGone:      {outcome.Park, rendezvous.ParkGone, 0},
		rendezvous.ClassRejected:  {outcome.Retry, "", 100 * time.Millisecond},
		rendezvous.ClassRefused:   {outcome.Retry, "", time.Minute},
		rendezvous.ClassThrottled: {outcome.Retry, "", 5 * time.Second},
		rendezvous.ClassRedirect:  {outcome.Retry, "", 100 * time.Millisecond},
		rendezvous.ClassFailed:    {outcome.Retry, "", 100 * time.Millisecond},
		rendezvous.ClassSilent:    {outcome.Retry, "", 100 * time.Millisecond},
		rendezvous.ClassForbidden: {outcome.Retry, "", 100 * time.Millisecond},
		rendezvous.ClassConfig:    {outcome.Park, rendezvous.ParkNotHTTPS, 0},
		rendezvous.ClassAuth:      {outcome.Retry, "", 100 * time.Millisecond},
		rendezvous.ClassProxy:     {outcome.Release, "", time.Second},
		rendezvous.ClassOwn:       {outcome.Release, "", time.Second},
		rendezvous.ClassFault:     {outcome.Retry, "", 100 * time.Millisecond},
	} {
		got := outcome.Decide(state, outcome.Result{Class: class, At: at, Park: rendezvous.ParkNotHTTPS}, defaults, func() float64 { return 0 })
		if got.Action != want.action || got.Reason != want.reason || want.wait > 0 && !got.Next.Equal(at.Add(want.wait)) || want.wait == 0 && !got.Next.IsZero() {
			t.Errorf("%s: %+v, want %+v", class, got, want)
		}
	}
	if got := outcome.Decide(state, outcome.Result{Class: rendezvous.ClassOwn, At: at}, defaults, draws(t, almostOne)); !got.Next.Equal(at.Add(5 * time.Second)) {
		t.Errorf("released until %v, want at most 5 s", got.Next.Sub(at))
	}
}

func TestPU60RejectionsOfOneMessageAreCounted(t *testing.T) {
	state := outcome.State{FailingSince: at}
	reject := outcome.Result{Class: rendezvous.ClassRejected, At: at}
	for n := 1; n <= 8; n++ {
		got := outcome.Decide(state, reject, defaults, func() float64 { return 0.5 })
		if got.Rejects != n || (got.Action == outcome.Park) != (n == 8) || n == 8 && got.Reason != rendezvous.ParkRejected {
			t.Errorf("rejection %d: %+v", n, got)
		}
		state.Attempts, state.Rejects = state.Attempts+1, got.Rejects
	}
	// Something else in between, or another message, and the count begins anew; trouble of our own changes nothing.
	state = outcome.State{Attempts: 7, Rejects: 7}
	if got := outcome.Decide(state, outcome.Result{Class: rendezvous.ClassFailed, At: at}, defaults, func() float64 { return 0 }); got.Rejects != 0 {
		t.Errorf("behind a 500: %d", got.Rejects)
	}
	if got := outcome.Decide(state, outcome.Result{Class: rendezvous.ClassOwn, At: at}, defaults, func() float64 { return 0 }); got.Rejects != 7 {
		t.Errorf("behind a shutdown: %d", got.Rejects)
	}
	if got := outcome.Decide(outcome.State{Attempts: 7}, reject, defaults, func() float64 { return 0 }); got.Action != outcome.Retry || got.Rejects != 1 {
		t.Errorf("the next message: %+v", got)
	}
	if got := outcome.Decide(outcome.State{}, reject, outcome.Limits{MaxAttempts: 64, OnRejectLimit: 1, MaxAge: time.Hour}, func() float64 { return 0 }); got.Action != outcome.Park {
		t.Errorf("a limit of one: %+v", got)
	}
}

func TestPU61AdviceIsAFloor(t *testing.T) {
	advice := outcome.ReadAdvice(header("Retry-After", "90"), at, outcome.DefaultAdviceCap)
	result := outcome.Result{Class: rendezvous.ClassThrottled, At: at, Advice: advice}
	if got := outcome.Decide(outcome.State{}, result, defaults, draws(t, 0, 0)); !got.Next.Equal(at.Add(90 * time.Second)) {
		t.Errorf("u2 = 0: %v, want 90 s exactly", got.Next.Sub(at))
	}
	if got := outcome.Decide(outcome.State{}, result, defaults, draws(t, 0, almostOne)); !got.Next.Equal(at.Add(99 * time.Second)) {
		t.Errorf("u2 near 1: %v, want a tenth more", got.Next.Sub(at))
	}
	if got := outcome.Decide(outcome.State{Attempts: 20}, result, defaults, draws(t, almostOne, 0)); !got.Next.Equal(at.Add(time.Hour)) {
		t.Errorf("own backoff is longer: %v", got.Next.Sub(at))
	}
	random := rand.New(rand.NewPCG(1, 2))
	for n := range 2000 {
		if got := outcome.Decide(outcome.State{Attempts: n % 70 % 63}, result, defaults, random.Float64); got.Next.Before(at.Add(90 * time.Second)) {
			t.Fatalf("earlier than asked: %v", got.Next.Sub(at))
		}
	}
	long := outcome.Result{Class: rendezvous.ClassFailed, At: at, Advice: outcome.Advice{Wait: 10 * time.Hour}}
	if got := outcome.Decide(outcome.State{}, long, defaults, draws(t, 0, almostOne)); !got.Next.Equal(at.Add(10*time.Hour + 30*time.Second)) {
		t.Errorf("the spread is 30 s at most: %v", got.Next.Sub(at))
	}
}

// PU-62: a date is measured from the answer's own Date, so a receiver's clock may be an hour off.
func TestPU62ADateIsMeasuredByTheReceiversClock(t *testing.T) {
	const form = "Mon, 02 Jan 2006 15:04:05 GMT"
	for _, off := range []time.Duration{-time.Hour, 0, time.Hour} {
		theirs := at.Truncate(time.Second).Add(off)
		h := header("Date", theirs.Format(form), "Retry-After", theirs.Add(90*time.Second).Format(form))
		result := outcome.Result{Class: rendezvous.ClassThrottled, At: at, Advice: outcome.ReadAdvice(h, at, outcome.DefaultAdviceCap)}
		if got := outcome.Decide(outcome.State{}, result, defaults, draws(t, 0, 0)); !got.Next.Equal(at.Add(90 * time.Second)) {
			t.Errorf("%v off: %v", off, got.Next.Sub(at))
		}
	}
}

func TestPU61WhatIsAdvice(t *testing.T) {
	const most = 24 * time.Hour
	now := time.Date(2026, 11, 29, 16, 0, 0, 250_000_001, time.UTC)
	date := func(d time.Duration, form string) string { return now.Truncate(time.Second).Add(d).Format(form) }
	const rfc850, asctime = "Monday, 02-Jan-06 15:04:05 GMT", time.ANSIC
	imf := "Mon, 02 Jan 2006 15:04:05 GMT"
	for name, c := range map[string]struct {
		header textproto.MIMEHeader
		want   outcome.Advice
	}{
		"none":                   {header(), outcome.Advice{}},
		"seconds":                {header("Retry-After", "120"), outcome.Advice{Wait: 2 * time.Minute}},
		"blanks around":          {header("Retry-After", " 120 "), outcome.Advice{Wait: 2 * time.Minute}},
		"leading zeros":          {header("Retry-After", "000120"), outcome.Advice{Wait: 2 * time.Minute}},
		"zero":                   {header("Retry-After", "0"), outcome.Advice{}},
		"negative":               {header("Retry-After", "-5"), outcome.Advice{}},
		"signed":                 {header("Retry-After", "+5"), outcome.Advice{}},
		"fractional":             {header("Retry-After", "1.5"), outcome.Advice{}},
		"text":                   {header("Retry-After", "soon"), outcome.Advice{}},
		"empty":                  {header("Retry-After", ""), outcome.Advice{}},
		"other digits":           {header("Retry-After", "１２"), outcome.Advice{}},
		"a list":                 {header("Retry-After", "5, 6"), outcome.Advice{}},
		"the cap":                {header("Retry-After", "86400"), outcome.Advice{Wait: most}},
		"over the cap":           {header("Retry-After", "86401"), outcome.Advice{Wait: most, Capped: true}},
		"any number of digits":   {header("Retry-After", "99999999999999999999999999999999999999999999"), outcome.Advice{Wait: most, Capped: true}},
		"the longest of many":    {header("Retry-After", "5", "Retry-After", "soon", "Retry-After", "7", "Retry-After", "6"), outcome.Advice{Wait: 7 * time.Second}},
		"a cap among many":       {header("Retry-After", "86400", "Retry-After", "86401"), outcome.Advice{Wait: most, Capped: true}},
		"IMF date":               {header("Retry-After", date(time.Minute, imf)), outcome.Advice{Wait: 59*time.Second + 750*time.Millisecond}},
		"RFC 850 date":           {header("Retry-After", date(time.Minute, rfc850)), outcome.Advice{Wait: 59*time.Second + 750*time.Millisecond}},
		"asctime date":           {header("Retry-After", date(time.Minute, asctime)), outcome.Advice{Wait: 59*time.Second + 750*time.Millisecond}},
		"a date that is over":    {header("Retry-After", date(-time.Minute, imf)), outcome.Advice{}},
		"a date beyond the cap":  {header("Retry-After", date(48*time.Hour, imf)), outcome.Advice{Wait: most, Capped: true}},
		"RFC 3339":               {header("Retry-After", date(time.Minute, time.RFC3339)), outcome.Advice{}},
		"a clock an hour ahead":  {header("Retry-After", date(time.Hour+time.Minute, imf), "Date", date(time.Hour, imf)), outcome.Advice{Wait: time.Minute}},
		"a clock an hour behind": {header("Retry-After", date(-time.Hour+time.Minute, imf), "Date", date(-time.Hour, imf)), outcome.Advice{Wait: time.Minute}},
		"a Date that is none":    {header("Retry-After", date(time.Minute, imf), "Date", "today"), outcome.Advice{Wait: 59*time.Second + 750*time.Millisecond}},
	} {
		if got := outcome.ReadAdvice(c.header, now, most); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	if got := outcome.Decide(outcome.State{}, outcome.Result{Class: rendezvous.ClassFailed, At: at}, defaults, draws(t, 0)); !got.Next.Equal(at.Add(100 * time.Millisecond)) {
		t.Errorf("no advice: own backoff, with one draw: %v", got.Next.Sub(at))
	}
}

func TestPU63TheWindowsOfTheSchedule(t *testing.T) {
	for n := 1; n <= 20; n++ {
		window := time.Hour
		if n <= 12 {
			window = time.Duration(1<<(n-1)) * time.Second
		}
		decide := func(u float64) time.Duration {
			return outcome.Decide(outcome.State{Attempts: n - 1}, outcome.Result{Class: rendezvous.ClassFailed, At: at}, defaults, draws(t, u)).Next.Sub(at)
		}
		if low, high := decide(0), decide(almostOne); low != 100*time.Millisecond || high != window {
			t.Errorf("n = %d: %v to %v, want 100 ms to %v", n, low, high, window)
		}
		if middle := decide(0.5); middle != (window+100*time.Millisecond)/2 {
			t.Errorf("n = %d: %v in the middle", n, middle)
		}
	}
	for _, n := range []int{-1, 0, 64, 10_000, 1<<31 - 1} {
		if got := outcome.Backoff(n, almostOne); got < 100*time.Millisecond || got > time.Hour {
			t.Errorf("n = %d: %v", n, got)
		}
	}
	many := outcome.Limits{MaxAttempts: 1 << 40, OnRejectLimit: 1, MaxAge: time.Hour}
	if got := outcome.Decide(outcome.State{Attempts: 1<<31 - 1}, outcome.Result{Class: rendezvous.ClassFailed, At: at}, many, draws(t, almostOne)); got.Action != outcome.Retry || got.Next.Sub(at) != time.Hour {
		t.Errorf("at the end of counting: %+v", got)
	}
}

func TestPU64JitterSpreadsAndRepeats(t *testing.T) {
	schedule := func(seed uint64) []time.Time {
		random := rand.New(rand.NewPCG(seed, 1))
		var list []time.Time
		for range 8 {
			list = append(list, outcome.Decide(outcome.State{}, outcome.Result{Class: rendezvous.ClassSilent, At: at}, defaults, random.Float64).Next)
		}
		return list
	}
	one := schedule(1)
	if !slices.EqualFunc(one, schedule(1), time.Time.Equal) {
		t.Error("the same source gives another schedule")
	}
	distinct := map[time.Time]bool{}
	for _, next := range one {
		distinct[next] = true
		if next.Sub(at)%time.Millisecond != 0 {
			t.Errorf("%v is not in whole milliseconds", next.Sub(at))
		}
	}
	if len(distinct) < 5 {
		t.Errorf("eight failures together get %d instants", len(distinct))
	}
}

func TestPU65TheCeilingOfAttempts(t *testing.T) {
	limits := outcome.Limits{MaxAttempts: 3, OnRejectLimit: 8, MaxAge: time.Hour}
	for attempts, want := range map[int]outcome.Action{0: outcome.Retry, 1: outcome.Retry, 2: outcome.Park, 3: outcome.Park} {
		got := outcome.Decide(outcome.State{Attempts: attempts}, outcome.Result{Class: rendezvous.ClassFailed, At: at}, limits, func() float64 { return 0 })
		if got.Action != want || want == outcome.Park && got.Reason != rendezvous.ParkExhausted {
			t.Errorf("after %d: %+v", attempts, got)
		}
	}
	limits.MaxAttempts = 1
	if got := outcome.Decide(outcome.State{}, outcome.Result{Class: rendezvous.ClassSilent, At: at}, limits, draws(t)); got.Action != outcome.Park {
		t.Errorf("one attempt only: %+v", got)
	}
	// PU-50: a fault that exhausts them says so.
	if got := outcome.Decide(outcome.State{}, outcome.Result{Class: rendezvous.ClassFault, At: at}, limits, draws(t)); got.Reason != rendezvous.ParkFault {
		t.Errorf("a fault: %+v", got)
	}
	if got := outcome.Decide(outcome.State{Attempts: 99}, outcome.Result{Class: rendezvous.ClassOwn, At: at}, limits, draws(t, 0)); got.Action != outcome.Release {
		t.Errorf("our own trouble parks: %+v", got)
	}
}

func TestPU66TheCeilingOfAge(t *testing.T) {
	for age, want := range map[time.Duration]outcome.Action{72 * time.Hour: outcome.Retry, 72*time.Hour + time.Microsecond: outcome.Park} {
		got := outcome.Decide(outcome.State{Attempts: 5, FailingSince: at.Add(-age)}, outcome.Result{Class: rendezvous.ClassFailed, At: at}, defaults, func() float64 { return 0 })
		if got.Action != want || want == outcome.Park && got.Reason != rendezvous.ParkExpired {
			t.Errorf("failing for %v: %+v", age, got)
		}
	}
	if got := outcome.Decide(outcome.State{}, outcome.Result{Class: rendezvous.ClassFailed, At: at}, defaults, draws(t, 0)); got.Action != outcome.Retry {
		t.Errorf("the first failure: %+v", got)
	}
	if got := outcome.Decide(outcome.State{Attempts: 5, FailingSince: at.Add(-100 * time.Hour)}, outcome.Result{Class: rendezvous.ClassAccepted, At: at}, defaults, draws(t)); got.Action != outcome.Advance {
		t.Errorf("an acceptance after long: %+v", got)
	}
}
