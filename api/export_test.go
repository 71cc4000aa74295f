package api

import "context"

// Call answers one request without a door.
func (s *Service) Call(ctx context.Context, tenant, name string, who Caller, body []byte) (any, error) {
	return s.call(ctx, "", tenant, name, who, body)
}

// Fit encodes a reply in at most limit bytes.
func Fit(reply any, limit int) ([]byte, error) { return fit(reply, limit) }
