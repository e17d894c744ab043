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

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/render"
)

// The kinds that a preview is for.
const (
	setKind     = "MachineSet"
	machineKind = "Machine"
)

// templatePath is where a MachineSet keeps what its Machines are made from.
const templatePath = "spec.template"

// Cluster is what only the cluster could say of the inputs.
type Cluster struct {
	// Namespace is that of objects which do not say.
	Namespace string
	// ID is the name of the cluster's infrastructure, for objects which do not say; empty when it is not known.
	ID string
	// Facts are what else is known of the cluster, for the defaults of fields that a providerSpec lacks.
	Facts module.ClusterValues
}

// Object is a MachineSet or a Machine, completed.
type Object struct {
	item *item
	// Replicas is how many Machines there are.
	Replicas int32
	// Machine is the representative one. Its name is empty where it is generated.
	Machine *machinev1beta1.Machine
	// replicasGiven says that the manifest tells Replicas.
	replicasGiven bool
	// under stands before the paths of the Machine's fields.
	under string
	facts module.ClusterValues
	// unfilled are the fields that the cluster would fill in if more were known of it.
	unfilled []render.Unfilled
}

// Read reads MachineSets and Machines from files, holds them to what admission and a run hold them to, and answers what to plan, in
// the order of the files. Skipped names what is neither. The error is a [Problems] with all that is wrong, or else a mistake of the
// caller.
func Read(files []File, cluster Cluster, catalog *module.Catalog) (requests []*Request, skipped []string, err error) {
	var problems Problems
	var objects []*Object
	for _, file := range files {
		for _, document := range split(file) {
			items, failed := itemsOf(document)
			problems = append(problems, failed...)
			for _, one := range items {
				object, failed := readObject(one, cluster)
				problems = append(problems, failed...)
				switch {
				case object != nil:
					objects = append(objects, object)
				case len(failed) == 0:
					skipped = append(skipped, one.meta.title()+" in "+one.file)
				}
			}
		}
	}
	problems = append(problems, doubles(objects)...)
	for _, one := range objects {
		request, failed, err := one.request(catalog)
		if err != nil {
			return nil, nil, err
		}
		requests, problems = append(requests, request), append(problems, failed...)
	}
	return requests, skipped, problems.asError()
}

// doubles refuses what is given twice: only one of them could be in the cluster.
func doubles(objects []*Object) Problems {
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

// readObject answers nil for what is neither a MachineSet nor a Machine.
func readObject(one *item, cluster Cluster) (*Object, Problems) {
	kind := one.meta.Kind
	if kind != setKind && kind != machineKind {
		return nil, nil
	}
	if one.meta.APIVersion != machinev1beta1.GroupVersion.String() {
		return nil, Problems{one.problem("apiVersion", fmt.Sprintf("it is %q", one.meta.APIVersion), "write "+machinev1beta1.GroupVersion.String())}
	}
	if one.meta.Metadata.Namespace == "" {
		one.meta.Metadata.Namespace = cluster.Namespace
	}
	if kind == machineKind {
		return readMachine(one, cluster)
	}
	return readSet(one, cluster)
}

func readMachine(one *item, cluster Cluster) (*Object, Problems) {
	machine := &machinev1beta1.Machine{}
	problems := one.fill(machine)
	if machine.GenerateName == "" || machine.Name != "" {
		problems = append(problems, one.checkName(machine.Name)...)
	}
	if len(problems) > 0 {
		return nil, problems
	}
	machine.Namespace = one.meta.Metadata.Namespace
	complete(machine, cluster)
	return &Object{item: one, Replicas: 1, Machine: machine, facts: cluster.Facts}, nil
}

func readSet(one *item, cluster Cluster) (*Object, Problems) {
	set := &machinev1beta1.MachineSet{}
	problems := one.fill(set)
	problems = append(problems, one.checkName(set.Name)...)
	if len(problems) > 0 {
		return nil, problems
	}
	set.Namespace = one.meta.Metadata.Namespace
	for _, wrong := range render.CheckSet(&set.Spec) {
		problems = append(problems, one.problem(wrong.Field, wrong.Detail, ""))
	}
	machine := render.MachineOf(set)
	complete(machine, cluster)
	return &Object{item: one, Replicas: ptr.Deref(set.Spec.Replicas, 1), replicasGiven: set.Spec.Replicas != nil, Machine: machine, under: templatePath, facts: cluster.Facts}, problems
}

// checkName holds a name to what the API server does.
func (i *item) checkName(name string) Problems {
	const at = "metadata.name"
	if name == "" {
		return Problems{i.problem(at, "it is required, but missing", "name the "+i.meta.Kind)}
	}
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return Problems{i.problem(at, fmt.Sprintf("%q is no name", name), "use lower-case letters, digits, '-' and '.'")}
	}
	return nil
}

// complete does to a Machine what admission does when it is created.
func complete(machine *machinev1beta1.Machine, cluster Cluster) {
	if _, given := machine.Labels[machinev1beta1.MachineClusterIDLabel]; given || cluster.ID == "" {
		return
	}
	if machine.Labels == nil {
		machine.Labels = map[string]string{}
	}
	machine.Labels[machinev1beta1.MachineClusterIDLabel] = cluster.ID
}

// clusterID answers the cluster that the Machine belongs to; empty when it is not known.
func (o *Object) clusterID() string { return o.Machine.Labels[machinev1beta1.MachineClusterIDLabel] }

var strictField = regexp.MustCompile(`field "([^"]+)"`)

// fill decodes the object strictly, as the API server does when it is applied.
func (i *item) fill(into any) Problems {
	strict, err := strictjson.UnmarshalStrict(i.raw, into)
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong):
		return Problems{i.problem(wrong.Field, fmt.Sprintf("a %s does not fit; its type is %s", wrong.Value, wrong.Type), "correct it")}
	case err != nil:
		return Problems{i.problem("", err.Error(), "correct it")}
	}
	var problems Problems
	for _, one := range strict {
		field := ""
		if match := strictField.FindStringSubmatch(one.Error()); match != nil {
			field = match[1]
		}
		problem, mend := "the field is not known", "remove it, or correct its spelling"
		if strings.HasPrefix(one.Error(), "duplicate") {
			problem, mend = "the field is given twice", "remove one"
		}
		problems = append(problems, i.problem(field, problem, mend))
	}
	return slices.CompactFunc(problems, func(a, b *Problem) bool { return *a == *b })
}
