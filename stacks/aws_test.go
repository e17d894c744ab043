package stacks_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/plan/offline"
	"github.com/machine-iac/machine-iac-operator/test/long"
)

const ec2Address = "aws:index/instance:Instance.this"

// ec2 is an instance as small as one can be.
const ec2 = `{"ami":{"id":"ami-1"},"instanceType":"m6i.xlarge","placement":{"region":"us-east-1"}}`

// planned plans what a Machine of the stack aws would be made of, against the provider's recorded schema, and returns what is known of the
// instance, with "unknown" and "sensitive" in the place of the rest, and what would be read.
func (i *instanceOfStack) planned(p *offline.StackPlanner, changed string) (known map[string]any, reads []string) {
	i.t.Helper()
	with := i.given(changed)
	var variables map[string]any
	if err := json.Unmarshal(with.variables, &variables); err != nil {
		i.t.Fatal(err)
	}
	outcome := p.Plan(i.t.Context(), offline.Module{
		Files:  i.program,
		Locals: func(offline.Input) (values, unknown any, err error) { return variables["locals"], nil, nil },
	}, []offline.Input{{Variables: with.variables}})[0]
	if outcome.Err != nil {
		i.t.Fatal(outcome.Err)
	}
	for _, resource := range outcome.Plan.Resources {
		if resource.Address == ec2Address {
			return knownIn(resource.Values), outcome.Plan.Reads
		}
	}
	i.t.Fatalf("the plan has no %s: %+v", ec2Address, outcome.Plan.Resources)
	return nil, nil
}

// knownIn returns the values of a plan that are known.
func knownIn(values offline.Values) map[string]any {
	known := map[string]any{}
	after, _ := values.After.(map[string]any)
	sensitive, _ := values.Sensitive.(map[string]any)
	for name, value := range after {
		switch {
		case sensitive[name] == true:
			known[name] = "sensitive"
		case value != nil:
			known[name] = onlyGiven(value)
		}
	}
	// What is searched for; of the rest it is the provider who says.
	unknown, _ := values.Unknown.(map[string]any)
	for _, name := range []string{"subnetId", "vpcSecurityGroupIds"} {
		if unknown[name] == true {
			known[name] = "unknown"
		}
	}
	return known
}

// onlyGiven leaves out what is not set, at any depth.
func onlyGiven(value any) any {
	switch value := value.(type) {
	case map[string]any:
		kept := map[string]any{}
		for name, inner := range value {
			if inner != nil {
				kept[name] = onlyGiven(inner)
			}
		}
		return kept
	case []any:
		kept := make([]any, 0, len(value))
		for _, inner := range value {
			kept = append(kept, onlyGiven(inner))
		}
		return kept
	case json.Number:
		return value.String()
	}
	return value
}

func newStackPlanner(t *testing.T) *offline.StackPlanner {
	t.Helper()
	binary, err := thePulumi()
	if err != nil {
		t.Fatalf("%v; run 'make tools'", err)
	}
	p, err := offline.NewStackPlanner(t.Context(), offline.StackOptions{Binary: binary, Plugins: tool(t, "pulumi-plugins"), ProviderMirror: tool(t, "schemas")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return p
}

// TestAnInstanceOfEC2IsPlanned asks nothing of AWS, so what a search would find is not known.
func TestAnInstanceOfEC2IsPlanned(t *testing.T) {
	long.Test(t)
	planner := newStackPlanner(t)
	tags := map[string]any{"Name": "worker-0", "kubernetes.io/cluster/demo-x7k2p": "owned", "machine-iac.io/machine-uid": machineUID}
	minimal := map[string]any{
		"ami": "ami-1", "instanceType": "m6i.xlarge", "tags": tags, "volumeTags": tags, "userDataBase64": "sensitive", "userData": "sensitive",
		"userDataReplaceOnChange": true, "subnetId": "unknown", "vpcSecurityGroupIds": "unknown",
	}
	cases := map[string]struct {
		changed string
		// want is what differs from the smallest one.
		want map[string]any
		// reads are the searches.
		reads []string
	}{
		"the smallest": {changed: `{}`, reads: []string{"aws:getSubnets.subnets0"}},
		"as much as there can be": {
			changed: `{"keyName":"k","iamInstanceProfile":{"id":"profile"},"tags":[{"name":"team","value":"red"},{"name":"team","value":"blue"}],"publicIp":true,
				"subnet":{"id":"subnet-1"},"securityGroups":[{"id":"sg-1"}],"marketType":"Spot","spotMarketOptions":{"maxPrice":"0.05"},
				"cpuOptions":{"confidentialCompute":"Disabled"},"metadataServiceOptions":{"authentication":"Required"},"placementGroupName":"g","placementGroupPartition":2,
				"placement":{"region":"us-east-1","availabilityZone":"us-east-1a","tenancy":"dedicated"},
				"blockDevices":[{"ebs":{"volumeSize":120,"volumeType":"gp3","encrypted":true,"iops":3000,"throughputMib":125}},{"deviceName":"/dev/xvdc","ebs":{"volumeSize":8,"kmsKey":{"id":"key"}}},{"deviceName":"/dev/xvdd"}]}`,
			want: map[string]any{
				"keyName": "k", "iamInstanceProfile": "profile", "tags": with(tags, "team", "red"), "volumeTags": with(tags, "team", "red"),
				"associatePublicIpAddress": true,
				"instanceMarketOptions": map[string]any{
					"marketType": "spot", "spotOptions": map[string]any{"spotInstanceType": "one-time", "instanceInterruptionBehavior": "terminate", "maxPrice": "0.05"},
				},
				"cpuOptions": map[string]any{"amdSevSnp": "disabled"}, "metadataOptions": map[string]any{"httpEndpoint": "enabled", "httpTokens": "required"},
				"placementGroup": "g", "placementPartitionNumber": "2", "tenancy": "dedicated",
				"rootBlockDevice": map[string]any{
					"deleteOnTermination": true, "encrypted": true, "iops": "3000", "throughput": "125", "volumeSize": "120", "volumeType": "gp3",
				},
				"ebsBlockDevices": []any{map[string]any{
					"deviceName": "/dev/xvdc", "deleteOnTermination": true, "volumeSize": "8", "kmsKeyId": "key",
				}},
				"subnetId": "subnet-1", "vpcSecurityGroupIds": []any{"sg-1"},
			},
		},
		"a reservation on a host, in a zone": {
			changed: `{"capacityReservationId":"cr-0123456789abcdef0","placement":{"region":"us-east-1","availabilityZone":"us-east-1a","tenancy":"host",
				"host":{"affinity":"AnyAvailable","dedicatedHost":{"id":"h-01234567"}}}}`,
			want: map[string]any{
				"tenancy": "host", "hostId": "h-01234567",
				"capacityReservationSpecification": map[string]any{"capacityReservationTarget": map[string]any{"capacityReservationId": "cr-0123456789abcdef0"}},
			},
			reads: []string{"aws:getSubnets.subnets0"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			i := newInstance(t, "aws", "schemas", ec2)
			i.credentials = map[string][]byte{"aws_access_key_id": []byte("AKIAEXAMPLE"), "aws_secret_access_key": []byte("hunter22hunter22")}
			want := maps.Clone(minimal)
			maps.Copy(want, tc.want)
			got, reads := i.planned(planner, tc.changed)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the instance differs (-want +got):\n%s", diff)
			}
			if !slices.Equal(reads, tc.reads) {
				t.Errorf("read are %v, want %v", reads, tc.reads)
			}
		})
	}
}

func with(tags map[string]any, name, value string) map[string]any {
	more := maps.Clone(tags)
	more[name] = value
	return more
}
