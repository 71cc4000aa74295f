package transport

import (
	"bufio"
	"strings"
	"testing"
)

// Whatever a receiver says, what is read of it is bounded, and is an answer or a named fault.
func FuzzReadFinal(f *testing.F) {
	for _, seed := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 500 No\nA: b\n c\n\n", "HTTP/1.1 204\r\n\r\n", "\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, fault := readFinal(bufio.NewReader(strings.NewReader(text)))
		if fault != nil {
			if fault.Code != CodeMalformed && fault.Code != CodeHeaderTooLarge && fault.Code != CodeDisconnected || len(fault.Text) > 512 {
				t.Errorf("%+v", fault)
			}
			return
		}
		if s.status < 0 || s.status > 999 || s.status >= 100 && s.status < 200 && s.status != 101 {
			t.Errorf("status %d", s.status)
		}
		if how, n := s.framing(); n < 0 || how == empty && s.keepsAlive() && s.status == 101 {
			t.Errorf("framing %d, %d bytes", how, n)
		}
	})
}
