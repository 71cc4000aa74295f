package client_test

import (
	"testing"

	"github.com/rendezvous-events/rendezvous/client"
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
