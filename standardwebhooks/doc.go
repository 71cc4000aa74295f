// Package standardwebhooks signs messages as Standard Webhooks 1.0 wants them, and judges one signature: keys, their text, and the signature header
// (push.md section 9). Who receives messages takes client/receiver, which also judges their age.
//
// A message is an id, a timestamp in whole unix seconds and a body. What is signed is the three with dots between, byte for byte. There are two algorithms:
//
//	v1    HMAC-SHA256   secret text whsec_ + base64 of 24..64 bytes
//	v1a   ed25519       secret text whsk_ + base64 of 64 bytes (seed, public half) or 32 (seed); public text whpk_ + base64 of 32 bytes
//
// Base64 is the standard alphabet with its padding, and nothing else. The header holds one entry per key, <version>,<base64>, newest key first, single
// spaces between.
//
// Keys are opaque: fmt, JSON, text encodings and slog show one fixed mask for every one of them, also as a field of something else. Only
// [SigningKey.Reveal] gives the text.
//
// The package uses the standard library only and knows nothing of this plane, so that the domain may judge keys with it.
package standardwebhooks
