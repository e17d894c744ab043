package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/netip"
	"strconv"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// Args are what the program is given: the variables of variables.tf, of the types and with the defaults that they have there.
type Args struct {
	Machine Machine
	Spec    ProviderSpec
}

// Machine is the part of the variable machine that is used.
type Machine struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
}

// ProviderSpec is the variable provider_spec.
type ProviderSpec struct {
	CPU          float64  `json:"cpu"`
	Memory       string   `json:"memory"`
	Pods         int      `json:"pods"`
	StorageClass string   `json:"storageClass"`
	Volumes      []Volume `json:"volumes"`
}

// Volume is a volume of the Node.
type Volume struct {
	Name string `json:"name"`
	Size string `json:"size"`
}

// Outputs are those of every stack. Each waits for the Node, so that a create that fails publishes nothing.
type Outputs struct {
	ProviderID, InstanceID, InstanceState, InstanceType, Region, Zone pulumi.StringOutput
	Addresses                                                         pulumi.MapArrayOutput
}

func (o Outputs) export(ctx *pulumi.Context) {
	for name, output := range map[string]pulumi.Input{
		"provider_id": o.ProviderID, "instance_id": o.InstanceID, "instance_state": o.InstanceState, "addresses": o.Addresses,
		"instance_type": o.InstanceType, "region": o.Region, "zone": o.Zone,
	} {
		ctx.Export(name, output)
	}
}

// manifestType is the resource of terraform-provider-kubectl, as the bridge names it.
const manifestType = "kubectl:index/manifest:Manifest"

// manifest is what is read of such a resource.
type manifest struct {
	pulumi.CustomResourceState

	UID pulumi.StringOutput `pulumi:"uid"`
}

const instanceType = "hollow-volumes"

// NewNode makes the Node, which is the instance and so is called "this", and after it its volumes.
func NewNode(ctx *pulumi.Context, provider string, args Args) (Outputs, error) {
	var node manifest
	fixed := args.Spec.fixed()
	err := register(ctx, "this", provider, &node, args.node(),
		[]string{"metadata.annotations", "metadata.labels", "spec.taints"},
		// The API server ignores a change of these, so it has to show as a replacement, which the operator refuses.
		pulumi.ReplacementTrigger(pulumi.ToStringMap(fixed)))
	if err != nil {
		return Outputs{}, err
	}
	for _, volume := range args.Spec.Volumes {
		err := register(ctx, "volume-"+volume.Name, provider, &manifest{}, args.persistentVolume(volume),
			// The controllers of volumes write these.
			[]string{"metadata.annotations", "metadata.finalizers", "spec.claimRef", "status"}, pulumi.DependsOn([]pulumi.Resource{&node}))
		if err != nil {
			return Outputs{}, err
		}
	}
	made := func(text string) pulumi.StringOutput {
		return node.UID.ApplyT(func(string) string { return text }).(pulumi.StringOutput)
	}
	return Outputs{
		ProviderID: made(args.Machine.providerID()), InstanceID: node.UID, InstanceState: made("Running"),
		InstanceType: made(instanceType), Region: made(""), Zone: made(""),
		Addresses: node.UID.ApplyT(func(string) []map[string]any { return args.Machine.addresses() }).(pulumi.MapArrayOutput),
	}, nil
}

// register makes one object of the cluster. What others write to the ignored fields is no drift.
func register(ctx *pulumi.Context, name, provider string, into *manifest, object map[string]any, ignored []string, options ...pulumi.ResourceOption) error {
	body, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("writing the manifest of %s: %w", name, err)
	}
	return ctx.RegisterPackageResource(manifestType, name, pulumi.Map{
		"yamlBody":       pulumi.String(body), // JSON is YAML
		"ignoreFields":   pulumi.ToStringArray(ignored),
		"validateSchema": pulumi.Bool(false),
	}, into, provider, options...)
}

func (m Machine) providerID() string { return "kubemark://" + m.UID }

// address returns an address in fd6b:7562:656d::/48 that is made from the Machine's UID.
func (m Machine) address() string {
	address := netip.MustParseAddr("fd6b:7562:656d::").As16()
	hash := sha256.Sum256([]byte(m.UID))
	copy(address[6:], hash[:])
	return netip.AddrFrom16(address).String()
}

func (m Machine) addresses() []map[string]any {
	return []map[string]any{{"type": "InternalIP", "address": m.address()}, {"type": "Hostname", "address": m.Name}}
}

// labels are on everything that belongs to the Machine: a lookup knows it by the UID.
func (m Machine) labels() map[string]any {
	return map[string]any{"machine-iac.io/machine-uid": m.UID, "kubernetes.io/hostname": m.Name}
}

// fixed is what a Node keeps for ever, with the names that it has there.
func (s ProviderSpec) fixed() map[string]string {
	return map[string]string{
		"cpu": strconv.FormatFloat(s.CPU, 'f', -1, 64), "memory": s.Memory, "pods": strconv.Itoa(s.Pods),
	}
}

func (a Args) node() map[string]any {
	labels := a.Machine.labels()
	labels["kubernetes.io/os"], labels["node.kubernetes.io/instance-type"] = "linux", instanceType
	capacity := a.Spec.fixed()
	return map[string]any{
		"apiVersion": "v1",
		"kind":       "Node",
		"metadata": map[string]any{
			"name": a.Machine.Name, "labels": labels, "annotations": map[string]any{"kwok.x-k8s.io/node": "fake"},
		},
		"spec":   map[string]any{"providerID": a.Machine.providerID()},
		"status": map[string]any{"addresses": a.Machine.addresses(), "allocatable": capacity, "capacity": capacity},
	}
}

func (a Args) persistentVolume(volume Volume) map[string]any {
	onThisNode := map[string]any{"key": "kubernetes.io/hostname", "operator": "In", "values": []string{a.Machine.Name}}
	return map[string]any{
		"apiVersion": "v1",
		"kind":       "PersistentVolume",
		"metadata":   map[string]any{"name": a.Machine.Name + "-" + volume.Name, "labels": a.Machine.labels()},
		"spec": map[string]any{
			"accessModes":                   []string{"ReadWriteOnce"},
			"capacity":                      map[string]any{"storage": volume.Size},
			"local":                         map[string]any{"path": "/mnt/" + volume.Name},
			"persistentVolumeReclaimPolicy": "Retain",
			"storageClassName":              a.Spec.StorageClass,
			"nodeAffinity": map[string]any{"required": map[string]any{
				"nodeSelectorTerms": []any{map[string]any{"matchExpressions": []any{onThisNode}}},
			}},
		},
	}
}
