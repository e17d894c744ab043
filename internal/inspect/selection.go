package inspect

import (
	"context"
	"fmt"
	"slices"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
)

// pageSize is how many objects one response of the API server holds.
const pageSize = 500

// Selection says which objects a command is about. The zero value stands for all.
type Selection struct {
	// Names are TYPE/NAME, or NAME for the kinds that the command takes.
	Names []string
	// Labels is a label selector in kubectl's syntax.
	Labels string
}

func (s Selection) all() bool { return len(s.Names) == 0 && s.Labels == "" }

// target is one of a selection's names.
type target struct {
	name  string
	kinds []string
}

// targetOf reads TYPE/NAME, or NAME of one of these kinds.
func targetOf(argument string, kindsOfNames []string) (target, error) {
	kind, name, typed := strings.Cut(argument, "/")
	if !typed {
		return target{name: argument, kinds: kindsOfNames}, nil
	}
	found, err := kinds().KindFor(schema.ParseGroupResource(kind).WithVersion(""))
	if err != nil || name == "" || !slices.Contains([]string{kindDeployment, kindSet, kindMachine}, found.Kind) {
		return target{}, fmt.Errorf("%q names no MachineDeployment, MachineSet or Machine; write machinedeployment/NAME, machineset/NAME or machine/NAME",
			argument)
	}
	return target{name: name, kinds: []string{found.Kind}}, nil
}

// ParseNames checks names as a [Selection] has them.
func ParseNames(names []string) error {
	for _, name := range names {
		if _, err := targetOf(name, nil); err != nil {
			return err
		}
	}
	return nil
}

// found are the objects that a selection stands for.
type found struct {
	objects []client.Object
	// named are the names that were given of Machines.
	named []string
	// missing are the names that no object has.
	missing []target
}

// find reads what a selection stands for. NAME stands for each of the kinds.
func (c *Cluster) find(ctx context.Context, s Selection, kinds ...string) (*found, error) {
	result := &found{}
	builder := c.builder(ctx)
	var targets []target
	for _, argument := range s.Names {
		one, err := targetOf(argument, kinds)
		if err != nil {
			return nil, err
		}
		targets = append(targets, one)
		for _, kind := range one.kinds {
			builder.ResourceNames(kind, one.name)
		}
		if slices.Contains(one.kinds, kindMachine) {
			result.named = append(result.named, one.name)
		}
	}
	builder.LabelSelectorParam(s.Labels)
	if len(targets) == 0 {
		builder.ResourceTypes(kinds...)
	}
	if s.all() {
		builder.SelectAllParam(true)
	}
	read := builder.Flatten().ContinueOnError().Do()
	if len(targets) > 0 {
		read.IgnoreErrors(apierrors.IsNotFound)
	}
	return result, c.fill(result, read, targets)
}

func (c *Cluster) builder(ctx context.Context) *resource.Builder {
	return resource.NewBuilder(newClientGetter(ctx, c.config)).
		WithScheme(c.scheme, c.scheme.PrioritizedVersionsAllGroups()...).
		NamespaceParam(c.namespace).DefaultNamespace().AllNamespaces(c.namespace == "").
		RequestChunksOf(pageSize)
}

// fill takes over what was found, each object once.
func (c *Cluster) fill(result *found, from *resource.Result, targets []target) error {
	if err := from.Err(); err != nil {
		return err // of the command line
	}
	infos, err := from.Infos()
	if err != nil {
		return c.explain(err)
	}
	seen := map[string]bool{}
	for _, info := range infos {
		object, ok := info.Object.(client.Object)
		if !ok {
			return fmt.Errorf("reading %s: it is a %T", info.ObjectName(), info.Object)
		}
		name := info.Mapping.GroupVersionKind.Kind + "/" + info.Namespace + "/" + info.Name
		if !seen[name] {
			result.objects = append(result.objects, object)
		}
		seen[name] = true
	}
	for _, one := range targets {
		if !slices.ContainsFunc(one.kinds, func(kind string) bool { return seen[kind+"/"+c.namespace+"/"+one.name] }) {
			result.missing = append(result.missing, one)
		}
	}
	return nil
}

// explain returns the first error of the API server with its fix.
func (c *Cluster) explain(err error) error {
	if several, ok := err.(utilerrors.Aggregate); ok && len(several.Errors()) > 0 { //nolint:errorlint // what a builder returns is not wrapped
		err = several.Errors()[0]
	}
	return explain(err, c.config.Host)
}

// notFound returns an error for a name that no object has, with names that are like it.
func (c *Cluster) notFound(ctx context.Context, missed target) error {
	kind := strings.Join(missed.kinds, " or ")
	var known []string
	for _, one := range missed.kinds {
		others, err := c.find(ctx, Selection{}, one)
		switch {
		case Denied(err):
			return fmt.Errorf("there is no %s %q in namespace %s", kind, missed.name, c.namespace)
		case err == nil:
			known = append(known, others.names()...)
		case !absent(err):
			return err
		}
	}
	return Missing(kind, missed.name, c.namespace, known)
}

func (f *found) names() []string {
	var names []string
	for _, object := range f.objects {
		names = append(names, object.GetName())
	}
	return names
}

func (f *found) deployments() []v1beta1.MachineDeployment {
	return ofType[v1beta1.MachineDeployment](f.objects)
}

func (f *found) sets() []machinev1beta1.MachineSet {
	return ofType[machinev1beta1.MachineSet](f.objects)
}

func (f *found) machines() []machinev1beta1.Machine {
	return ofType[machinev1beta1.Machine](f.objects)
}

func ofType[T any](objects []client.Object) []T {
	var all []T
	for _, object := range objects {
		if one, ok := any(object).(*T); ok {
			all = append(all, *one)
		}
	}
	return all
}

// ownerOf returns the UID of the controller that created an object; empty where a person did.
func ownerOf(object metav1.Object) types.UID {
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
		return owner.UID
	}
	return ""
}
