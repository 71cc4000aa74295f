package standardwebhooks

import (
	"encoding/hex"
	"strings"
	"testing"
)

// Cases 1, 2 and 6 of RFC 4231 (PU-76): the primitive is the standard's, with a short key, a text key and one longer than a block.
func TestPU76TheMACIsThatOfRFC4231(t *testing.T) {
	for name, c := range map[string]struct{ key, data, want string }{
		"case 1": {strings.Repeat("\x0b", 20), "Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
		"case 2": {"Jefe", "what do ya want for nothing?", "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
		"case 6": {strings.Repeat("\xaa", 131), "Test Using Larger Than Block-Size Key - Hash Key First", "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
	} {
		if got := hex.EncodeToString(mac([]byte(c.key), []byte(c.data[:3]), []byte(c.data[3:]))); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
