package statefile

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestAStateIsBounded(t *testing.T) {
	pulumi := func(serial string) string {
		return fmt.Sprintf(`{"format":"pulumi","serial":%s,"lineage":"l","checkpoint":%s}`, serial, goodCheckpoint)
	}
	for name, tc := range map[string]struct{ raw, want string }{
		"the last serial": {`{"version":4,"serial":9007199254740992,"lineage":"l"}`, ""},
		"one above it": {`{"version":4,"serial":9007199254740993,"lineage":"l"}`,
			"its serial 9007199254740993 is above 9007199254740992"},
		"the last serial of Pulumi's": {pulumi("9007199254740992"), ""},
		"one above it, of Pulumi's":   {pulumi("18446744073709551615"), "its serial 18446744073709551615 is above"},
		"a serial that is no number": {`{"version":4,"serial":1e99,"lineage":"l"}`,
			`field "serial" has the wrong type`},
		"bytes": {`{"version":4,"serial":1,"lineage":"` + strings.Repeat("l", MaxBytes) + `"}`,
			"bytes and may have 16777216"},
		"values of two bytes each": {`{"version":4,"serial":1,"lineage":"l","x":[` +
			strings.Repeat("1,", MaxValues) + "1]}", "values and may have 1048576"},
		"depth, which takes memory too": {`{"version":4,"serial":1,"lineage":"l","x":` + strings.Repeat("[", 100_000) +
			"}", "invalid JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(tc.raw))
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %.300v, want %q", err, tc.want)
			}
		})
	}
}

// Reading time must be linear in the size of the state.
func TestManyResourcesAreReadInBoundedTime(t *testing.T) {
	var resources strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&resources, `{"urn":"urn:pulumi:m::p::a:b:C::%d","custom":true,"type":"a:b:C"},`, i)
	}
	raw := fmt.Sprintf(
		`{"format":"pulumi","serial":1,"lineage":"l","checkpoint":{"version":3,"checkpoint":{"latest":{"resources":[%s]}}}}`,
		strings.TrimSuffix(resources.String(), ","))
	began := time.Now()
	parsed, err := Parse([]byte(raw))
	if err != nil || len(parsed.Resources) != 100_000 {
		t.Fatalf("%d resources, %v", len(parsed.Resources), err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
}
