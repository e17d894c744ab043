package offline

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// dialStandIn serves a stand-in for a provider with one resource, and answers a connection to it. It is given what the stand-in
// passes on.
func dialStandIn(t *testing.T, protocol int, passed *[]string) *connection {
	t.Helper()
	schemas := responseOf(map[string][]byte{"example": exampleBlock()}, nil)
	started, err := newStandIn(t.TempDir(), schemas, protocol, func(_ context.Context, method string, request frame) (frame, error) {
		*passed = append(*passed, method+" "+string(request))
		return frame("answer"), nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(started.close)
	connected, err := dial(started.address.Network(), started.address.String(), protocol)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := connected.client.Close(); err != nil {
			t.Error(err)
		}
	})
	return connected
}

func TestStandIn(t *testing.T) {
	request := func(proposed any) string {
		return string(appendField(appendField(nil, 1, []byte("example")), 3, appendField(nil, 1, packed(proposed))))
	}
	planned := func(value any) string { return string(appendField(nil, 1, appendField(nil, 1, packed(value)))) }
	cases := map[string]struct {
		protocol        int
		method, request string
		want            string
		wantErr         string
		wantPassed      bool
	}{
		"it is configured with anything":                     {protocol: 6, method: "ConfigureProvider", request: "anything"},
		"its configuration is as it was":                     {protocol: 5, method: "PrepareProviderConfig", request: "config", want: "config"},
		"its configuration is fine":                          {protocol: 6, method: "ValidateProviderConfig", request: "config"},
		"it plans by its schema":                             {protocol: 6, method: "PlanResourceChange", request: request(pairs{{"id", nil}}), want: planned(pairs{{"id", unknown{}}})},
		"it plans as the older kind does":                    {protocol: 5, method: "PlanResourceChange", request: request(pairs{{"list", []any{}}}), want: planned(pairs{{"list", unknown{}}}) + "\x28\x01"},
		"it knows no other resource":                         {protocol: 6, method: "PlanResourceChange", request: "\x0a\x05other", wantErr: "its schema or its configuration is missing"},
		"it makes no sense of nonsense":                      {protocol: 6, method: "PlanResourceChange", request: "\xff", wantErr: "reading what to plan"},
		"the provider checks the arguments of resources":     {protocol: 6, method: "ValidateResourceConfig", request: "r", want: "answer", wantPassed: true},
		"and those of data sources":                          {protocol: 5, method: "ValidateDataSourceConfig", request: "d", want: "answer", wantPassed: true},
		"the provider answers functions":                     {protocol: 6, method: "CallFunction", request: "f", want: "answer", wantPassed: true},
		"it reads no data":                                   {protocol: 5, method: "ReadDataSource", wantErr: "needs the infrastructure"},
		"it opens nothing":                                   {protocol: 6, method: "OpenEphemeralResource", wantErr: "needs the infrastructure"},
		"it makes nothing":                                   {protocol: 6, method: "ApplyResourceChange", wantErr: "needs the infrastructure"},
		"what is newer than it, it says that it has not":     {protocol: 6, method: "GetMetadata", wantErr: "Unimplemented"},
		"its schemas are those that the module makes use of": {protocol: 5, method: "GetSchema", want: string(responseOf(map[string][]byte{"example": exampleBlock()}, nil))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var passed []string
			connected := dialStandIn(t, tc.protocol, &passed)
			got, err := connected.ask(t.Context(), connected.service+tc.method, frame(tc.request))
			switch {
			case tc.wantErr != "" && (err == nil || !strings.Contains(err.Error(), tc.wantErr)):
				t.Errorf("it answers the error %v; want %q", err, tc.wantErr)
			case tc.wantErr == "" && err != nil:
				t.Error(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("the answer (-want +got):\n%s", diff)
			}
			if want := connected.service + tc.method + " " + tc.request; tc.wantPassed != cmp.Equal(passed, []string{want}) || !tc.wantPassed && len(passed) > 0 {
				t.Errorf("the provider is asked %q; want that to happen: %t", passed, tc.wantPassed)
			}
		})
	}
}
