package rendezvous

import "hash/fnv"

// Shard is the slice of a workflow among n: FNV-1a 64 over tenant, one 0x00, workflow id, modulo n (shards.md section 1).
func Shard(tenant, workflowID string, n int) int {
	h := fnv.New64a()
	h.Write([]byte(tenant))
	h.Write([]byte{0})
	h.Write([]byte(workflowID))
	return int(h.Sum64() % uint64(n))
}
