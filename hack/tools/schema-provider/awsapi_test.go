package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov5"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

func TestOnlyAnAPIOnThisMachineIsRead(t *testing.T) {
	for given, wantErr := range map[string]bool{
		"": false, "http://127.0.0.1:5000": false, "http://[::1]:5000": false,
		"https://ec2.us-east-1.amazonaws.com": true, "http://10.0.0.1:5000": true, "http://localhost.example": true, "127.0.0.1:5000": true,
	} {
		t.Setenv(awsAPIVariable, given)
		api, err := awsAPIOf("aws")
		if (err != nil) != wantErr || (api != nil) != (given != "" && !wantErr) {
			t.Errorf("%q: %v, %v", given, api, err)
		}
		if other, err := awsAPIOf("google"); other != nil || err != nil {
			t.Errorf("%q: Google's provider gets %v, %v", given, other, err)
		}
	}
}

// served returns the provider with an API that has one response, and what it was asked.
func served(t *testing.T, response string) (provider, *url.Values) {
	t.Helper()
	asked := &url.Values{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, err := io.ReadAll(r.Body)
		if err == nil {
			*asked, err = url.ParseQuery(string(content))
		}
		if err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(w, response)
	}))
	t.Cleanup(server.Close)
	schema, err := readRecord("aws", "6.25.0")
	if err != nil {
		t.Fatal(err)
	}
	return provider{name: "aws", version: "6.25.0", schema: schema, api: &awsAPI{url: server.URL, region: "us-east-1", client: server.Client()}}, asked
}

func TestADataSourceIsReadByItsFilters(t *testing.T) {
	p, asked := served(t, `<R><subnetSet><item><subnetId>subnet-1</subnetId></item><item><subnetId>subnet-2</subnetId></item></subnetSet></R>`)
	schema := p.schema.DataSources["aws_subnets"]
	config, err := objectOf(schema.ValueType(), fields{"filter": []fields{{"name": "tag:Name", "values": []string{"a", "b"}}}})
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := tfprotov5.NewDynamicValue(schema.ValueType(), config)
	if err != nil {
		t.Fatal(err)
	}
	response, err := p.ReadDataSource(context.Background(), &tfprotov5.ReadDataSourceRequest{TypeName: "aws_subnets", Config: &encoded})
	if err != nil || len(response.Diagnostics) > 0 {
		t.Fatalf("%v, %v", err, response.Diagnostics)
	}
	read, err := decode(schema, response.State)
	if err != nil {
		t.Fatal(err)
	}
	if got := textsOf(read["ids"]); !slices.Equal(got, []string{"subnet-1", "subnet-2"}) {
		t.Errorf("the IDs are %v", got)
	}
	want := url.Values{"Action": {"DescribeSubnets"}, "Version": {ec2Version}, "Filter.1.Name": {"tag:Name"}, "Filter.1.Value.1": {"a"}, "Filter.1.Value.2": {"b"}}
	if asked.Encode() != want.Encode() {
		t.Errorf("the request is %s, want %s", asked.Encode(), want.Encode())
	}
}

func TestAnInstanceThatHasEndedIsNotThere(t *testing.T) {
	p, _ := served(t, `<R><reservationSet><item><instancesSet><item><instanceId>i-1</instanceId><instanceState><name>terminated</name></instanceState></item></instancesSet></item></reservationSet></R>`)
	response, err := p.ImportResourceState(context.Background(), &tfprotov5.ImportResourceStateRequest{TypeName: "aws_instance", ID: "i-1"})
	if err != nil || len(response.Diagnostics) > 0 || len(response.ImportedResources) > 0 {
		t.Errorf("%v, %+v", err, response)
	}
}

func TestNothingIsMadeWithALocalAPI(t *testing.T) {
	p, _ := served(t, "")
	schema := p.schema.Resources["aws_ec2_tag"]
	wanted, err := stateOf(schema.Block, fields{"resource_id": "i-1", "key": "k", "value": "v"})
	if err != nil {
		t.Fatal(err)
	}
	none, err := tfprotov5.NewDynamicValue(schema.ValueType(), tftypes.NewValue(schema.ValueType(), nil))
	if err != nil {
		t.Fatal(err)
	}
	proposed, err := tfprotov5.NewDynamicValue(schema.ValueType(), wanted)
	if err != nil {
		t.Fatal(err)
	}
	planned, err := p.PlanResourceChange(context.Background(), &tfprotov5.PlanResourceChangeRequest{TypeName: "aws_ec2_tag", PriorState: &none, ProposedNewState: &proposed, Config: &proposed})
	if err != nil || len(planned.Diagnostics) > 0 {
		t.Fatalf("%v, %v", err, planned.Diagnostics)
	}
	parts, err := decode(schema, planned.PlannedState)
	if err != nil || parts["id"].IsKnown() || textOf(parts["value"]) != "v" {
		t.Errorf("the plan is %v, %v; want an ID that is not known", parts, err)
	}
	applied, err := p.ApplyResourceChange(context.Background(), &tfprotov5.ApplyResourceChangeRequest{TypeName: "aws_ec2_tag"})
	if err != nil || len(applied.Diagnostics) != 1 || !strings.Contains(applied.Diagnostics[0].Summary, "only the recorded schema") {
		t.Errorf("an apply returns %v, %v", applied, err)
	}
}
