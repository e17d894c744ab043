package module

import (
	"cmp"
	"context"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/utils/ptr"
)

// Cluster contains facts about a cluster. In the zero value, everything is unknown.
type Cluster struct {
	// Installation is the UID of the operator's installation, with which instances are tagged.
	Installation string `cty:"installation"`
	// Platform is the PlatformType, for example AWS or VSphere, and Region the cloud region.
	Platform string `cty:"platform"`
	Region   string `cty:"region"`
	// APIVIPs and IngressVIPs are the virtual IP addresses of the cluster's API and ingress.
	APIVIPs     []string `cty:"api_vips"`
	IngressVIPs []string `cty:"ingress_vips"`
	// ResourceTags and ResourceLabels are those of the cluster's cloud resources.
	ResourceTags   []ResourceTag     `cty:"resource_tags"`
	ResourceLabels map[string]string `cty:"resource_labels"`
	// IPFamily is IPv4, DualStackIPv4Primary or DualStackIPv6Primary, or empty if unknown.
	IPFamily string `cty:"ip_family"`
	// CloudName is Azure's cloud, and NetworkResourceGroup the resource group of the cluster's network
	// there.
	CloudName            string `cty:"cloud_name"`
	NetworkResourceGroup string `cty:"network_resource_group"`
	// FailureDomains of vSphere or Nutanix.
	FailureDomains []FailureDomain `cty:"failure_domains"`
}

// ResourceTag is a tag of cloud resources. Only Google Cloud's tags have parents.
type ResourceTag struct {
	Key      string `cty:"key"`
	Value    string `cty:"value"`
	ParentID string `cty:"parent_id"`
}

// FailureDomain is a part of vSphere that may fail as a whole, and what Machines in it use. For
// Nutanix it has a name, the Prism Element as its compute cluster, and its subnets as networks,
// each by UUID or name.
type FailureDomain struct {
	Name           string `cty:"name"`
	Region         string `cty:"region"`
	Zone           string `cty:"zone"`
	Server         string `cty:"server"`
	Datacenter     string `cty:"datacenter"`
	ComputeCluster string `cty:"compute_cluster"`
	Datastore      string `cty:"datastore"`
	ResourcePool   string `cty:"resource_pool"`
	Folder         string `cty:"folder"`
	Template       string `cty:"template"`
	// HostGroup and VMGroup of the compute cluster, if the zone is a host group.
	HostGroup string   `cty:"host_group"`
	VMGroup   string   `cty:"vm_group"`
	Networks  []string `cty:"networks"`
}

// ClusterReader returns the current facts about the cluster.
type ClusterReader interface {
	Cluster(ctx context.Context) (*Cluster, error)
}

// Cluster implements [Reader] for constant facts.
func (c *Cluster) Cluster(context.Context) (*Cluster, error) { return c, nil }

// ClusterOf returns the facts in an Infrastructure, which may be nil.
func ClusterOf(infrastructure *configv1.Infrastructure) *Cluster {
	c := &Cluster{}
	if infrastructure == nil {
		return c
	}
	status := infrastructure.Status.PlatformStatus
	if status == nil {
		status = &configv1.PlatformStatus{}
	}
	c.Platform = string(cmp.Or(status.Type,
		infrastructure.Status.Platform)) //nolint:staticcheck // what clusters had before platformStatus
	c.takeClouds(status)
	c.takeVirtualIPs(status)
	if vsphere := infrastructure.Spec.PlatformSpec.VSphere; vsphere != nil {
		for n := range vsphere.FailureDomains {
			c.FailureDomains = append(c.FailureDomains, failureDomainOf(&vsphere.FailureDomains[n]))
		}
	}
	if nutanix := infrastructure.Spec.PlatformSpec.Nutanix; nutanix != nil {
		for _, one := range nutanix.FailureDomains {
			domain := FailureDomain{Name: one.Name, ComputeCluster: nutanixName(one.Cluster)}
			for _, subnet := range one.Subnets {
				domain.Networks = append(domain.Networks, nutanixName(subnet))
			}
			c.FailureDomains = append(c.FailureDomains, domain)
		}
	}
	return c
}

// takeClouds takes the facts that are specific to a cloud.
func (c *Cluster) takeClouds(status *configv1.PlatformStatus) {
	if aws := status.AWS; aws != nil {
		c.Region, c.IPFamily = aws.Region, string(aws.IPFamily)
		for _, tag := range aws.ResourceTags {
			c.ResourceTags = append(c.ResourceTags, ResourceTag{Key: tag.Key, Value: tag.Value})
		}
	}
	if azure := status.Azure; azure != nil {
		c.CloudName, c.IPFamily = string(azure.CloudName), string(azure.IPFamily)
		c.NetworkResourceGroup = cmp.Or(azure.NetworkResourceGroupName, azure.ResourceGroupName)
		for _, tag := range azure.ResourceTags {
			c.ResourceTags = append(c.ResourceTags, ResourceTag{Key: tag.Key, Value: tag.Value})
		}
	}
	if gcp := status.GCP; gcp != nil {
		c.Region = gcp.Region
		for _, tag := range gcp.ResourceTags {
			c.ResourceTags = append(c.ResourceTags, ResourceTag{Key: tag.Key, Value: tag.Value, ParentID: tag.ParentID})
		}
		for _, label := range gcp.ResourceLabels {
			if c.ResourceLabels == nil {
				c.ResourceLabels = map[string]string{}
			}
			c.ResourceLabels[label.Key] = label.Value
		}
	}
	if ibm := status.IBMCloud; ibm != nil {
		c.Region = ibm.Location
	}
	if power := status.PowerVS; power != nil {
		c.Region = power.Region
	}
}

// takeVirtualIPs takes the addresses of platforms that have no load balancers of their own.
//
//nolint:staticcheck // the fields of one address are what clusters from before version 4.12 have
func (c *Cluster) takeVirtualIPs(status *configv1.PlatformStatus) {
	take := func(api, ingress []string, firstAPI, firstIngress string) {
		c.APIVIPs, c.IngressVIPs = orFirst(api, firstAPI), orFirst(ingress, firstIngress)
	}
	if one := status.BareMetal; one != nil {
		take(one.APIServerInternalIPs, one.IngressIPs, one.APIServerInternalIP, one.IngressIP)
	}
	if one := status.Nutanix; one != nil {
		take(one.APIServerInternalIPs, one.IngressIPs, one.APIServerInternalIP, one.IngressIP)
	}
	// If the user's load balancer has the addresses, no Machine has them.
	if one := status.OpenStack; one != nil &&
		(one.LoadBalancer == nil || one.LoadBalancer.Type != configv1.LoadBalancerTypeUserManaged) {
		take(one.APIServerInternalIPs, one.IngressIPs, one.APIServerInternalIP, one.IngressIP)
	}
	if one := status.Ovirt; one != nil {
		take(one.APIServerInternalIPs, one.IngressIPs, one.APIServerInternalIP, one.IngressIP)
	}
	if one := status.VSphere; one != nil {
		take(one.APIServerInternalIPs, one.IngressIPs, one.APIServerInternalIP, one.IngressIP)
	}
}

// orFirst returns all addresses, or the single one of an older cluster.
func orFirst(all []string, first string) []string {
	if len(all) == 0 && first != "" {
		return []string{first}
	}
	return all
}

func nutanixName(identifier configv1.NutanixResourceIdentifier) string {
	if identifier.Type == configv1.NutanixIdentifierUUID {
		return ptr.Deref(identifier.UUID, "")
	}
	return ptr.Deref(identifier.Name, "")
}

func failureDomainOf(one *configv1.VSpherePlatformFailureDomainSpec) FailureDomain {
	topology := one.Topology
	domain := FailureDomain{
		Name: one.Name, Region: one.Region, Zone: one.Zone, Server: one.Server, Datacenter: topology.Datacenter,
		ComputeCluster: topology.ComputeCluster, Datastore: topology.Datastore, ResourcePool: topology.ResourcePool,
		Folder:   topology.Folder,
		Template: topology.Template, Networks: topology.Networks,
	}
	if affinity := one.ZoneAffinity; affinity != nil && affinity.HostGroup != nil {
		domain.HostGroup, domain.VMGroup = affinity.HostGroup.HostGroup, affinity.HostGroup.VMGroup
	}
	return domain
}
