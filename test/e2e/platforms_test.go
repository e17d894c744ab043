//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/test/libvirt"
	"github.com/machine-iac/machine-iac-operator/test/observe"
	"github.com/machine-iac/machine-iac-operator/test/openstack"
	"github.com/machine-iac/machine-iac-operator/test/vcenter"
)

const libvirtExample = "modules/libvirt/examples/machineset.yaml"

// platform is an infrastructure with instances of another actuator.
type platform struct {
	// prefix is the name prefix of its Machines, instance the engine's address of an instance.
	prefix, instance string
	// flags are the manager's flags for it.
	flags []string
	// planned is how many adoptions are previewed with the command first.
	planned int
	// make creates a cluster's instance by the platform's own API ("" is the Machines' cluster), and returns a Machine
	// that refers to it.
	make func(ctx context.Context, name, cluster string) *machinev1beta1.Machine
	// node returns the name of a Machine's Node. With joins, the Node is not the instance, and the test creates it.
	node  func(machine *machinev1beta1.Machine) string
	joins bool
	// look returns a Machine's instance, or nil.
	look func(ctx context.Context, name string) *seenInstance
	// writes returns all requests that wrote something, or is nil if look is sufficient.
	writes func() []string
	// edit changes a field that can be changed in place; edited returns an error until the instance has it.
	edit   func(ctx context.Context, name string)
	edited func(ctx context.Context, name string) error
}

// seenInstance is a snapshot of an instance.
type seenInstance struct {
	// identity is its identifier and creation time, which nothing in place changes.
	identity any
	// kept is what an adoption must not change, whole what a preview must not change.
	kept, whole any
}

// kubemarkElsewhere has Nodes like the development cluster's own.
func kubemarkElsewhere(context.Context) *platform {
	return &platform{
		prefix: "foreign", instance: on.instance, planned: adopted,
		make: func(ctx context.Context, name, cluster string) *machinev1beta1.Machine {
			node := simulatedNode(name, cluster)
			w.create(ctx, node)
			machine := w.machine(name)
			machine.Spec.ProviderID = &node.Spec.ProviderID
			return machine
		},
		node: func(machine *machinev1beta1.Machine) string { return machine.Name },
		look: func(ctx context.Context, name string) *seenInstance {
			node := &corev1.Node{}
			err := w.client.Get(ctx, types.NamespacedName{Name: name}, node)
			if apierrors.IsNotFound(err) {
				return nil
			}
			Expect(err).NotTo(HaveOccurred())
			identity := []any{node.UID, node.CreationTimestamp, node.Spec.ProviderID}
			// others write Nodes too
			return &seenInstance{identity: identity, kept: identity, whole: node.Labels[observe.UIDLabel]}
		},
		edit: func(ctx context.Context, name string) { w.patchSpec(ctx, name, "zone", "zone-b") },
		edited: func(ctx context.Context, name string) error {
			if got := w.node(ctx, name).Labels[corev1.LabelTopologyZone]; got != "zone-b" {
				return fmt.Errorf("its zone is %q", got)
			}
			return nil
		},
	}
}

// simulatedNode returns a Node as another cluster's actuator would create it.
func simulatedNode(name, cluster string) *corev1.Node {
	if cluster == "" {
		cluster = clusterID
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
			Labels: map[string]string{
				"machine-iac.io/cluster-id": cluster, corev1.LabelInstanceTypeStable: "hollow",
				corev1.LabelTopologyRegion: "region-a", corev1.LabelTopologyZone: "zone-a",
				corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
			},
		},
		Spec: corev1.NodeSpec{ProviderID: "kubemark://made-elsewhere/" + name},
		Status: corev1.NodeStatus{
			Capacity: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("16Gi"),
				corev1.ResourcePods: resource.MustParse("110"),
			},
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: "192.0.2.7"}, {Type: corev1.NodeHostName, Address: name},
			},
			NodeInfo: corev1.NodeSystemInfo{Architecture: "amd64", OperatingSystem: "linux"},
		},
	}
}

// openStackElsewhere has servers that were created through the API, as OpenShift's actuator creates them.
func openStackElsewhere(ctx context.Context) *platform {
	GinkgoHelper()
	s := w.openStack(ctx)
	another, err := s.Login(ctx)
	Expect(err).NotTo(HaveOccurred())
	Expect(another.MakeServerGroup(ctx, openstack.Cluster+"-worker")).To(Succeed())
	const rotated = "openstack-rotated-credentials"
	original := &corev1.Secret{}
	Expect(w.client.Get(ctx, types.NamespacedName{Namespace: lab.Namespace, Name: openstackCredentials}, original)).To(
		Succeed())
	copied := newSecret(rotated, original.Data)
	w.create(ctx, copied)
	DeferCleanup(func(ctx SpecContext) { Expect(w.client.Delete(ctx, copied)).To(Succeed()) })
	return &platform{
		prefix: "servers", instance: "openstack_compute_instance_v2.this", planned: few, joins: true,
		node: nodeNameOf, writes: s.Writes,
		make: func(ctx context.Context, name, cluster string) *machinev1beta1.Machine {
			if cluster == "" {
				cluster = openstack.Cluster
			}
			id, err := another.MakeServer(ctx, name, openstack.Of(cluster))
			Expect(err).NotTo(HaveOccurred())
			machine := s.alone(name, with("rootVolume", map[string]any{"diskSize": 100}))
			providerID := "openstack:///" + id
			machine.Spec.ProviderID = &providerID
			return machine
		},
		look: func(_ context.Context, name string) *seenInstance {
			server := s.Server(name)
			if server == nil {
				return nil
			}
			return &seenInstance{identity: []any{server.ID, server.Created}, kept: server, whole: server}
		},
		// Servers are immutable; only the access to them can change.
		edit: func(ctx context.Context, name string) {
			w.patchSpec(ctx, name, "cloudsSecret", map[string]any{"name": rotated})
		},
		edited: func(ctx context.Context, name string) error {
			return w.upToDateIs(w.get(ctx, name), corev1.ConditionTrue, "")
		},
	}
}

// vSphereElsewhere has clones of the template with the cluster's tag, as OpenShift's actuator creates them.
func vSphereElsewhere(ctx context.Context) *platform {
	GinkgoHelper()
	v := w.openVSphere(ctx)
	w.reachedAs(ctx, v.Environment())
	w.pod.restart(ctx) // the first runs must not use cached configuration
	at := func(ctx context.Context, name string) *vcenter.VM {
		GinkgoHelper()
		found, err := v.VM(ctx, vcenter.Folder+"/"+name)
		Expect(err).NotTo(HaveOccurred())
		return found
	}
	return &platform{
		prefix: "clones", instance: "vsphere_virtual_machine.this", planned: few, joins: true, node: nodeNameOf,
		make: func(ctx context.Context, name, cluster string) *machinev1beta1.Machine {
			machine := v.alone(name, without("tagIDs", "dataDisks"))
			if cluster == "" {
				cluster = machine.Labels[machinev1beta1.MachineClusterIDLabel]
			}
			Expect(v.Clone(ctx, vmPath(machine), 4, 16384)).To(Succeed())
			Expect(v.TagCluster(ctx, vmPath(machine), cluster)).To(Succeed())
			providerID := "vsphere://" + at(ctx, name).UUID
			machine.Spec.ProviderID = &providerID
			return machine
		},
		look: func(ctx context.Context, name string) *seenInstance {
			found := at(ctx, name)
			if found == nil {
				return nil
			}
			return &seenInstance{identity: []any{found.UUID, found.Created}, kept: found, whole: found}
		},
		edit: func(ctx context.Context, name string) { w.patchSpec(ctx, name, "tagIDs", []string{v.Tag}) },
		edited: func(ctx context.Context, name string) error {
			if tags := at(ctx, name).Tags; len(tags) != 2 {
				return fmt.Errorf("its tags are %v", tags)
			}
			return w.upToDateIs(w.get(ctx, name), corev1.ConditionTrue, "")
		},
	}
}

// libvirtElsewhere has domains created by virsh. It needs libvirt, see make e2e-libvirt.
func libvirtElsewhere(ctx context.Context) *platform {
	GinkgoHelper()
	host, err := libvirt.Open(ctx, clusterID)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { Expect(host.Close(ctx)).To(Succeed()) })
	flags := []string{}
	for name, value := range host.Environment() {
		flags = append(flags, "--engine-env="+name+"="+value)
	}
	w.pod.restart(ctx, flags...)
	DeferCleanup(func(ctx SpecContext) { w.pod.restart(ctx) })
	set := exampleSet(libvirtExample)
	changeSpec(&set.Spec.Template.Spec, with("uri", host.URI), with("domainMemory", libvirt.Memory),
		with("domainVcpu", 1), with("networkInterfaceAddress", ""),
		with("networkInterfaceName", host.Name),
		with("volume", map[string]any{"poolName": host.Name, "baseVolumeID": "base"}),
		with("ignition", map[string]any{"userDataSecret": "ignition-user-data"}))
	userData := newSecret("ignition-user-data",
		map[string][]byte{"userData": []byte(`{"ignition":{"version":"3.2.0"}}`)})
	w.create(ctx, userData)
	DeferCleanup(func(ctx SpecContext) { Expect(w.client.Delete(ctx, userData)).To(Succeed()) })
	virsh := func(ctx context.Context, arguments ...string) string {
		GinkgoHelper()
		out, err := host.Virsh(ctx, arguments...)
		Expect(err).NotTo(HaveOccurred())
		return out
	}
	return &platform{
		prefix: "domains", instance: "libvirt_domain.this", flags: flags, planned: few, joins: true, node: nodeNameOf,
		make: func(ctx context.Context, name, cluster string) *machinev1beta1.Machine {
			description := ""
			if cluster != "" {
				description = "Machine " + lab.Namespace + "/" + name + " 5e0ad6a1 of the cluster " + cluster
			}
			uuid, err := host.MakeDomain(ctx, name, description)
			Expect(err).NotTo(HaveOccurred())
			machine := (&fleet{set}).alone(name)
			providerID := "libvirt:///" + uuid
			machine.Spec.ProviderID = &providerID
			return machine
		},
		look: func(ctx context.Context, name string) *seenInstance {
			domains, err := host.Domains(ctx)
			Expect(err).NotTo(HaveOccurred())
			if !slices.Contains(domains, name) {
				return nil
			}
			// Its ID changes when it restarts.
			whole := virsh(ctx, "dumpxml", name)
			return &seenInstance{identity: virsh(ctx, "domuuid", name) + " " + virsh(ctx, "domid", name),
				kept: whole, whole: whole}
		},
		edit: func(ctx context.Context, name string) { w.patchSpec(ctx, name, "autostart", true) },
		edited: func(ctx context.Context, name string) error {
			if found := virsh(ctx, "dominfo", name); !regexp.MustCompile(`Autostart:\s+enable`).MatchString(found) {
				return errors.New(found)
			}
			return nil
		},
	}
}

// without removes fields of a providerSpec.
func without(fields ...string) func(map[string]any) {
	return func(spec map[string]any) {
		for _, field := range fields {
			delete(spec, field)
		}
	}
}
