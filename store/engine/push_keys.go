package engine

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/standardwebhooks"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// shown is how long a generated key is shown to who repeats its rotation.
const shown = 10 * time.Minute

// RotatePush implements [store.PushStore].
func (t *tenant) RotatePush(ctx context.Context, r store.PushRotation) (store.PushRotated, error) {
	key, err := rotationKey(&r)
	if err != nil {
		return store.PushRotated{}, err
	}
	var out store.PushRotated
	var refused error
	_, err = t.update(ctx, "rotate_push", time.Time{}, func(ctx context.Context, u *unit) error {
		p, gone, err := u.pushOf(ctx, t.pushKey(r.PushKey), 0)
		if refused = gone; p == nil {
			return err
		}
		out, refused = u.rotate(p, r, key)
		return nil
	})
	if err == nil {
		err = refused
	}
	if err != nil {
		return store.PushRotated{}, err
	}
	return out, nil
}

// rotationKey judges a rotation and answers its key, generated where none is given.
func rotationKey(r *store.PushRotation) (rendezvous.SigningKey, error) {
	if err := checkPushKey(r.PushKey); err != nil {
		return rendezvous.SigningKey{}, err
	}
	if err := rendezvous.CheckBatchID("op", r.Op); err != nil {
		return rendezvous.SigningKey{}, err
	}
	grace := store.DefaultPushGrace
	if r.Grace != nil {
		grace = *r.Grace
	}
	if grace < 0 || grace > store.MaxPushGrace {
		return rendezvous.SigningKey{}, rendezvous.InvalidField("grace", "%s is outside 0..%s", grace, store.MaxPushGrace).
			With("limit", store.MaxPushGrace.String()).With("value", grace.String())
	}
	r.Grace = &grace
	text := r.Key
	if !text.Set() {
		if r.Algorithm == "" {
			r.Algorithm = string(standardwebhooks.HMAC)
		}
		made, err := standardwebhooks.Generate(standardwebhooks.Algorithm(r.Algorithm), rand.Reader)
		if err != nil {
			return rendezvous.SigningKey{}, rendezvous.InvalidField("algorithm", "is none of %s, %s", standardwebhooks.HMAC, standardwebhooks.Ed25519)
		}
		text = rendezvous.NewSecret(made.Reveal())
	}
	return rendezvous.CheckSigningKey("key", rendezvous.SigningKey{Key: text})
}

// rotate puts a key before the others, which end after the grace; those that have ended go.
func (u *unit) rotate(p *backend.Push, r store.PushRotation, key rendezvous.SigningKey) (store.PushRotated, error) {
	if p.Settings.Rotated.Op == r.Op {
		return u.rotatedBefore(p), nil
	}
	if p.Namespace == rendezvous.PushOperator {
		return store.PushRotated{}, rendezvous.InvalidField("id", "registration %q is an operator's; its keys are configuration", p.ID)
	}
	end := rendezvous.DueInstant(u.now.Add(*r.Grace))
	key.CreatedAt = u.now
	keys := []rendezvous.SigningKey{key}
	for _, k := range p.Settings.Signing {
		if k.ID == key.ID {
			return store.PushRotated{}, conflict("key", k.ID, "registration %q of run %q has that key already", p.ID, p.RunID)
		}
		if k.ExpiresAt.IsZero() || k.ExpiresAt.After(end) {
			k.ExpiresAt = end
		}
		if !k.Expired(u.now) {
			keys = append(keys, k)
		}
	}
	if len(keys) > rendezvous.MaxSigningKeys {
		return store.PushRotated{}, rendezvous.OverLimit("signing", rendezvous.MaxSigningKeys, len(keys))
	}
	generated := !r.Key.Set()
	p.Settings.Signing = keys
	p.Settings.Rotated = backend.PushRotated{Op: r.Op, KeyID: key.ID, Generated: generated, At: u.now}
	p.Resettled = true
	p.Version++
	u.revoke(p)
	u.savePush(p)
	return u.showRotated(p, key, generated), nil
}

func (u *unit) showRotated(p *backend.Push, key rendezvous.SigningKey, show bool) store.PushRotated {
	if !show {
		key.Key = rendezvous.Secret{}
	}
	return store.PushRotated{Key: key, Version: p.Version}
}

// rotatedBefore answers the repeat of the last rotation: the same key, shown for a while if it was generated.
func (u *unit) rotatedBefore(p *backend.Push) store.PushRotated {
	done := p.Settings.Rotated
	key := rendezvous.SigningKey{ID: done.KeyID, CreatedAt: done.At}
	for _, k := range p.Settings.Signing {
		if k.ID == done.KeyID {
			key = k
		}
	}
	out := u.showRotated(p, key, done.Generated && u.now.Before(done.At.Add(shown)))
	out.Again = true
	return out
}
