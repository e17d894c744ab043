package preview

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	strictjson "sigs.k8s.io/json"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/render"
)

// Kinds that a preview plans.
const (
	KindMachineDeployment = v1beta1.MachineDeploymentKind
	KindMachineSet        = "MachineSet"
	KindMachine           = "Machine"
)

// templatePath is the path of the Machine template in a MachineSet and in a MachineDeployment.
const templatePath = "spec.template"

// Cluster is what the inputs need from a cluster.
type Cluster struct {
	// Namespace is the default namespace.
	Namespace string
	// ID is the cluster's infrastructure name, for objects without its label; empty if unknown.
	ID string
	// ClusterValues are defaults for fields that a providerSpec lacks.
	ClusterValues module.ClusterValues
	// Known is what modules may know about the cluster; optional.
	Known *module.Cluster
}

// Object is a MachineDeployment, a MachineSet or a Machine, defaulted.
type Object struct {
	item *item
	// deployment is nil for other kinds.
	deployment *v1beta1.MachineDeployment
	// class is Gardener's MachineClass with the providerSpec; nil for the Machine API's own kinds.
	class    *item
	Replicas int32
	// Machine is the representative one. A generated name is empty.
	Machine *machinev1beta1.Machine
	// replicasGiven reports that the manifest sets Replicas.
	replicasGiven bool
	// under is the prefix of the paths of the Machine's fields.
	under         string
	clusterValues module.ClusterValues
	known         *module.Cluster
	// unfilled are the fields without a default because the cluster's value is unknown.
	unfilled []render.Unfilled
}

// Read reads MachineDeployments, MachineSets and Machines from files, validates them as admission and a run do, and returns what to plan,
// in the order of the files. Skipped names other objects. The error is a [Problems], or a mistake of the caller.
func Read(files []File, cluster Cluster, catalog *module.Catalog) (requests []*Request, skipped []string, err error) {
	var problems Problems
	var objects []*Object
	var others gardener
	for _, file := range files {
		for _, document := range split(file) {
			items, failed := itemsOf(document)
			problems = append(problems, failed...)
			for _, one := range items {
				if taken, failed := others.take(one, cluster); taken {
					problems = append(problems, failed...)
					continue
				}
				object, failed := readObject(one, cluster)
				problems = append(problems, failed...)
				switch {
				case object != nil:
					objects = append(objects, object)
				case len(failed) == 0 && !one.isInfrastructure():
					skipped = append(skipped, one.meta.title()+" in "+one.file)
				}
			}
		}
	}
	ofGardener, skippedThere, failed := others.objects(cluster)
	objects, skipped, problems = append(objects, ofGardener...), append(skipped, skippedThere...), append(problems,
		failed...)
	problems = append(problems, duplicates(objects)...)
	for _, one := range objects {
		request, failed, err := one.request(catalog)
		if err != nil {
			return nil, nil, err
		}
		requests, problems = append(requests, request), append(problems, failed...)
	}
	return requests, skipped, problems.asError()
}

// duplicates rejects objects with the same name.
func duplicates(objects []*Object) Problems {
	var problems Problems
	first := map[string]*Object{}
	for _, one := range objects {
		if one.item.meta.Metadata.Name == "" {
			continue
		}
		title := one.item.meta.title()
		if before, taken := first[title]; taken {
			where := fmt.Sprintf("it is in %s:%d already", before.item.file, before.item.line(before.item.under))
			problems = append(problems, one.item.problem("metadata.name", where, "rename one, or leave it out"))
			continue
		}
		first[title] = one
	}
	return problems
}

// readObject returns nil for other kinds. Other groups have a MachineDeployment, too.
func readObject(one *item, cluster Cluster) (*Object, Problems) {
	kind := one.meta.Kind
	ours := strings.HasPrefix(one.meta.APIVersion, machinev1beta1.GroupName+"/")
	if kind != KindMachineSet && kind != KindMachine && (kind != KindMachineDeployment || !ours) {
		return nil, nil
	}
	if one.meta.APIVersion != machinev1beta1.GroupVersion.String() {
		return nil, Problems{one.problem("apiVersion", fmt.Sprintf("it is %q", one.meta.APIVersion),
			"write "+machinev1beta1.GroupVersion.String())}
	}
	if one.meta.Metadata.Namespace == "" {
		one.meta.Metadata.Namespace = cluster.Namespace
	}
	switch kind {
	case KindMachine:
		return readMachine(one, cluster)
	case KindMachineDeployment:
		return readDeployment(one, cluster)
	}
	set := &machinev1beta1.MachineSet{}
	problems, decoded := one.decodeInto(set)
	return readSet(one, cluster, set, problems, decoded)
}

func readDeployment(one *item, cluster Cluster) (*Object, Problems) {
	deployment := &v1beta1.MachineDeployment{}
	problems, decoded := one.decodeInto(deployment)
	problems = append(problems, one.checkStrategy(&deployment.Spec.Strategy)...)
	spec := deployment.Spec
	object, problems := readSet(one, cluster, &machinev1beta1.MachineSet{
		ObjectMeta: deployment.ObjectMeta,
		Spec:       machinev1beta1.MachineSetSpec{Replicas: spec.Replicas, Selector: spec.Selector, Template: spec.Template},
	}, problems, decoded)
	if object != nil {
		object.deployment = deployment
	}
	return object, problems
}

func readMachine(one *item, cluster Cluster) (*Object, Problems) {
	machine := &machinev1beta1.Machine{}
	problems, _ := one.decodeInto(machine)
	if machine.GenerateName == "" || machine.Name != "" {
		problems = append(problems, one.checkName(machine.Name)...)
	}
	if len(problems) > 0 {
		return nil, problems
	}
	machine.Namespace = one.meta.Metadata.Namespace
	complete(machine, cluster)
	return &Object{item: one, Replicas: 1, Machine: machine, clusterValues: cluster.ClusterValues,
		known: cluster.Known}, nil
}

func readSet(one *item, cluster Cluster, set *machinev1beta1.MachineSet, problems Problems,
	decoded bool) (*Object, Problems) {
	problems = append(problems, one.checkName(set.Name)...)
	usable := len(problems) == 0
	if decoded {
		for _, wrong := range render.CheckSet(&set.Spec) {
			problems = append(problems, one.problem(wrong.Field, wrong.Detail, ""))
		}
	}
	if !usable {
		return nil, problems
	}
	set.Namespace = one.meta.Metadata.Namespace
	machine := render.MachineOf(set)
	complete(machine, cluster)
	return &Object{
		item: one, Replicas: ptr.Deref(set.Spec.Replicas, 1), replicasGiven: set.Spec.Replicas != nil, Machine: machine,
		under:         templatePath,
		clusterValues: cluster.ClusterValues, known: cluster.Known,
	}, problems
}

// checkName validates a name as the API server does.
func (i *item) checkName(name string) Problems {
	const at = "metadata.name"
	if name == "" {
		return Problems{i.problem(at, "it is required, but missing", "name the "+i.meta.Kind)}
	}
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return Problems{i.problem(at, fmt.Sprintf("%q is no name", name),
			"use lower-case letters, digits, '-' and '.'")}
	}
	return nil
}

// complete defaults a Machine as admission does on create.
func complete(machine *machinev1beta1.Machine, cluster Cluster) {
	if _, given := machine.Labels[machinev1beta1.MachineClusterIDLabel]; given || cluster.ID == "" {
		return
	}
	if machine.Labels == nil {
		machine.Labels = map[string]string{}
	}
	machine.Labels[machinev1beta1.MachineClusterIDLabel] = cluster.ID
}

// clusterID returns the Machine's cluster, or "" if unknown.
func (o *Object) clusterID() string { return o.Machine.Labels[machinev1beta1.MachineClusterIDLabel] }

var strictField = regexp.MustCompile(`field "([^"]+)"`)

// decodeInto decodes the object strictly, as the API server does on apply, and reports whether its known fields were
// decoded.
func (i *item) decodeInto(into any) (_ Problems, decoded bool) {
	strict, err := strictjson.UnmarshalStrict(i.raw, into)
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong):
		return Problems{i.problem(wrong.Field,
			fmt.Sprintf("a %s does not fit; its type is %s", wrong.Value, wrong.Type), "correct it")}, false
	case err != nil:
		return Problems{i.problem("", err.Error(), "correct it")}, false
	}
	var problems Problems
	for _, one := range strict {
		field := ""
		if match := strictField.FindStringSubmatch(one.Error()); match != nil {
			field = match[1]
		}
		if strings.HasSuffix(field, ".metadata.creationTimestamp") {
			continue // generators write a null creationTimestamp, even in templates; it has no effect
		}
		problem, fix := "the field is not known", "remove it, or correct its spelling"
		switch {
		case strings.HasPrefix(one.Error(), "duplicate"):
			problem, fix = "the field is given twice", "remove one"
		case strings.HasSuffix(field, ".labels") && i.meta.Kind == KindMachineSet:
			fix = "labels of Machines belong in spec.template.metadata.labels"
		}
		problems = append(problems, i.problem(field, problem, fix))
	}
	return slices.CompactFunc(problems, func(a, b *Problem) bool { return *a == *b }), true
}
