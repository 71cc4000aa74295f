package rendezvous

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// DefaultTenant and DefaultQueue are used where a caller names none.
const (
	DefaultTenant = "default"
	DefaultQueue  = "default"
)

// reservedTenants are subject tokens of the plane itself (history.md section 1).
var reservedTenants = []string{"match", "push", "timer", "tick", "note"}

// CheckTenant judges a tenant's name (HI-47).
func CheckTenant(name string) error {
	if err := checkToken("tenant", name); err != nil {
		return err
	}
	if slices.Contains(reservedTenants, name) {
		return InvalidField("tenant", "%q is reserved; choose another name", name)
	}
	return nil
}

// CheckQueue judges a queue's name (HI-47).
func CheckQueue(name string) error { return checkToken("queue", name) }

func checkToken(field, s string) error {
	if len(s) > MaxToken {
		return InvalidField(field, "%d bytes are over the limit of %d", len(s), MaxToken).With("limit", MaxToken).With("value", len(s))
	}
	if s == "" {
		return InvalidField(field, "is empty; give 1..%d of A-Z a-z 0-9 _ -", MaxToken)
	}
	for i := range len(s) {
		c := s[i]
		if c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return InvalidField(field, "%q has a byte outside A-Z a-z 0-9 _ - at %d", s, i)
		}
	}
	return nil
}

// CheckID judges an id: 1..512 bytes of valid UTF-8 without control characters (history.md section 1, EV-9).
func CheckID(field, s string) error { return checkText(field, s, 1, MaxID) }

// CheckBatchID judges a batch or acquire id: 1..128 bytes.
func CheckBatchID(field, s string) error { return checkText(field, s, 1, MaxBatchID) }

// CheckReason judges free text of at most 512 bytes, which may be empty and may hold line breaks and tabs.
func CheckReason(field, s string) error {
	return checkText(field, strings.NewReplacer("\n", " ", "\r", " ", "\t", " ").Replace(s), 0, MaxReason)
}

// CheckContentType judges a content type, which may be empty.
func CheckContentType(s string) error { return checkText("content_type", s, 0, MaxContentType) }

func checkText(field, s string, least, most int) error {
	switch {
	case len(s) > most:
		return OverLimit(field, most, len(s))
	case len(s) < least:
		return InvalidField(field, "is empty; give %d..%d bytes", least, most)
	case !utf8.ValidString(s):
		return InvalidField(field, "is not valid UTF-8")
	}
	for i, r := range s {
		if r < 0x20 || (r >= 0x7f && r <= 0x9f) {
			return InvalidField(field, "has the control character U+%04X at byte %d", r, i)
		}
	}
	return nil
}
