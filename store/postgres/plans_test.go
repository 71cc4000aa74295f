package postgres_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/rendezvous-events/rendezvous/store/postgres"
)

// planNode is a node of a plan that was carried out.
type planNode struct {
	Type        string     `json:"Node Type"`
	Relation    string     `json:"Relation Name"`
	Index       string     `json:"Index Name"`
	Rows        float64    `json:"Actual Rows"`
	Loops       float64    `json:"Actual Loops"`
	Filtered    float64    `json:"Rows Removed by Filter"`
	JoinDropped float64    `json:"Rows Removed by Join Filter"`
	Plans       []planNode `json:"Plans"`
}

// ranPlan is one statement the store ran, with the plan it had.
type ranPlan struct {
	Query string   `json:"Query Text"`
	Plan  planNode `json:"Plan"`
}

// name is the statement's first comment, or its beginning.
func (p ranPlan) name() string {
	line, _, _ := strings.Cut(p.Query, "\n")
	return strings.TrimPrefix(line, "-- ")
}

func (n planNode) walk(visit func(n planNode, outer *planNode)) { n.walkUnder(nil, visit) }

func (n planNode) walkUnder(outer *planNode, visit func(n planNode, outer *planNode)) {
	visit(n, outer)
	for i := range n.Plans {
		n.Plans[i].walkUnder(&n, visit)
	}
}

// locks reports whether the plan locks rows.
func (n planNode) locks() (locks bool) {
	n.walk(func(n planNode, _ *planNode) { locks = locks || n.Type == "LockRows" })
	return locks
}

// touched is how many rows of tables the plan looked at, those included that it looked at in vain.
func (n planNode) touched() (rows float64) {
	n.walk(func(n planNode, _ *planNode) {
		if n.Relation != "" && strings.Contains(n.Type, "Scan") {
			rows += (n.Rows + n.Filtered) * n.Loops
		}
		rows += n.JoinDropped * n.Loops
	})
	return rows
}

// law is what every plan of the store keeps, whatever the statistics.
func (p ranPlan) law(t *testing.T) {
	t.Helper()
	p.Plan.walk(func(n planNode, outer *planNode) {
		switch n.Type {
		case "Seq Scan", "Hash Join", "Merge Join", "Hash", "Materialize", "Memoize", "Bitmap Heap Scan":
			t.Errorf("%s\nhas a %s on %s", p.Query, n.Type, n.Relation)
		}
		// What arrays drive is driven by them: rows are locked in their order, and each costs one look into an index.
		if n.Type == "Nested Loop" && (outer != nil && outer.Type == "ModifyTable" || n.Plans[1].locks()) && n.Plans[0].Type != "Function Scan" {
			t.Errorf("%s\nis driven by a %s", p.Query, n.Plans[0].Type)
		}
	})
}

// observer hears of every statement of a store.
type observer struct {
	mu    sync.Mutex
	plans []ranPlan
	bad   error
}

// observed opens the store at address under the eyes of auto_explain.
func observed(tb testing.TB, address string) (*postgres.Backend, *observer) {
	tb.Helper()
	u, err := url.Parse(address)
	if err != nil {
		tb.Fatal(err)
	}
	q := u.Query()
	for name, value := range map[string]string{
		"session_preload_libraries": "auto_explain", "auto_explain.log_min_duration": "0", "auto_explain.log_level": "notice", "client_min_messages": "notice",
		"auto_explain.log_format": "json", "auto_explain.log_analyze": "on", "auto_explain.log_timing": "off",
	} {
		q.Set(name, value)
	}
	u.RawQuery = q.Encode()
	o := &observer{}
	return open(tb, u.String(), func(c *postgres.Config) {
		postgres.OnNotice(c, o.notice)
		c.MaxConns = 1 // so that what was planned once is planned for good
	}), o
}

func (o *observer) notice(message string) {
	_, text, ok := strings.Cut(message, "plan:\n")
	if !ok {
		return
	}
	var p ranPlan
	err := json.Unmarshal([]byte(text), &p)
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil {
		o.bad = fmt.Errorf("%w in %s", err, text)
	}
	o.plans = append(o.plans, p)
}

// during are the plans of what fn runs on the store.
func (o *observer) during(t *testing.T, fn func()) []ranPlan {
	t.Helper()
	o.take(t)
	fn()
	return o.take(t)
}

func (o *observer) take(t *testing.T) []ranPlan {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.bad != nil {
		t.Fatal(o.bad)
	}
	plans := o.plans
	o.plans = nil
	return plans
}
