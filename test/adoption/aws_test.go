package adoption

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/test/long"
	"github.com/machine-iac/machine-iac-operator/test/moto"
)

// ec2 tests the module aws against moto. The provider is built from recorded schemas: it reads through AWS's APIs and
// creates nothing. The tests show that AWS's APIs accept the queries of the module's searches, and what they find, but
// not how the real provider sends them.
type ec2 struct {
	*world
	server *moto.Server
	// vpc is a network with DHCP options, subnets are in the zones a and b, group is a security group, image an image.
	vpc, subnetA, subnetB, group, image string
}

const profileWarning = "providerSpec.iamInstanceProfile: no IAM instance profile provided: nodes may be unable to " +
	"join the cluster"

func newEC2(t *testing.T, server *moto.Server) *ec2 {
	t.Helper()
	e := &ec2{world: newWorldOf(t, "aws", "schemas"), server: server}
	if err := server.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.vpc = e.do("CreateVpc", "vpcId", "CidrBlock", "10.0.0.0/16")
	options := e.do("CreateDhcpOptions", "dhcpOptionsId", "DhcpConfiguration.1.Key", "domain-name",
		"DhcpConfiguration.1.Value.1", "ec2.internal")
	e.do("AssociateDhcpOptions", "", "DhcpOptionsId", options, "VpcId", e.vpc)
	subnet := func(zone, block string) string {
		id := e.do("CreateSubnet", "subnetId", "VpcId", e.vpc, "CidrBlock", block, "AvailabilityZone", zone)
		e.tag(id, "Name", clusterID+"-subnet-private", "kubernetes.io/cluster/"+clusterID, "shared")
		return id
	}
	e.subnetA, e.subnetB = subnet("us-east-1a", "10.0.1.0/24"), subnet("us-east-1b", "10.0.2.0/24")
	e.group = e.do("CreateSecurityGroup", "groupId", "GroupName", "nodes", "GroupDescription", "nodes", "VpcId", e.vpc)
	e.tag(e.group, "Name", clusterID+"-node")
	e.image = e.do("DescribeImages", "imageId")
	return e
}

// do calls an action, and returns the text of the wanted element in the response, if any.
func (e *ec2) do(action, wanted string, parameters ...string) string {
	e.t.Helper()
	var text string
	var err error
	if wanted == "" {
		_, err = e.server.Do(e.t.Context(), action, parameters...)
	} else {
		text, err = e.server.Make(e.t.Context(), action, wanted, parameters...)
	}
	if err != nil {
		e.t.Fatal(err)
	}
	return text
}

func (e *ec2) tag(id string, tags ...string) {
	e.t.Helper()
	if err := e.server.Tag(e.t.Context(), id, tags...); err != nil {
		e.t.Fatal(err)
	}
}

// run creates an instance in the zone a with tags, and returns its ID.
func (e *ec2) run(tags ...string) string {
	e.t.Helper()
	id := e.do("RunInstances", "instanceId", "MinCount", "1", "MaxCount", "1", "ImageId", e.image,
		"InstanceType", "m5.large",
		"SubnetId", e.subnetA, "SecurityGroupId.1", e.group)
	if len(tags) > 0 {
		e.tag(id, tags...)
	}
	return id
}

// owned returns the tags of the cluster's instance.
func owned(name string, more ...string) []string {
	return append([]string{"Name", name, "kubernetes.io/cluster/" + clusterID, "owned"}, more...)
}

// machine returns a Machine as the installer writes it, with other fields, and renders its inputs.
func (e *ec2) machine(name string, fields map[string]any) *machinev1beta1.Machine {
	e.t.Helper()
	byName := func(name string) []any { return []any{map[string]any{"name": "tag:Name", "values": []any{name}}} }
	spec := map[string]any{
		"apiVersion": "machine.openshift.io/v1beta1", "kind": "AWSMachineProviderConfig",
		"ami": map[string]any{"id": e.image}, "instanceType": "m5.large",
		"credentialsSecret": map[string]any{"name": "c"}, "userDataSecret": map[string]any{"name": "u"},
		"placement":      map[string]any{"region": "us-east-1", "availabilityZone": "us-east-1a"},
		"subnet":         map[string]any{"filters": byName(clusterID + "-subnet-private")},
		"securityGroups": []any{map[string]any{"filters": byName(clusterID + "-node")}},
	}
	maps.Copy(spec, fields)
	machine := machineOf(name, spec)
	e.render(machine, clusterID, map[string][]byte{
		"aws_access_key_id": []byte("AKIAIOSFODNN7EXAMPLE"), "aws_secret_access_key": []byte("s"),
	},
		map[string]string{"SCHEMA_PROVIDER_AWS_URL": e.server.URL()})
	return machine
}

// TestEC2 shares one server, whose start takes seconds.
func TestEC2(t *testing.T) {
	long.Test(t)
	server, err := moto.Start(t.Context(), t.TempDir())
	if errors.Is(err, moto.ErrMissing) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	t.Run("subnets and security groups are found by filters", func(t *testing.T) { testFilters(t, newEC2(t, server)) })
	t.Run("a lost instance is found by its UID", func(t *testing.T) { testLost(t, newEC2(t, server)) })
	t.Run("an instance is adopted as it is", func(t *testing.T) { testAdopted(t, newEC2(t, server)) })
	t.Run("an instance of others is refused", func(t *testing.T) { testForeign(t, newEC2(t, server)) })
	t.Run("instances are listed", func(t *testing.T) { testListed(t, newEC2(t, server)) })
	t.Run("target groups are found by the load balancer", func(t *testing.T) { testTargetGroups(t, newEC2(t, server)) })
}

// planned returns an attribute of a planned resource.
func (e *ec2) planned(address, attribute string) any {
	e.t.Helper()
	for _, change := range e.plan().ResourceChanges {
		if change.Address == address {
			after, _ := change.Change.After.(map[string]any)
			return after[attribute]
		}
	}
	e.t.Fatalf("%s is not planned", address)
	return nil
}

func testFilters(t *testing.T, e *ec2) {
	e.machine("worker-1", nil)
	if got := e.planned("aws_instance.this", "subnet_id"); got != e.subnetA {
		t.Errorf("the subnet is %v, want that of the zone a, %s", got, e.subnetA)
	}
	if diff := cmp.Diff([]any{e.group}, e.planned("aws_instance.this", "vpc_security_group_ids")); diff != "" {
		t.Errorf("the security groups (-want +got):\n%s", diff)
	}
	e.machine("worker-1", map[string]any{
		"placement": map[string]any{"region": "us-east-1", "availabilityZone": "us-east-1b"},
	})
	if got := e.planned("aws_instance.this", "subnet_id"); got != e.subnetB {
		t.Errorf("the subnet is %v, want that of the zone b, %s", got, e.subnetB)
	}
	e.machine("worker-1", map[string]any{
		"placement": map[string]any{"region": "us-east-1", "availabilityZone": "us-east-1c"},
	})
	e.refuses("error getting subnet IDs: no subnet IDs were found")
}

func testLost(t *testing.T, e *ec2) {
	machine := e.machine("worker-1", nil)
	e.link(e.module.LookupFiles()...)
	uid := []string{"machine-iac.io/machine-uid", string(machine.UID)}
	gone := e.run(owned("worker-1", uid...)...)
	e.do("TerminateInstances", "", "InstanceId.1", gone)
	e.run(owned("worker-2", "machine-iac.io/machine-uid", "another")...)
	if got := changes(e.plan()); !slices.Contains(got, "aws_instance.this create") {
		t.Errorf("while none is there, the plan has %v", got)
	}

	lost := e.run(owned("worker-1", uid...)...)
	for _, action := range []string{"", "StopInstances"} {
		if action != "" {
			e.do(action, "", "InstanceId.1", lost)
		}
		plan := e.plan()
		if diff := cmp.Diff([]string{"aws_instance.this import", "terraform_data.made_with create"},
			changes(plan)); diff != "" {
			t.Errorf("after %q, the plan (-want +got):\n%s", action, diff)
		}
		var providerID string
		output(t, plan, "provider_id", &providerID)
		if providerID != "aws:///us-east-1a/"+lost {
			t.Errorf("after %q, the provider ID is %s, want that of %s", action, providerID, lost)
		}
	}

	twin := e.run(owned("worker-1", uid...)...)
	e.refuses("Several instances bear the Machine's UID, ")
	e.do("TerminateInstances", "", "InstanceId.1", twin)
	if got := changes(e.plan()); !slices.Contains(got, "aws_instance.this import") {
		t.Errorf("with one that has ended, the plan has %v", got)
	}
}

func testAdopted(t *testing.T, e *ec2) {
	id := e.run(owned("worker-1", "team", "a")...)
	e.machine("worker-1", map[string]any{
		"tags": []any{map[string]any{"name": "team", "value": "a"}, map[string]any{"name": "cost", "value": "7"}},
	})
	e.adopt("aws:///us-east-1a/"+id, "")
	plan := e.plan()
	want := []string{`aws_ec2_tag.user["cost"] create`, `aws_ec2_tag.user["team"] import`, "aws_instance.this import",
		"terraform_data.made_with create"}
	if diff := cmp.Diff(want, changes(plan)); diff != "" {
		t.Errorf("the plan (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{profileWarning}, warnings(plan)); diff != "" {
		t.Errorf("what differs (-want +got):\n%s", diff)
	}
	var addresses []map[string]string
	output(t, plan, "addresses", &addresses)
	if len(addresses) == 0 || addresses[0]["type"] != "InternalIP" ||
		!strings.HasPrefix(addresses[0]["address"], "10.0.1.") {
		t.Errorf("the addresses are %v", addresses)
	}

	e.machine("worker-1", map[string]any{
		"instanceType": "m5.xlarge", "keyName": "k",
		"placement": map[string]any{"region": "us-east-1", "availabilityZone": "us-east-1b"},
	})
	got := strings.Join(warnings(e.plan()), "\n")
	for _, want := range []string{
		"providerSpec.instanceType: m5.xlarge is requested, the instance has m5.large and keeps it.",
		`providerSpec.keyName: "k" is requested, the instance has "" and keeps it.`,
		"providerSpec.placement.availabilityZone: us-east-1b is requested, the instance is in us-east-1a and stays " +
			"there.",
		"providerSpec.subnet: " + e.subnetB + " is requested, the instance is in " + e.subnetA + " and stays there.",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("want %s in\n%s", want, got)
		}
	}
}

func testForeign(t *testing.T, e *ec2) {
	e.machine("worker-1", nil)
	other := e.run("Name", "worker-1", "kubernetes.io/cluster/other", "owned")
	e.adopt("aws:///us-east-1a/"+other, "")
	e.refuses("The instance " + other + " belongs to the cluster other, and the Machine to the cluster " + clusterID +
		".")
	bare := e.run("Name", "bare")
	e.adopt("aws:///us-east-1a/"+bare, "")
	e.refuses("The instance " + bare + " does not prove that it is the Machine's")
	e.adopt("", bare)
	if got := changes(e.plan()); !slices.Contains(got, "aws_instance.this import") {
		t.Errorf("one that a user names is not adopted: %v", got)
	}
	e.do("TerminateInstances", "", "InstanceId.1", bare)
	for _, id := range []string{bare, "i-00000000000000000"} {
		e.adopt("", id)
		if _, err := e.tryPlan(); err == nil ||
			!e.module.AdoptAbsent(strings.Join(strings.FieldsFunc(err.Error(), isFrame), " ")) {
			t.Errorf("adopting %s, which is not there, says %v; want module.yaml to know that for absence", id, err)
		}
	}
}

// isFrame reports whether a character belongs to the frame that an engine draws around errors.
func isFrame(r rune) bool { return strings.ContainsRune(" \n\t│╷╵", r) }

func testListed(t *testing.T, e *ec2) {
	master := e.run(owned("master-0")...)
	worker := e.run(owned("worker-1", "machine-iac.io/machine-uid", "uid-1")...)
	e.run("Name", "other", "kubernetes.io/cluster/other", "owned")
	e.do("TerminateInstances", "", "InstanceId.1", e.run(owned("gone")...))
	e.machine("none", nil)
	e.link(e.module.InventoryFiles()...)
	var got []listed
	output(t, e.plan(), "inventory", &got)
	for n := range got {
		if got[n].Created == "" {
			t.Errorf("it is not said when %s was made", got[n].Name)
		}
		got[n].Created = ""
	}
	slices.SortFunc(got, func(a, b listed) int { return strings.Compare(a.Name, b.Name) })
	want := []listed{{ProviderID: "aws:///us-east-1a/" + master, Name: "master-0"},
		{ProviderID: "aws:///us-east-1a/" + worker, Name: "worker-1", MachineUID: "uid-1"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the inventory (-want +got):\n%s", diff)
	}
}

func testTargetGroups(t *testing.T, e *ec2) {
	balanced := func(balancer, name, port string) string {
		arn := e.do("elasticloadbalancing CreateTargetGroup", "TargetGroupArn", "Name", name, "Protocol", "TCP", "Port",
			port, "VpcId", e.vpc, "TargetType", "ip")
		e.do("elasticloadbalancing CreateListener", "ListenerArn", "LoadBalancerArn", balancer,
			"Protocol", "TCP", "Port", port,
			"DefaultActions.member.1.Type", "forward", "DefaultActions.member.1.TargetGroupArn", arn)
		return arn
	}
	tagged := func(arn string) {
		e.do("elasticloadbalancing AddTags", "", "ResourceArns.member.1", arn, "Tags.member.1.Key",
			"kubernetes.io/cluster/"+clusterID, "Tags.member.1.Value", "owned")
	}
	balancer := func(name string) string {
		return e.do("elasticloadbalancing CreateLoadBalancer", "LoadBalancerArn", "Name", name, "Type", "network",
			"Scheme", "internal", "Subnets.member.1", e.subnetA)
	}
	internal, other := balancer(clusterID+"-int"), balancer(clusterID+"-other")
	api, config, unrelated := balanced(internal, "aint", "6443"), balanced(internal, "sint", "22623"),
		balanced(other, "other", "80")
	for _, arn := range []string{api, config, unrelated} {
		tagged(arn)
	}
	e.machine("master-0", map[string]any{
		"loadBalancers": []any{map[string]any{"name": clusterID + "-int", "type": "network"}},
	})
	var got []string
	for _, change := range changes(e.plan()) {
		if strings.HasPrefix(change, "aws_lb_target_group_attachment.") {
			got = append(got, change)
		}
	}
	want := []string{`aws_lb_target_group_attachment.network["` + api + `"] create`,
		`aws_lb_target_group_attachment.network["` + config + `"] create`}
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the attachments (-want +got):\n%s", diff)
	}
	e.machine("master-0", map[string]any{"loadBalancers": []any{map[string]any{"name": "missing", "type": "network"}}})
	e.refuses("No target group that is tagged belongs to the load balancer missing")
}
