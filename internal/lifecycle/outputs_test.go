package lifecycle

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

func TestAnOutputIsBounded(t *testing.T) {
	addresses := func(count int) *Facts {
		list := "[" + strings.TrimSuffix(strings.Repeat(`{"type":"InternalIP","address":"10.0.0.1"},`, count), ",") + "]"
		return &Facts{State: &statefile.State{Outputs: map[string]statefile.Output{"addresses": {Value: json.RawMessage(list)}}}}
	}
	if read, err := addresses(1000).Outputs(); err != nil || len(read.Addresses) != 1000 {
		t.Errorf("of a thousand addresses: %v", err)
	}
	if _, err := addresses(10_000).Outputs(); err == nil || !strings.Contains(err.Error(), "output addresses: 430001 bytes exceed the limit of 65536") {
		t.Errorf("of ten thousand: %v", err)
	}
}

func TestWhatIsRecordedCountsWithTheInstance(t *testing.T) {
	for name, tc := range map[string]struct {
		facts *Facts
		want  string
	}{
		"nothing is known":                                   {&Facts{}, "null"},
		"an instance that nothing was recorded of":           {&Facts{State: stateWith(1, 0)}, "null"},
		"an instance with a record":                          {&Facts{State: recording(1, 0)}, `{"id":"7"}`},
		"one that is half made is made anew, from new looks": {&Facts{State: recording(1, 1)}, "null"},
	} {
		if got := string(tc.facts.Recorded()); got != tc.want {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
}

func recording(instances, tainted int) *statefile.State {
	s := stateWith(instances, tainted)
	s.Outputs = map[string]statefile.Output{"recorded": {Value: json.RawMessage(`{"id":"7"}`)}}
	return s
}
