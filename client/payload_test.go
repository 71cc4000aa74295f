package client_test

import (
	"errors"
	"testing"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/client"
	"github.com/rendezvous-events/rendezvous/wire"
)

func TestNoPayloadAndAnEmptyOneAreTwoThings(t *testing.T) {
	for name, row := range map[string]struct {
		p    client.Payload
		none bool
	}{
		"the zero payload":     {client.Payload{}, true},
		"only a content type":  {client.Payload{ContentType: "text/plain"}, true},
		"an empty one":         {client.Payload{Data: []byte{}}, false},
		"an empty text":        {client.Text(""), false},
		"JSON null":            {client.JSON(nil), false},
		"what does not encode": {client.JSON(func() {}), false},
	} {
		if got := row.p.IsNone(); got != row.none {
			t.Errorf("%s: none is %v, want %v", name, got, row.none)
		}
	}
}

// What does not encode is never sent as something else.
func TestAPayloadThatDoesNotEncodeIsInvalid(t *testing.T) {
	bad := client.JSON(map[string]any{"f": func() {}})
	if _, err := client.NewEvent("urn:test", "paid", bad); !errors.Is(err, rendezvous.ErrInvalid) {
		t.Errorf("an event of it: %v", err)
	}
	c := ok(client.New(client.Options{URL: "http://127.0.0.1:1"}))(t)
	defer c.Close()
	if _, err := c.StartRun(t.Context(), wire.StartRun{Type: "order", Input: bad.Wire()}); !errors.Is(err, rendezvous.ErrInvalid) {
		t.Errorf("a run of it: %v", err)
	}
}
