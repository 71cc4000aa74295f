package node_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/rendezvous-events/rendezvous/internal/nodetest"
)

// queries are the expressions of the alert rules and of the dashboard, by what they belong to.
func queries(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	read := func(into any, unmarshal func([]byte, any) error, path ...string) {
		raw, err := os.ReadFile(filepath.Join(append([]string{"..", "..", "deploy"}, path...)...))
		must(t, err)
		must(t, unmarshal(raw, into))
	}
	var rules struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	read(&rules, yaml.Unmarshal, "prometheus", "alerts.yaml")
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			if r.Alert == "" || r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
				t.Errorf("a rule of %s lacks something: %+v", g.Name, r)
			}
			found["alert "+r.Alert] = r.Expr
		}
	}
	var board struct {
		Panels []struct {
			Title, Type string
			Targets     []struct{ Expr string }
		}
	}
	read(&board, json.Unmarshal, "grafana", "rendezvous.json")
	for _, p := range board.Panels {
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("the panel %q shows nothing", p.Title)
		}
		for i, target := range p.Targets {
			found["panel "+p.Title+" "+string(rune('A'+i))] = target.Expr
		}
	}
	return found
}

var (
	metricName = regexp.MustCompile(`\brendezvous_\w+`)
	selector   = regexp.MustCompile(`\b(rendezvous_\w+)\{(\w+)="(\w+)"\}`)
	grouping   = regexp.MustCompile(`\bby \(([^)]*)\)`)
)

// What the alert rules and the dashboard ask for is exported by a process of all roles: names, labels they group by, and the words they choose by; and every metric of the
// plane is on the dashboard.
func TestAlertsAndDashboardAskForWhatIsExported(t *testing.T) {
	n := nodetest.Start(t, pushed(t))
	traffic(t, n)
	body := exported(t, n)
	shown := ""
	for what, expr := range queries(t) {
		if strings.HasPrefix(what, "panel ") {
			shown += expr + "\n"
		}
		names := metricName.FindAllString(expr, -1)
		if len(names) == 0 {
			t.Errorf("%s asks for nothing of the plane: %s", what, expr)
		}
		for _, name := range names {
			if !regexp.MustCompile(`(?m)^` + name + `[{ ]`).MatchString(body) {
				t.Errorf("%s asks for %s, which is not exported", what, name)
			}
			for _, g := range grouping.FindAllStringSubmatch(expr, -1) {
				for _, l := range strings.Split(g[1], ", ") {
					if series := strings.TrimSuffix(name, "_bucket"); l != "le" && !slices.Contains(seriesLabels(body, series), l) {
						t.Errorf("%s groups by %s, which %s does not have", what, l, name)
					}
				}
			}
		}
		for _, s := range selector.FindAllStringSubmatch(expr, -1) {
			if !regexp.MustCompile(`(?m)^` + s[1] + `\{[^}]*\b` + s[2] + `="` + s[3] + `"`).MatchString(body) {
				t.Errorf("%s chooses %s, which is not exported", what, s[0])
			}
		}
	}
	for _, m := range typeLine.FindAllStringSubmatch(body, -1) {
		if !strings.Contains(shown, m[1]) {
			t.Errorf("no panel shows %s", m[1])
		}
	}
}
