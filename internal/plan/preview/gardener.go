package preview

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// Gardener's machine-controller-manager keeps the providerSpec in a MachineClass that Machines refer to. The driver in
// gardener/ combines the two, as this file does.
const (
	gardenerVersion  = "machine.sapcloud.io/v1alpha1"
	gardenerProvider = "machine-iac"

	kindMachineClass = "MachineClass"
)

// gardenerClass has the fields of a MachineClass that a preview needs.
type gardenerClass struct {
	item                 *item
	Provider             string          `json:"provider"`
	ProviderSpec         json.RawMessage `json:"providerSpec"`
	SecretRef            *gardenerName   `json:"secretRef"`
	CredentialsSecretRef *gardenerName   `json:"credentialsSecretRef"`
}

type gardenerName struct {
	Name string `json:"name"`
}

// gardenerMachines has the fields of a MachineDeployment, a MachineSet or a Machine that a preview needs.
type gardenerMachines struct {
	Spec struct {
		Replicas *int32        `json:"replicas"`
		Class    *gardenerName `json:"class"`
		Template struct {
			Spec struct {
				Class *gardenerName `json:"class"`
			} `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
}

// gardener collects Gardener's objects. A class may follow its references.
type gardener struct {
	classes map[string]*gardenerClass
	items   []*item
}

// take collects an object of Gardener's kinds and reports whether it is one.
func (g *gardener) take(one *item, cluster Cluster) (bool, Problems) {
	if one.meta.APIVersion != gardenerVersion {
		return false, nil
	}
	if one.meta.Metadata.Namespace == "" {
		one.meta.Metadata.Namespace = cluster.Namespace
	}
	if one.meta.Kind != kindMachineClass {
		g.items = append(g.items, one)
		return true, nil
	}
	class := &gardenerClass{item: one}
	if err := json.Unmarshal(one.raw, class); err != nil {
		return true, Problems{one.problem("", err.Error(), "correct it")}
	}
	if g.classes == nil {
		g.classes = map[string]*gardenerClass{}
	}
	key := one.meta.Metadata.Namespace + "/" + one.meta.Metadata.Name
	if before, taken := g.classes[key]; taken {
		return true, Problems{one.problem("metadata.name",
			fmt.Sprintf("it is in %s:%d already", before.item.file, before.item.line(before.item.under)), "rename one")}
	}
	g.classes[key] = class
	return true, nil
}

// objects converts Gardener's Machines; skipped names classes of other providers.
func (g *gardener) objects(cluster Cluster) (objects []*Object, skipped []string, problems Problems) {
	used := map[*gardenerClass]bool{}
	for _, one := range g.items {
		object, class, failed := g.object(one, cluster)
		problems = append(problems, failed...)
		if class != nil {
			used[class] = true
		}
		switch {
		case object != nil:
			objects = append(objects, object)
		case len(failed) == 0:
			skipped = append(skipped, one.meta.title()+" in "+one.file)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(g.classes)) {
		if class := g.classes[key]; !used[class] {
			skipped = append(skipped, class.item.meta.title()+" in "+class.item.file)
		}
	}
	return objects, skipped, problems
}

// object returns nil for a Machine of another provider.
func (g *gardener) object(one *item, cluster Cluster) (*Object, *gardenerClass, Problems) {
	of, at := &gardenerMachines{}, "spec.template.spec.class.name"
	if err := json.Unmarshal(one.raw, of); err != nil {
		return nil, nil, Problems{one.problem("", err.Error(), "correct it")}
	}
	name := of.Spec.Template.Spec.Class
	if one.meta.Kind == KindMachine {
		name, at = of.Spec.Class, "spec.class.name"
	}
	problems := one.checkName(one.meta.Metadata.Name)
	if name == nil || name.Name == "" {
		return nil, nil, append(problems, one.problem(at, "it is required, but missing", "name a MachineClass"))
	}
	class, known := g.classes[one.meta.Metadata.Namespace+"/"+name.Name]
	if !known {
		return nil, nil, append(problems,
			one.problem(at, fmt.Sprintf("there is no MachineClass %s in the files", name.Name), "give its file too"))
	}
	if class.Provider != gardenerProvider {
		return nil, class, problems
	}
	machine, failed := class.machine(one)
	if problems = append(problems, failed...); len(problems) > 0 {
		return nil, class, problems
	}
	complete(machine, cluster)
	if machine.Labels == nil { // the driver labels Machines with their namespace, which is named after the shoot
		machine.Labels = map[string]string{machinev1beta1.MachineClusterIDLabel: one.meta.Metadata.Namespace}
	}
	return &Object{
		item: one, class: class.item, Replicas: ptr.Deref(of.Spec.Replicas, 1), replicasGiven: of.Spec.Replicas != nil,
		Machine: machine, clusterValues: cluster.ClusterValues, known: cluster.Known,
	}, class, nil
}

// machine returns the Machine that the driver would create.
func (c *gardenerClass) machine(of *item) (*machinev1beta1.Machine, Problems) {
	var value map[string]any
	if err := json.Unmarshal(c.ProviderSpec, &value); err != nil || value == nil {
		return nil, Problems{c.item.problem("providerSpec", "it is no object",
			"write the providerSpec as a Machine of machine.openshift.io has it")}
	}
	machine := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: of.meta.Metadata.Namespace}}
	userData := of.meta.Metadata.Name
	if of.meta.Kind == KindMachine {
		machine.Name = of.meta.Metadata.Name
	} else {
		machine.GenerateName = of.meta.Metadata.Name + "-"
	}
	credentials := "credentialsSecret"
	if kind, _ := value["kind"].(string); strings.EqualFold(kind, "OpenstackProviderSpec") {
		credentials = "cloudsSecret"
	}
	reference := c.CredentialsSecretRef
	if reference == nil {
		reference = c.SecretRef
	}
	if _, given := value[credentials]; !given && reference != nil {
		value[credentials] = map[string]any{"name": reference.Name}
	}
	if _, given := value["userDataSecret"]; !given && (c.SecretRef != nil || c.CredentialsSecretRef != nil) {
		value["userDataSecret"] = map[string]any{"name": userData + "-user-data"}
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, Problems{c.item.problem("providerSpec", err.Error(), "correct it")}
	}
	machine.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: raw}
	return machine, nil
}

// classPath maps the path of a field in the Machine to its path in the MachineClass.
func classPath(path string) string {
	return "providerSpec" + strings.TrimPrefix(path, "spec.providerSpec.value")
}
