package main

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

const (
	ec2Version = "2016-11-15"
	elbVersion = "2015-12-01"
)

// fields are attributes by name: string, bool, []string, map[string]string, and lists of such fields. What is missing is null.
type fields = map[string]any

// awsDataSources reads the data sources that modules/aws uses. A reader gets the arguments and returns what is computed.
var awsDataSources = map[string]func(ctx context.Context, a *awsAPI, given map[string]tftypes.Value) (fields, error){
	"aws_instances":                          readInstances,
	"aws_instance":                           readInstance,
	"aws_subnets":                            readIDs("DescribeSubnets", "subnetSet/item/subnetId"),
	"aws_security_groups":                    readIDs("DescribeSecurityGroups", "securityGroupInfo/item/groupId"),
	"aws_subnet":                             readSubnet,
	"aws_vpc":                                readVPC,
	"aws_vpc_dhcp_options":                   readDHCPOptions,
	"aws_lb_target_group":                    readTargetGroup,
	"aws_resourcegroupstaggingapi_resources": readTagged,
}

func (a *awsAPI) ec2(ctx context.Context, action string, arguments url.Values) (node, error) {
	return a.query(ctx, "ec2", ec2Version, action, arguments)
}

// filtersOf returns the blocks "filter" of a data source as EC2 has them.
func filtersOf(given map[string]tftypes.Value) (url.Values, error) {
	arguments := url.Values{}
	var blocks []tftypes.Value
	if value := given["filter"]; !value.IsNull() {
		if err := value.As(&blocks); err != nil {
			return nil, err
		}
	}
	for _, block := range blocks {
		parts := map[string]tftypes.Value{}
		if err := block.As(&parts); err != nil {
			return nil, err
		}
		addFilter(arguments, textOf(parts["name"]), textsOf(parts["values"]))
	}
	return arguments, nil
}

// addFilter adds one filter to those that there are.
func addFilter(arguments url.Values, name string, values []string) {
	number := 1
	for arguments.Has(fmt.Sprintf("Filter.%d.Name", number)) {
		number++
	}
	arguments.Set(fmt.Sprintf("Filter.%d.Name", number), name)
	for n, value := range values {
		arguments.Set(fmt.Sprintf("Filter.%d.Value.%d", number, n+1), value)
	}
}

// readInstances returns the instances in some states; where none is named, those that run.
func readInstances(ctx context.Context, a *awsAPI, given map[string]tftypes.Value) (fields, error) {
	arguments, err := filtersOf(given)
	if err != nil {
		return nil, err
	}
	states := textsOf(given["instance_state_names"])
	if len(states) == 0 {
		states = []string{"running"}
	}
	addFilter(arguments, "instance-state-name", states)
	response, err := a.ec2(ctx, "DescribeInstances", arguments)
	if err != nil {
		return nil, err
	}
	const path = "reservationSet/item/instancesSet/item/"
	return fields{
		"id": a.region, "ids": response.texts(path + "instanceId"), "private_ips": response.texts(path + "privateIpAddress"),
		"public_ips": response.texts(path + "ipAddress"), "ipv6_addresses": []string{},
	}, nil
}

// instance returns an instance; nil where there is none, or it has ended.
func (a *awsAPI) instance(ctx context.Context, id string) (fields, error) {
	response, err := a.ec2(ctx, "DescribeInstances", url.Values{"InstanceId.1": {id}})
	if err != nil {
		if strings.Contains(err.Error(), "InvalidInstanceID.NotFound") {
			return nil, nil
		}
		return nil, err
	}
	for _, one := range response.all("reservationSet/item/instancesSet/item") {
		if one.text("instanceState/name") == "terminated" {
			return nil, nil
		}
		created, err := time.Parse(time.RFC3339, one.text("launchTime"))
		if err != nil {
			return nil, err
		}
		profile := one.text("iamInstanceProfile/arn")
		return fields{
			"id": one.text("instanceId"), "ami": one.text("imageId"), "instance_type": one.text("instanceType"), "instance_state": one.text("instanceState/name"),
			"key_name": one.text("keyName"), "subnet_id": one.text("subnetId"), "availability_zone": one.text("placement/availabilityZone"),
			"host_id": one.text("placement/hostId"), "tenancy": one.text("placement/tenancy"), "private_ip": one.text("privateIpAddress"), "public_ip": one.text("ipAddress"),
			"private_dns": one.text("privateDnsName"), "public_dns": one.text("dnsName"), "iam_instance_profile": profile[strings.LastIndex(profile, "/")+1:],
			"vpc_security_group_ids": one.texts("groupSet/item/groupId"), "tags": tagsOf(one.all("tagSet/item")), "ipv6_addresses": []string{}, "secondary_private_ips": []string{},
			"launch_time": created.Format(time.RFC3339), "region": a.region,
		}, nil
	}
	return nil, nil
}

func tagsOf(items []node) map[string]string {
	tags := map[string]string{}
	for _, one := range items {
		tags[one.text("key")] = one.text("value")
	}
	return tags
}

func readInstance(ctx context.Context, a *awsAPI, given map[string]tftypes.Value) (fields, error) {
	id := textOf(given["instance_id"])
	found, err := a.instance(ctx, id)
	if err == nil && found == nil {
		err = fmt.Errorf("the instance %s is not there", id)
	}
	return found, err
}

// readIDs returns a reader of what filters find.
func readIDs(action, path string) func(context.Context, *awsAPI, map[string]tftypes.Value) (fields, error) {
	return func(ctx context.Context, a *awsAPI, given map[string]tftypes.Value) (fields, error) {
		arguments, err := filtersOf(given)
		if err != nil {
			return nil, err
		}
		response, err := a.ec2(ctx, action, arguments)
		if err != nil {
			return nil, err
		}
		return fields{"id": a.region, "ids": response.texts(path)}, nil
	}
}

func readSubnet(ctx context.Context, a *awsAPI, given map[string]tftypes.Value) (fields, error) {
	response, err := a.ec2(ctx, "DescribeSubnets", url.Values{"SubnetId.1": {textOf(given["id"])}})
	if err != nil {
		return nil, err
	}
	return fields{"availability_zone": response.text("subnetSet/item/availabilityZone"), "vpc_id": response.text("subnetSet/item/vpcId")}, nil
}

func readVPC(ctx context.Context, a *awsAPI, given map[string]tftypes.Value) (fields, error) {
	response, err := a.ec2(ctx, "DescribeVpcs", url.Values{"VpcId.1": {textOf(given["id"])}})
	if err != nil {
		return nil, err
	}
	return fields{"dhcp_options_id": response.text("vpcSet/item/dhcpOptionsId")}, nil
}

func readDHCPOptions(ctx context.Context, a *awsAPI, given map[string]tftypes.Value) (fields, error) {
	id := textOf(given["dhcp_options_id"])
	response, err := a.ec2(ctx, "DescribeDhcpOptions", url.Values{"DhcpOptionsId.1": {id}})
	if err != nil {
		return nil, err
	}
	read := fields{"id": id, "domain_name": ""}
	for _, one := range response.all("dhcpOptionsSet/item/dhcpConfigurationSet/item") {
		if one.text("key") == "domain-name" {
			read["domain_name"] = one.text("valueSet/item/value")
		}
	}
	return read, nil
}

func readTargetGroup(ctx context.Context, a *awsAPI, given map[string]tftypes.Value) (fields, error) {
	arn := textOf(given["arn"])
	response, err := a.query(ctx, "elasticloadbalancing", elbVersion, "DescribeTargetGroups", url.Values{"TargetGroupArns.member.1": {arn}})
	if err != nil {
		return nil, err
	}
	for _, one := range response.all("DescribeTargetGroupsResult/TargetGroups/member") {
		return fields{"id": arn, "name": one.text("TargetGroupName"), "target_type": one.text("TargetType"), "load_balancer_arns": one.texts("LoadBalancerArns/member")}, nil
	}
	return nil, fmt.Errorf("the target group %s is not there", arn)
}

// readTagged returns what has tags, page by page.
func readTagged(ctx context.Context, a *awsAPI, given map[string]tftypes.Value) (fields, error) {
	type tag struct{ Key, Value string }
	type filter struct {
		Key    string
		Values []string `json:",omitempty"`
	}
	var filters []filter
	var blocks []tftypes.Value
	if value := given["tag_filter"]; !value.IsNull() {
		if err := value.As(&blocks); err != nil {
			return nil, err
		}
	}
	for _, block := range blocks {
		parts := map[string]tftypes.Value{}
		if err := block.As(&parts); err != nil {
			return nil, err
		}
		filters = append(filters, filter{Key: textOf(parts["key"]), Values: textsOf(parts["values"])})
	}
	found := []fields{}
	for token := "-"; token != ""; {
		arguments := map[string]any{"ResourceTypeFilters": textsOf(given["resource_type_filters"]), "PaginationToken": strings.TrimPrefix(token, "-")}
		if len(filters) > 0 {
			arguments["TagFilters"] = filters
		}
		var page struct {
			PaginationToken        string
			ResourceTagMappingList []struct {
				ResourceARN string
				Tags        []tag
			}
		}
		if err := a.call(ctx, "tagging", "ResourceGroupsTaggingAPI_20170126.GetResources", arguments, &page); err != nil {
			return nil, err
		}
		for _, one := range page.ResourceTagMappingList {
			tags := map[string]string{}
			for _, each := range one.Tags {
				tags[each.Key] = each.Value
			}
			found = append(found, fields{"resource_arn": one.ResourceARN, "tags": tags})
		}
		token = page.PaginationToken
	}
	return fields{"id": a.region, "resource_tag_mapping_list": found}, nil
}

// textOf returns a text or a number; empty where there is none.
func textOf(value tftypes.Value) string {
	var text string
	if value.IsNull() || !value.IsKnown() || value.As(&text) != nil {
		return ""
	}
	return text
}

// textsOf returns the texts of a list or a set.
func textsOf(value tftypes.Value) []string {
	var parts []tftypes.Value
	if value.IsNull() || !value.IsKnown() || value.As(&parts) != nil {
		return nil
	}
	texts := make([]string, 0, len(parts))
	for _, one := range parts {
		texts = append(texts, textOf(one))
	}
	return texts
}

// valueOf returns a value of a type. A text where a number or a bool is wanted is read as one.
func valueOf(kind tftypes.Type, given any) (tftypes.Value, error) {
	switch typed := given.(type) {
	case nil:
		return tftypes.NewValue(kind, nil), nil
	case string:
		return scalarOf(kind, typed)
	case []string:
		element := elementOf(kind)
		parts := make([]tftypes.Value, 0, len(typed))
		for _, one := range typed {
			parts = append(parts, tftypes.NewValue(element, one))
		}
		return tftypes.NewValue(kind, parts), nil
	case map[string]string:
		parts := map[string]tftypes.Value{}
		for name, one := range typed {
			parts[name] = tftypes.NewValue(tftypes.String, one)
		}
		return tftypes.NewValue(kind, parts), nil
	case []fields:
		parts := make([]tftypes.Value, 0, len(typed))
		for _, one := range typed {
			part, err := objectOf(elementOf(kind), one)
			if err != nil {
				return tftypes.Value{}, err
			}
			parts = append(parts, part)
		}
		return tftypes.NewValue(kind, parts), nil
	}
	return tftypes.Value{}, fmt.Errorf("%T is no value of %s", given, kind)
}

func scalarOf(kind tftypes.Type, text string) (tftypes.Value, error) {
	switch {
	case kind.Is(tftypes.Bool):
		parsed, err := strconv.ParseBool(text)
		return tftypes.NewValue(kind, parsed), err
	case kind.Is(tftypes.Number):
		parsed, err := strconv.ParseFloat(text, 64)
		return tftypes.NewValue(kind, parsed), err
	}
	return tftypes.NewValue(kind, text), nil
}

func elementOf(kind tftypes.Type) tftypes.Type {
	switch typed := kind.(type) {
	case tftypes.List:
		return typed.ElementType
	case tftypes.Set:
		return typed.ElementType
	}
	return tftypes.String
}

// objectOf returns an object with some attributes; the others are null, and blocks of which there are several are empty.
func objectOf(kind tftypes.Type, given fields) (tftypes.Value, error) {
	object, ok := kind.(tftypes.Object)
	if !ok {
		return tftypes.Value{}, fmt.Errorf("%s is no object", kind)
	}
	parts := map[string]tftypes.Value{}
	for name, constraint := range object.AttributeTypes {
		value, err := valueOf(constraint, given[name])
		if err != nil {
			return tftypes.Value{}, fmt.Errorf("%s: %w", name, err)
		}
		parts[name] = value
	}
	return tftypes.NewValue(kind, parts), nil
}
