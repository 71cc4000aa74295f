package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/internal/attention"
	"github.com/rendezvous-events/rendezvous/sweep"
)

// topPass is a pass over all processes that were read.
type topPass struct {
	Pass      string             `json:"pass"`
	OldestDue float64            `json:"oldest_due_s"`
	Counts    map[string]float64 `json:"counts"`          // rows, pages, saturated and failed pages, seconds busy
	Rates     map[string]float64 `json:"rates,omitempty"` // the same, a second
}

// Words of what is counted.
var (
	topCounts  = []string{"accepted", "matched", "answered", "resumed", "registered"}
	passCounts = []string{"rows", "pages", "saturated", "failed", "busy"}
)

// meters reads the metrics pages of processes. Their counters begin anew with a process, so each is compared with itself before.
type meters struct {
	http    http.Client
	sources []*source
	raised  []attention.Reason // by sweepers, at the last look
}

// source is one process.
type source struct {
	url    string
	name   string // what is shown of it
	at     time.Time
	before sample
}

// sample is what one page says. Counts of passes have the name pass/count.
type sample struct {
	counts map[string]float64
	oldest map[string]float64 // by pass
	raised map[string]bool    // reasons
}

func newMeters(addresses []string, server string) (*meters, error) {
	m := &meters{}
	if len(addresses) == 0 {
		// Another port is another plane's, whose numbers would be taken for this one's.
		if u, err := url.Parse(server); err == nil && here(u.Hostname()) && u.Port() == "7480" {
			addresses = []string{"http://" + net.JoinHostPort(u.Hostname(), "7481")}
		}
	}
	for _, a := range addresses {
		if !strings.Contains(a, "://") {
			a = "http://" + a
		}
		u, err := url.Parse(a)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, rendezvous.InvalidField("metrics", "is not the URL of an admin address, such as http://127.0.0.1:7481")
		}
		m.sources = append(m.sources, &source{url: u.JoinPath("metrics").String(), name: u.Host})
	}
	return m, nil
}

// hostOf is what is shown of a URL: no user, no path.
func hostOf(server string) string {
	u, err := url.Parse(server)
	if err != nil {
		return ""
	}
	return u.Host
}

// here is whether a host is this machine.
func here(host string) bool { return host == "localhost" || net.ParseIP(host).IsLoopback() }

// read reads all pages at once and adds them up: counters by their sum, ages by the greatest, since every sweeper sees the same store.
func (m *meters) read(ctx context.Context, l *topLook) {
	m.raised = nil
	samples, errs := make([]sample, len(m.sources)), make([]error, len(m.sources))
	var all sync.WaitGroup
	for i, s := range m.sources {
		all.Go(func() { samples[i], errs[i] = m.fetch(ctx, s.url) })
	}
	all.Wait()
	counts, rates, oldest, raised := map[string]float64{}, map[string]float64{}, map[string]float64{}, map[string]bool{}
	compared := false
	for i, s := range m.sources {
		if errs[i] != nil {
			l.Unread = append(l.Unread, s.name+": "+errs[i].Error())
			continue
		}
		now := clock.System.Now()
		for name, n := range samples[i].counts {
			counts[name] += n
			if seconds := now.Sub(s.at).Seconds(); s.before.counts != nil && seconds > 0 {
				compared = true
				rates[name] += increase(s.before.counts[name], n) / seconds
			}
		}
		for pass, age := range samples[i].oldest {
			oldest[pass] = max(oldest[pass], age)
		}
		for reason := range samples[i].raised {
			raised[reason] = true
		}
		s.at, s.before = now, samples[i]
	}
	if len(counts) > 0 {
		l.Counts = chosen(counts, "", topCounts)
	}
	if compared {
		l.Rates = chosen(rates, "", topCounts)
	}
	for _, pass := range sweep.Passes() {
		if _, swept := counts[pass+"/pages"]; !swept {
			continue
		}
		p := topPass{Pass: pass, OldestDue: oldest[pass], Counts: chosen(counts, pass+"/", passCounts)}
		if compared {
			p.Rates = chosen(rates, pass+"/", passCounts)
		}
		l.Passes = append(l.Passes, p)
	}
	for _, reason := range attention.Reasons {
		if raised[string(reason)] {
			m.raised = append(m.raised, reason)
		}
	}
}

// attend adds what sweepers in other processes than the one that answers ask for.
func (m *meters) attend(l *topLook) {
	told := strings.Join(l.Reasons, "\n")
	for _, reason := range m.raised {
		if !strings.Contains(told, reason.String()) {
			l.Reasons = append(l.Reasons, "a sweeper: "+reason.String())
		}
	}
}

// increase is how far a counter came; one that is less than before began anew.
func increase(before, now float64) float64 {
	if now < before {
		return now
	}
	return now - before
}

func chosen(from map[string]float64, prefix string, names []string) map[string]float64 {
	out := make(map[string]float64, len(names))
	for _, name := range names {
		out[name] = from[prefix+name]
	}
	return out
}

// longestPage bounds what is read of a page.
const longestPage = 16 << 20

func (m *meters) fetch(ctx context.Context, page string) (sample, error) {
	ctx, cancel := clock.WithTimeout(ctx, clock.System, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return sample{}, errors.New("no request can be made of it")
	}
	resp, err := m.http.Do(req)
	if err != nil {
		var asked *url.Error // its own text has the URL, and that may hold a password
		if errors.As(err, &asked) {
			err = asked.Err
		}
		return sample{}, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return sample{}, fmt.Errorf("answers %s", resp.Status)
	}
	return readSample(io.LimitReader(resp.Body, longestPage))
}

func readSample(page io.Reader) (sample, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(page)
	if err != nil {
		return sample{}, errors.New("is no page of metrics")
	}
	s := sample{counts: map[string]float64{}, oldest: map[string]float64{}, raised: map[string]bool{}}
	for name, f := range families {
		for _, metric := range f.GetMetric() {
			s.take(name, metric)
		}
	}
	if len(s.counts) == 0 {
		return sample{}, errors.New("is not the page of a Rendezvous process")
	}
	for _, numbers := range []map[string]float64{s.counts, s.oldest} {
		for _, n := range numbers {
			if math.IsNaN(n) || math.IsInf(n, 0) { // JSON has no such number
				return sample{}, errors.New("has a number that is none")
			}
		}
	}
	return s, nil
}

// take adds one series (docs/metrics.md).
func (s *sample) take(name string, m *dto.Metric) {
	label := map[string]string{}
	for _, l := range m.GetLabel() {
		label[l.GetName()] = l.GetValue()
	}
	n, pass := m.GetCounter().GetValue(), label["pass"]+"/"
	switch name {
	case "rendezvous_ingest_events_total":
		switch label["outcome"] {
		case "matched":
			s.counts["accepted"] += n
			s.counts["matched"] += n
		case "new", "kept", "dead":
			s.counts["accepted"] += n
		}
	case "rendezvous_delivery_offers_total":
		if o := label["outcome"]; o == "delivered" || o == "parked" {
			s.counts["matched"] += n
		}
	case "rendezvous_store_records_total":
		switch rendezvous.Kind(label["kind"]) {
		case rendezvous.WaitAnswered:
			s.counts["answered"] += n
		case rendezvous.WaitRegistered:
			s.counts["registered"] += n
		}
	case "rendezvous_api_calls_total":
		if label["verb"] == "runs.acquire" && label["code"] == "ok" {
			s.counts["resumed"] += n
		}
	case "rendezvous_sweep_rows_total":
		if o := label["outcome"]; o == "done" || o == "deferred" || o == "failed" { // the others are among these
			s.counts[pass+"rows"] += n
		}
	case "rendezvous_sweep_pages_total":
		s.counts[pass+"pages"] += n
	case "rendezvous_sweep_saturated_total":
		s.counts[pass+"saturated"] += n
	case "rendezvous_sweep_failed_total":
		s.counts[pass+"failed"] += n
	case "rendezvous_sweep_duration_seconds":
		s.counts[pass+"busy"] += m.GetHistogram().GetSampleSum()
	case "rendezvous_sweep_oldest_due_seconds":
		s.oldest[label["pass"]] = m.GetGauge().GetValue()
	case "rendezvous_attention":
		if m.GetGauge().GetValue() > 0 {
			s.raised[label["reason"]] = true
		}
	}
}
