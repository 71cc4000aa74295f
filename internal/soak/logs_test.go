package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWhatALogSaysIsAnAlarmOrNot(t *testing.T) {
	for _, c := range []struct {
		line  string
		alarm bool
	}{
		{`level=INFO msg=ready`, false},
		{`level=WARN msg="the store does not answer"`, false},
		{`level=ERROR msg="cannot go on"`, true},
		{`panic: runtime error`, true},
		{`level=WARN msg="a record is corrupt"`, true},
		{`level=ERROR msg="JetStream failed to store a msg on stream 'A': error opening msg block file: no such file" component=nats-server`, false},
		{`level=ERROR msg="Received an error looking up message: message block data missing" component=nats-server`, false},
		{`level=ERROR msg="JetStream out of resources" component=nats-server`, true},
		{`level=ERROR msg="error opening msg block file"`, true},
	} {
		log := filepath.Join(t.TempDir(), "a.log")
		if err := os.WriteFile(log, []byte("level=INFO msg=first\n"+c.line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if found := alarmsOf(log); (len(found) > 0) != c.alarm {
			t.Errorf("%s: %v", c.line, found)
		}
	}
}
