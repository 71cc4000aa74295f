package backendtest

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous/store/backend"
)

func (t spyTx) Pushes(_ context.Context, keys []backend.PushKey) (map[backend.PushKey]*backend.Push, error) {
	return note[map[backend.PushKey]*backend.Push](t, "Pushes", keys)
}

func (t spyTx) PushesOf(_ context.Context, runs []backend.RunKey) ([]*backend.Push, error) {
	return note[[]*backend.Push](t, "PushesOf", runs)
}

func (t spyTx) DuePushes(_ context.Context, d backend.PushDue, limit int) ([]*backend.Push, error) {
	return note[[]*backend.Push](t, "DuePushes", d, limit)
}

func (t spyTx) CountDuePushes(_ context.Context, d backend.PushDue, most int) (int, error) {
	return note[int](t, "CountDuePushes", d, most)
}

func (t spyTx) NextPush(_ context.Context, d backend.PushDue) (time.Time, error) {
	return note[time.Time](t, "NextPush", d)
}

func (t spyTx) ListParkedPushes(_ context.Context, tenant string, f backend.PushFilter, after backend.PushKey, p backend.Span) ([]*backend.Push, backend.PushKey, error) {
	return note2[[]*backend.Push, backend.PushKey](t, "ListParkedPushes", tenant, f, after, p)
}

func (t spyTx) LongestParkedPushes(_ context.Context, tenant string, f backend.PushFilter, after backend.ParkedPushPosition, p backend.Span) ([]*backend.Push, backend.ParkedPushPosition, error) {
	return note2[[]*backend.Push, backend.ParkedPushPosition](t, "LongestParkedPushes", tenant, f, after, p)
}

func (t spyTx) DuePushRuns(_ context.Context, before time.Time, limit int) ([]backend.DuePushRun, error) {
	return note[[]backend.DuePushRun](t, "DuePushRuns", before, limit)
}

func (t spyTx) PushLog(_ context.Context, key backend.PushKey, incarnation, before int64, limit int) ([]*backend.PushLogEntry, error) {
	return note[[]*backend.PushLogEntry](t, "PushLog", key, incarnation, before, limit)
}

func (t spyTx) PushLogged(_ context.Context, key backend.PushKey, incarnation int64, entryID string) (*backend.PushLogEntry, error) {
	return note[*backend.PushLogEntry](t, "PushLogged", key, incarnation, entryID)
}

func (t spyTx) LockPushes(_ context.Context, keys []backend.PushKey) (map[backend.PushKey]*backend.Push, error) {
	return note[map[backend.PushKey]*backend.Push](t, "LockPushes", keys)
}

func (t spyTx) PushesByToken(_ context.Context, tokens []int64) ([]*backend.Push, error) {
	return note[[]*backend.Push](t, "PushesByToken", tokens)
}

func (t spyTx) PushesOfClaim(_ context.Context, owner, request string) ([]*backend.Push, error) {
	return note[[]*backend.Push](t, "PushesOfClaim", owner, request)
}

func (t spyTx) TakeDuePushes(_ context.Context, c backend.PushClaim) (backend.PushesTaken, error) {
	return note[backend.PushesTaken](t, "TakeDuePushes", c)
}

func (t spyTx) TakeAgedPushes(_ context.Context, before time.Time, limit int) ([]*backend.Push, bool, error) {
	return note2[[]*backend.Push, bool](t, "TakeAgedPushes", before, limit)
}

func (t spyTx) OldPushLog(_ context.Context, before time.Time, limit int) ([]backend.PushLogKey, error) {
	return note[[]backend.PushLogKey](t, "OldPushLog", before, limit)
}

func (t spyTx) LongPushLogs(_ context.Context, keep, limit int) ([]*backend.Push, error) {
	return note[[]*backend.Push](t, "LongPushLogs", keep, limit)
}

func (t spyTx) OldestPushLog(_ context.Context, key backend.PushKey, incarnation int64, n int) ([]backend.PushLogKey, error) {
	return note[[]backend.PushLogKey](t, "OldestPushLog", key, incarnation, n)
}

func (t spyTx) GonePushes(_ context.Context, limit int) ([]*backend.Push, error) {
	return note[[]*backend.Push](t, "GonePushes", limit)
}
