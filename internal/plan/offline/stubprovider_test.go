package offline

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/test/shortdir"
)

// dialStub connects to a stub of a provider with one resource. passed collects the calls of the real provider.
func dialStub(t *testing.T, protocol int, passed *[]string) *connection {
	t.Helper()
	schemas := responseOf(map[string][]byte{"example": exampleBlock()}, nil)
	call := func(_ context.Context, method string, request []byte) ([]byte, error) {
		*passed = append(*passed, method+" "+string(request))
		return []byte("response"), nil
	}
	started, err := newStub(stubOptions{Dir: shortdir.New(t), Schemas: schemas, Protocol: protocol, Call: call})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(started.Close)
	connected, err := dial(func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, started.address.Network(), started.address.String())
	}, protocol)
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

func TestProvider(t *testing.T) {
	schemas, err := schemasOf(responseOf(map[string][]byte{"example": exampleBlock()}, nil))
	if err != nil {
		t.Fatal(err)
	}
	request := func(proposed any) string {
		return string(appendField(appendField(nil, 1, []byte("example")), 3,
			appendField(nil, 1, packed(t, schemas["example"], proposed))))
	}
	planned := func(value any) string {
		return string(appendField(nil, 1, appendField(nil, 1, packed(t, schemas["example"], value))))
	}
	cases := map[string]struct {
		protocol        int
		method, request string
		want            string
		wantErr         string
		wantPassed      bool
	}{
		"it is configured with anything": {protocol: 6, method: "ConfigureProvider",
			request: "anything"},
		"its configuration is as it was": {protocol: 5, method: "PrepareProviderConfig",
			request: "config", want: "config"},
		"its configuration is fine": {protocol: 6, method: "ValidateProviderConfig",
			request: "config"},
		"it plans by its schema": {protocol: 6, method: "PlanResourceChange",
			request: request(pairs{{"id", nil}}), want: planned(pairs{{"id", unknown{}}, {"both", unknown{}}})},
		"it plans as the older kind does": {protocol: 5, method: "PlanResourceChange",
			request: request(pairs{{"list", []any{}}}),
			want: planned(pairs{{"id", unknown{}}, {"name", unknown{}}, {"both", unknown{}}, {"list", unknown{}},
				{"set", unknown{}}}) + "\x28\x01"},
		"it knows no other resource": {protocol: 6, method: "PlanResourceChange",
			request: "\x0a\x05other", wantErr: "its schema or its configuration is missing"},
		"it makes no sense of nonsense": {protocol: 6, method: "PlanResourceChange",
			request: "\xff", wantErr: "reading what to plan"},
		"the provider checks the arguments of resources": {protocol: 6, method: "ValidateResourceConfig",
			request: "r", want: "response", wantPassed: true},
		"and those of data sources": {protocol: 5, method: "ValidateDataSourceConfig",
			request: "d", want: "response", wantPassed: true},
		"the provider calls functions": {protocol: 6, method: "CallFunction", request: "f",
			want: "response", wantPassed: true},
		"it reads no data": {protocol: 5, method: "ReadDataSource",
			wantErr: "needs the infrastructure"},
		"it opens nothing": {protocol: 6, method: "OpenEphemeralResource",
			wantErr: "needs the infrastructure"},
		"it makes nothing": {protocol: 6, method: "ApplyResourceChange",
			wantErr: "needs the infrastructure"},
		"a method that it does not know": {protocol: 6, method: "GetMetadata",
			wantErr: "Unimplemented"},
		"its schemas are those that the module makes use of": {protocol: 5, method: "GetSchema",
			want: string(responseOf(map[string][]byte{"example": exampleBlock()}, nil))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var passed []string
			connected := dialStub(t, tc.protocol, &passed)
			got, err := connected.call(t.Context(), connected.service+tc.method, []byte(tc.request))
			switch {
			case tc.wantErr != "" && (err == nil || !strings.Contains(err.Error(), tc.wantErr)):
				t.Errorf("it returns the error %v; want %q", err, tc.wantErr)
			case tc.wantErr == "" && err != nil:
				t.Error(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("the response (-want +got):\n%s", diff)
			}
			if want := connected.service + tc.method + " " + tc.request; tc.wantPassed != cmp.Equal(passed,
				[]string{want}) || !tc.wantPassed && len(passed) > 0 {
				t.Errorf("the provider is called with %q; want that to happen: %t", passed, tc.wantPassed)
			}
		})
	}
}
