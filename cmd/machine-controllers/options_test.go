package main

import (
	"flag"
	"io"
	"strings"
	"testing"
)

func TestOptionsRefuseWhatCannotWork(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "machines")
	for name, tc := range map[string]struct {
		flags string
		want  string
	}{
		"what stands by itself works":                     {"", ""},
		"webhooks that are off need no certificate":       {"--webhook-enabled=false", ""},
		"a port that does not exist is refused":           {"--webhook-port=70000", "--webhook-port is 70000"},
		"no port is no way to turn webhooks off":          {"--webhook-port=0", "--webhook-enabled=false"},
		"a cluster that no label can name is refused":     {"--cluster-id=a/b", `--cluster-id is "a/b"`},
		"a lease that a pause would end is refused":       {"--leader-elect-lease-duration=5s", "below 6s"},
		"an engine that nobody knows is refused":          {"--engine=marble", "choose tofu or terraform"},
		"a bound of nothing is refused":                   {"--max-concurrent-runs=0", "--max-concurrent-runs is zero or less"},
		"a manager without controllers has nothing to do": {"--controllers=-machine", "--controllers"},
	} {
		t.Run(name, func(t *testing.T) {
			var o options
			flags := flag.NewFlagSet(name, flag.ContinueOnError)
			flags.SetOutput(io.Discard)
			o.bind(flags)
			err := flags.Parse(strings.Fields(tc.flags))
			if err == nil {
				err = o.complete()
			}
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
		})
	}
}

func TestOwnNamespaceIsThatOfThePod(t *testing.T) {
	o := &options{namespace: "served"}
	t.Setenv("POD_NAMESPACE", "")
	if got := o.ownNamespace(); got != "served" {
		t.Errorf("outside of a cluster it is %q, want that which is served", got)
	}
	t.Setenv("POD_NAMESPACE", "own")
	if got := o.ownNamespace(); got != "own" {
		t.Errorf("in a Pod it is %q", got)
	}
}
