package remote

import (
	"encoding/binary"
	"encoding/json"
	"net"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

// The process of a run may be hostile, because others wrote its provider. Its messages must not
// exhaust the manager's memory.
func TestAMessageIsBounded(t *testing.T) {
	unsaved, err := json.Marshal(message{Kind: kindResult, Result: &result{Unsaved: make([]byte, statefile.MaxBytes)}})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		size    uint32 // announced; default is the real one
		content string
		want    string
	}{
		"the largest state":      {content: string(unsaved)},
		"a huge announced size":  {size: 1<<32 - 1, want: "message of 4294967295 bytes exceeds the limit of 33554432"},
		"changes of a few bytes": {content: `{"result":{"report":{"Changes":[` + strings.Repeat("{},", 1<<18) + `{}]}}}`, want: "values and may have 262144"},
		"values of a plan":       {content: `{"result":{"planned":{"x":[` + strings.Repeat("0,", 1<<18) + `0]}}}`, want: "values and may have 262144"},
		"a list":                 {content: `[]`, want: "cannot unmarshal array"},
	} {
		t.Run(name, func(t *testing.T) {
			mine, theirs := net.Pipe()
			defer mine.Close()
			go func() {
				size := tc.size
				if size == 0 {
					size = uint32(len(tc.content)) //nolint:gosec // far below
				}
				_, _ = theirs.Write(append(binary.BigEndian.AppendUint32(nil, size), tc.content...)) // it is not read to its end
				_ = theirs.Close()
			}()
			var m message
			err := (&link{Conn: mine, clock: clock.RealClock{}}).receive(&m, maxFrame)
			if tc.want == "" && (err != nil || len(m.Result.Unsaved) != statefile.MaxBytes) || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
