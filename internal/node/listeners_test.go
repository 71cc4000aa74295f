package node

import (
	"net/netip"
	"slices"
	"testing"
)

// push.md section 11: what listens on every address of this machine is refused there, and not on every host that has something at its port.
func TestAListenerOnAllAddressesIsThatOfThisMachine(t *testing.T) {
	for _, host := range []string{"::", "0.0.0.0"} {
		list, err := addressesOf(host)
		if err != nil || !slices.Contains(list, "127.0.0.1") {
			t.Errorf("%s: %v, %v", host, list, err)
		}
		for _, text := range list {
			if ip, err := netip.ParseAddr(text); err != nil || ip.IsUnspecified() {
				t.Errorf("%s: %q, %v", host, text, err)
			}
		}
	}
	if list, err := addressesOf("localhost"); err != nil || !slices.Equal(list, []string{"127.0.0.1", "::1"}) {
		t.Errorf("localhost: %v, %v", list, err)
	}
}
