package module

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

var (
	tagType = cty.Object(map[string]cty.Type{"key": cty.String, "value": cty.String, "parent_id": cty.String})

	failureDomainType = cty.Object(map[string]cty.Type{
		"name": cty.String, "region": cty.String, "zone": cty.String, "server": cty.String, "datacenter": cty.String,
		"compute_cluster": cty.String, "datastore": cty.String, "resource_pool": cty.String, "folder": cty.String,
		"template":   cty.String,
		"host_group": cty.String, "vm_group": cty.String, "networks": cty.List(cty.String),
	})

	// known has all attributes that a module may declare.
	clusterType = cty.Object(map[string]cty.Type{
		"installation": cty.String, "platform": cty.String, "region": cty.String,
		"ip_family": cty.String, "cloud_name": cty.String, "network_resource_group": cty.String,
		"api_vips": cty.List(cty.String), "ingress_vips": cty.List(cty.String),
		"resource_tags": cty.List(tagType), "resource_labels": cty.Map(cty.String),
		"failure_domains": cty.List(failureDomainType),
	})
)

// CheckClusterType returns what is wrong with a module's type of the variable, and the fix, or "".
func CheckClusterType(declared cty.Type) (problem, fix string) {
	if !declared.IsObjectType() {
		return "is not an object", "write type = object({ ... }) with the attributes that the module needs"
	}
	for _, name := range slices.Sorted(maps.Keys(declared.AttributeTypes())) {
		if clusterType.HasAttribute(name) && !declared.AttributeOptional(name) {
			return "has the attribute " + name + ", which is not optional",
				fmt.Sprintf("write %s = optional(...): a test, or an earlier version, may not set it", name)
		}
	}
	return checkAgainst(declared, clusterType, "")
}

// checkAgainst compares a type with the known one.
func checkAgainst(declared, wanted cty.Type, path string) (problem, fix string) {
	switch {
	case wanted.IsObjectType() && declared.IsObjectType():
		for _, name := range slices.Sorted(maps.Keys(declared.AttributeTypes())) {
			at := strings.TrimPrefix(path+"."+name, ".")
			if !wanted.HasAttribute(name) {
				return "has the attribute " + at + ", which does not exist", "use " +
					strings.Join(slices.Sorted(maps.Keys(wanted.AttributeTypes())), ", ")
			}
			if problem, fix = checkAgainst(declared.AttributeType(name), wanted.AttributeType(name), at); problem != "" {
				return problem, fix
			}
		}
		return "", ""
	case wanted.IsListType() && declared.IsListType():
		return checkAgainst(declared.ElementType(), wanted.ElementType(), path)
	case wanted.Equals(declared):
		return "", ""
	}
	return fmt.Sprintf("has the attribute %s, which is not a %s",
		path, wanted.FriendlyName()), "use the type in docs/contracts/module.md"
}

// Value returns the variable in the type that a module declares, with its defaults. Unknown strings
// are null; unknown lists and maps are empty.
func (c *Cluster) Value(declared cty.Type, defaults *typeexpr.Defaults) (cty.Value, error) {
	if c == nil {
		c = &Cluster{}
	}
	value := c.all()
	if defaults != nil {
		value = defaults.Apply(value)
	}
	converted, err := convert.Convert(value, declared)
	if err != nil {
		return cty.NilVal,
			fmt.Errorf("the facts about the cluster do not match the type of the module's variable cluster: %w", err)
	}
	return converted, nil
}

// all returns a value of the type known.
func (c *Cluster) all() cty.Value {
	labels := cty.MapValEmpty(cty.String)
	if len(c.ResourceLabels) > 0 {
		values := map[string]cty.Value{}
		for key, value := range c.ResourceLabels {
			values[key] = cty.StringVal(value)
		}
		labels = cty.MapVal(values)
	}
	return cty.ObjectVal(map[string]cty.Value{
		"installation": text(c.Installation), "platform": text(c.Platform), "region": text(c.Region),
		"ip_family": text(c.IPFamily), "cloud_name": text(c.CloudName),
		"network_resource_group": text(c.NetworkResourceGroup), "api_vips": texts(c.APIVIPs),
		"ingress_vips":  texts(c.IngressVIPs),
		"resource_tags": list(c.ResourceTags, tagType, ResourceTag.value), "resource_labels": labels,
		"failure_domains": list(c.FailureDomains, failureDomainType, FailureDomain.value),
	})
}

func (t ResourceTag) value() cty.Value {
	// A tag may have an empty value, which is not unknown.
	return cty.ObjectVal(map[string]cty.Value{"key": cty.StringVal(t.Key), "value": cty.StringVal(t.Value),
		"parent_id": text(t.ParentID)})
}

func (d FailureDomain) value() cty.Value {
	return cty.ObjectVal(map[string]cty.Value{
		"name": text(d.Name), "region": text(d.Region), "zone": text(d.Zone), "server": text(d.Server),
		"datacenter":      text(d.Datacenter),
		"compute_cluster": text(d.ComputeCluster), "datastore": text(d.Datastore), "resource_pool": text(d.ResourcePool),
		"folder":   text(d.Folder),
		"template": text(d.Template), "host_group": text(d.HostGroup), "vm_group": text(d.VMGroup),
		"networks": texts(d.Networks),
	})
}

// text returns null for an empty text.
func text(value string) cty.Value {
	if value == "" {
		return cty.NullVal(cty.String)
	}
	return cty.StringVal(value)
}

func texts(values []string) cty.Value { return list(values, cty.String, cty.StringVal) }

func list[T any](items []T, of cty.Type, value func(T) cty.Value) cty.Value {
	values := make([]cty.Value, 0, len(items))
	for _, one := range items {
		values = append(values, value(one))
	}
	if len(values) == 0 {
		return cty.ListValEmpty(of)
	}
	return cty.ListVal(values)
}
