package wire

// ListShards is the request of shards.list.
type ListShards struct {
	Pool string `json:"pool,omitempty"` // "": every pool that anybody joined, and timer
}

// ShardList is the reply of shards.list: who owns what, by pool and number.
type ShardList struct {
	Shards  []Shard  `json:"shards"`
	Members []Member `json:"members"`
	Now     Time     `json:"now"` // the store's
}

// Shard is a row of shards.list.
type Shard struct {
	Pool        string `json:"pool"`
	Shard       int    `json:"shard"`
	Owner       string `json:"owner,omitempty"` // "": nobody
	Epoch       int64  `json:"epoch"`           // 0: it was never owned
	ExpiresAt   Time   `json:"expires_at,omitzero"`
	RemainingMS int64  `json:"remaining_ms,omitempty"` // absent: the lease is free or has run out
	Serving     bool   `json:"serving,omitempty"`
	Address     string `json:"address,omitempty"`
}

// Member is a pod of a pool.
type Member struct {
	Pool        string `json:"pool"`
	Incarnation string `json:"incarnation"`
	Address     string `json:"address,omitempty"`
	StartedAt   Time   `json:"started_at"`
	Draining    bool   `json:"draining,omitempty"`
	ExpiresAt   Time   `json:"expires_at"`
}
