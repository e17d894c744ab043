//go:build life

package life

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os/exec"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/machine-iac/machine-iac-operator/test/moto"
)

var aws = platform{
	name: "aws", module: "modules/aws", provider: "aws",
	infrastructure: "[moto](../test/moto/moto.go), with the permissions of spec.rights", absent: withoutMoto(), open: openAWS,
	above: &exception{limits{24, 12, 15}, "a create looks up subnet, groups and network in 8 calls; the provider\n" +
		"  reads an instance in 11"},
}

func withoutMoto() string {
	if _, err := exec.LookPath("moto_server"); err != nil {
		return moto.ErrMissing.Error()
	}
	return ""
}

// Two access keys of one account, which is encoded in them.
const (
	accessKey  = "AKIAIOSFODNN7EXAMPLE"
	rotatedKey = "AKIAIOSFODNN7EXAMPLF"
)

// account is what the installer has made, and an administrator who looks at it.
type account struct {
	*moto.Server
	w                         *world
	vpc, subnet, group, image string
}

func openAWS(w *world) *site {
	ctx := w.t.Context()
	server, err := moto.Start(ctx, w.dir)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(server.Close)
	a := &account{Server: server, w: w}
	a.install(ctx)
	guard := w.guard()
	front, err := server.NewFront(accessKey, guard.Allows)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(front.Close)
	var endpoints []configv1.AWSServiceEndpoint
	for _, service := range []string{"ec2", "elasticloadbalancing", "iam", "sts", "tagging"} {
		endpoints = append(endpoints, configv1.AWSServiceEndpoint{Name: service, URL: front.URL()})
	}
	login := func(key string) map[string][]byte {
		return map[string][]byte{"aws_access_key_id": []byte(key), "aws_secret_access_key": []byte("secret")}
	}
	inFile := map[string][]byte{"credentials": []byte("[default]\naws_access_key_id = " + accessKey + "\naws_secret_access_key = secret\n")}
	image := func(spec map[string]any) { spec["ami"] = map[string]any{"id": a.image} }
	other := w.otherSecret("credentialsSecret", inFile)
	return &site{
		status: &configv1.InfrastructureStatus{PlatformStatus: &configv1.PlatformStatus{
			Type: configv1.AWSPlatformType, AWS: &configv1.AWSPlatformStatus{Region: "us-east-1", ServiceEndpoints: endpoints},
		}},
		authorities: string(front.Authority()),
		credentials: secret("aws-cloud-credentials", login(accessKey)),
		rotate: func(context.Context) (map[string][]byte, error) {
			front.Rotate(rotatedKey)
			return login(rotatedKey), nil
		},
		set: w.example(image),
		// Everything that can change: the other form of credentials, another security group, tags and load balancers.
		change: func(spec map[string]any) {
			other(spec)
			spec["securityGroups"] = []any{map[string]any{"id": a.group}}
			spec["tags"] = append(spec["tags"].([]any), map[string]any{"name": "team", "value": "a"})
			spec["loadBalancers"] = []any{map[string]any{"name": clusterID + "-int", "type": "network"}, map[string]any{"name": clusterID, "type": "classic"}}
		},
		refused: with("instanceType", "m6i.2xlarge"), invalid: with("ami", nil),
		renew: func(ctx context.Context) (func(map[string]any), error) {
			return func(spec map[string]any) {
				image(spec)
				spec["instanceType"] = "t3.large" // it has CPU credits, which the provider reads
			}, a.renew(ctx)
		},
		deny:     denying(guard, "ec2:RunInstances", "ec2:TerminateInstances"),
		refusal:  "UnauthorizedOperation",
		calls:    made(&front.Calls),
		look:     a.instances,
		userData: a.userData,
		remove: func(ctx context.Context, name string) error {
			ids, err := a.instances(ctx, name)
			for _, id := range ids {
				_, terminated := a.Do(ctx, "TerminateInstances", "InstanceId.1", id)
				err = errors.Join(err, terminated)
			}
			return err
		},
		copy: func(ctx context.Context, _, name string) (string, error) {
			id, err := a.Make(ctx, "RunInstances", "instanceId", "MinCount", "1", "MaxCount", "1", "ImageId", a.image, "InstanceType", "m6i.xlarge",
				"SubnetId", a.subnet, "SecurityGroupId.1", a.group, "UserData", base64.StdEncoding.EncodeToString([]byte("of something else")))
			if err == nil {
				err = a.Tag(ctx, id, "Name", name, "kubernetes.io/cluster/"+clusterID, "owned")
			}
			return "aws:///us-east-1a/" + id, err
		},
		left: func(ctx context.Context, names []string) (found []string, err error) {
			for _, name := range names {
				ids, err := a.instances(ctx, name)
				if err != nil {
					return nil, err
				}
				volumes, err := a.Do(ctx, "DescribeVolumes", "Filter.1.Name", "tag:Name", "Filter.1.Value.1", name)
				if err != nil {
					return nil, err
				}
				found = append(append(found, ids...), volumes.All("volumeId")...)
			}
			return found, nil
		},
	}
}

// install makes what the example names, as OpenShift's installer does. The network has no DHCP options yet.
func (a *account) install(ctx context.Context) {
	a.w.t.Helper()
	var problems []error
	made := func(action, wanted string, parameters ...string) string {
		id, err := a.Make(ctx, action, wanted, parameters...)
		problems = append(problems, err)
		return id
	}
	a.vpc = made("CreateVpc", "vpcId", "CidrBlock", "10.0.0.0/16")
	a.subnet = made("CreateSubnet", "subnetId", "VpcId", a.vpc, "CidrBlock", "10.0.1.0/24", "AvailabilityZone", "us-east-1a")
	problems = append(problems, a.Tag(ctx, a.subnet, "Name", clusterID+"-subnet-private-us-east-1a"))
	for _, name := range []string{"node", "lb", "other"} {
		a.group = made("CreateSecurityGroup", "groupId", "GroupName", name, "GroupDescription", name, "VpcId", a.vpc)
		problems = append(problems, a.Tag(ctx, a.group, "Name", clusterID+"-"+name))
	}
	made("iam CreateInstanceProfile", "Arn", "InstanceProfileName", clusterID+"-worker-profile")
	balancer := made("elasticloadbalancing CreateLoadBalancer", "LoadBalancerArn", "Name", clusterID+"-int", "Type", "network", "Scheme", "internal", "Subnets.member.1", a.subnet)
	group := made("elasticloadbalancing CreateTargetGroup", "TargetGroupArn", "Name", "aint", "Protocol", "TCP", "Port", "6443", "VpcId", a.vpc, "TargetType", "ip")
	made("elasticloadbalancing CreateListener", "ListenerArn", "LoadBalancerArn", balancer, "Protocol", "TCP", "Port", "6443",
		"DefaultActions.member.1.Type", "forward", "DefaultActions.member.1.TargetGroupArn", group)
	_, tagged := a.Do(ctx, "elasticloadbalancing AddTags", "ResourceArns.member.1", group, "Tags.member.1.Key", "kubernetes.io/cluster/"+clusterID, "Tags.member.1.Value", "owned")
	made("elasticloadbalancing CreateLoadBalancer", "DNSName", "Version", "2012-06-01", "LoadBalancerName", clusterID, "Subnets.member.1", a.subnet,
		"Listeners.member.1.Protocol", "TCP", "Listeners.member.1.LoadBalancerPort", "80", "Listeners.member.1.InstancePort", "80")
	var err error
	a.image, err = a.copyImage(ctx, "first")
	if err := errors.Join(append(problems, tagged, err)...); err != nil {
		a.w.t.Fatal(err)
	}
}

// renew replaces the image, and gives the network DHCP options, which the module reads as well.
func (a *account) renew(ctx context.Context) error {
	next, err := a.copyImage(ctx, "next")
	if err != nil {
		return err
	}
	options, err := a.Make(ctx, "CreateDhcpOptions", "dhcpOptionsId", "DhcpConfiguration.1.Key", "domain-name", "DhcpConfiguration.1.Value.1", "ec2.internal")
	if err != nil {
		return err
	}
	_, associated := a.Do(ctx, "AssociateDhcpOptions", "DhcpOptionsId", options, "VpcId", a.vpc)
	_, removed := a.Do(ctx, "DeregisterImage", "ImageId", a.image)
	a.image = next
	return errors.Join(associated, removed)
}

// copyImage copies an image that moto has.
func (a *account) copyImage(ctx context.Context, name string) (string, error) {
	source, err := a.Make(ctx, "DescribeImages", "imageId", "Filter.1.Name", "root-device-type", "Filter.1.Value.1", "ebs")
	if err != nil {
		return "", err
	}
	return a.Make(ctx, "CopyImage", "imageId", "SourceRegion", "us-east-1", "SourceImageId", source, "Name", name)
}

// instances returns the IDs of the instances of a name that were not terminated.
func (a *account) instances(ctx context.Context, name string) ([]string, error) {
	found, err := a.Do(ctx, "DescribeInstances", "Filter.1.Name", "tag:Name", "Filter.1.Value.1", name,
		"Filter.2.Name", "instance-state-name", "Filter.2.Value.1", "pending", "Filter.2.Value.2", "running")
	return found.All("instanceId"), err
}

func (a *account) userData(ctx context.Context, name string) (string, error) {
	ids, err := a.instances(ctx, name)
	if err != nil || len(ids) != 1 {
		return "", fmt.Errorf("instances %v: %w", ids, err)
	}
	found, err := a.Make(ctx, "DescribeInstanceAttribute", "value", "InstanceId", ids[0], "Attribute", "userData")
	if err != nil {
		return "", err
	}
	raw, err := base64.StdEncoding.DecodeString(found)
	return string(raw), err
}
