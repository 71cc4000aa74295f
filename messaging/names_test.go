package messaging_test

import (
	"fmt"
	"hash/fnv"
	"testing"

	rendezvous "github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/messaging"
)

func TestPartitionVectors(t *testing.T) {
	for _, v := range []struct {
		tenant, namespace, value, a, b string
		joined                         string
	}{
		{"default", "order", "4711", "urn:psp", "p-1", "default\x00order\x004711"},
		{"acme", "", "", "urn:psp", "p-1", "acme\x00urn:psp\x00p-1"},
		{"acme", "customer", "Zoë", "", "", "acme\x00customer\x00Zoë"},
	} {
		h := fnv.New64a()
		h.Write([]byte(v.joined))
		want := int(h.Sum64() % 16)
		if got := messaging.Partition(v.tenant, rendezvous.Key{Namespace: v.namespace, Value: v.value}, v.a, v.b); got != want {
			t.Errorf("%q: partition %d, want %d", v.joined, got, want)
		}
	}
	// Fixed for ever: another number means messages nobody reads.
	if got := messaging.Partition("default", rendezvous.Key{Namespace: "order", Value: "4711"}, "", ""); got != 5 {
		t.Errorf("default order=4711 is partition %d", got)
	}
}

func TestAnEventAndAWaitOfOneKeyShareAPartitionAndKeysSpread(t *testing.T) {
	used := map[int]bool{}
	for i := range 1000 {
		key := rendezvous.Key{Namespace: "order", Value: fmt.Sprint(i)}
		e := messaging.MatchNotice{Tenant: "acme", Source: "s", ID: fmt.Sprint(i), Key: key}
		w := messaging.MatchNotice{Tenant: "acme", Run: "r", Effect: fmt.Sprint(i), Key: key}
		if e.Partition() != w.Partition() {
			t.Fatalf("key %v: event in %d, wait in %d", key, e.Partition(), w.Partition())
		}
		used[e.Partition()] = true
	}
	if len(used) != messaging.Partitions {
		t.Errorf("1000 keys use %d partitions", len(used))
	}
}

func TestTenantIsTheSecondToken(t *testing.T) {
	n := messaging.NamesOf("rdv")
	for subject, want := range map[string]string{
		"rdv.acme.in.a": "acme", "rdv.a-b_1.in.x.y": "a-b_1", "rdv.match.in.x": "", "rdv.a$.in.x": "", "rdv.acme": "", "other.acme.in.x": "", "": "",
	} {
		got, err := n.TenantOf(subject)
		if err != nil {
			got = ""
		}
		if got != want {
			t.Errorf("%q: tenant %q, want %q", subject, got, want)
		}
	}
}
