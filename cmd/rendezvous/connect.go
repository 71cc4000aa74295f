package main

import (
	"cmp"
	"encoding/json"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/client"
)

// remote are the flags of every command that speaks to a plane.
type remote struct {
	Server  string `help:"URL of the API: ${server} unless said." placeholder:"URL"`
	Tenant  string `short:"t" help:"The tenant to act in: ${tenant} unless said." placeholder:"NAME"`
	Token   string `help:"Bearer token; better in RENDEZVOUS_TOKEN than on the command line." placeholder:"TOKEN"`
	Context string `help:"Name of a context in the contexts file, giving server, tenant and token where flags and environment do not." placeholder:"NAME"`
	Output  string `short:"o" help:"table for people, json or jsonl for programs." enum:"table,json,jsonl" default:"table"`
}

// patience is how long a command tries to reach a plane that does not answer.
const patience = 3 * time.Second

// namedContext is one entry of the contexts file: {"contexts":{"prod":{"server":"https://…","tenant":"acme","token_file":"/…"}}}.
type namedContext struct {
	Server    string `json:"server"`
	Tenant    string `json:"tenant"`
	TokenFile string `json:"token_file"`
}

// client connects.
func (r *remote) client() (*client.Client, error) {
	at, err := r.resolved()
	if err != nil {
		return nil, err
	}
	return client.New(client.Options{
		URL: at.server, Tenant: at.tenant, Token: at.token,
		Retry: client.Retry{Elapsed: patience}, // somebody sits in front of it
	})
}

// place is where a plane is reached.
type place struct{ server, tenant, token string }

// resolved says where: flag over environment over context over default.
func (r *remote) resolved() (place, error) {
	at := place{r.Server, r.Tenant, r.Token}
	if r.Context != "" {
		named, err := loadContext(r.Context)
		if err != nil {
			return place{}, err
		}
		at.server, at.tenant = cmp.Or(at.server, named.Server), cmp.Or(at.tenant, named.Tenant)
		if at.token == "" && named.TokenFile != "" {
			raw, err := os.ReadFile(named.TokenFile)
			if err != nil {
				return place{}, rendezvous.InvalidField("token_file", "of context %q cannot be read", r.Context)
			}
			at.token = strings.TrimSpace(string(raw))
		}
	}
	at.server = cmp.Or(at.server, client.DefaultURL)
	return at, nil
}

func loadContext(name string) (namedContext, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return namedContext{}, rendezvous.InvalidField("context", "there is no configuration folder on this machine")
	}
	path := filepath.Join(dir, "rendezvous", "contexts.json")
	raw, err := os.ReadFile(path)
	if err != nil {
		return namedContext{}, rendezvous.InvalidField("context", "%s cannot be read", path)
	}
	var file struct {
		Contexts map[string]namedContext `json:"contexts"`
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		return namedContext{}, rendezvous.InvalidField("context", "%s is not JSON of contexts", path)
	}
	c, ok := file.Contexts[name]
	if !ok {
		return namedContext{}, rendezvous.InvalidField("context", "%q is not in %s", name, path)
	}
	return c, nil
}

// me is the operator that a command names: the plane notes that it is asserted.
func me() *rendezvous.Operator {
	name := "unknown"
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = u.Username
	}
	return &rendezvous.Operator{Actor: name, Basis: rendezvous.BasisAsserted}
}
