package inspect

import (
	"context"
	"fmt"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
)

// Arguments name objects as kubectl's commands take them: TYPE/NAME, TYPE NAME, TYPE, labels or files.
type Arguments struct {
	Names  []string
	Labels string
	Files  resource.FilenameOptions
	// EnforceNamespace rejects files with another namespace.
	EnforceNamespace bool
}

// RolledOut returns the MachineDeployments and MachineSets that are named.
func (c *Cluster) RolledOut(ctx context.Context, a Arguments) ([]client.Object, error) {
	builder := c.builder(ctx).FilenameParam(a.EnforceNamespace, &a.Files).LabelSelectorParam(a.Labels)
	if err := a.take(builder); err != nil {
		return nil, err
	}
	read := builder.ContinueOnError().Latest().Flatten().Do()
	if err := read.Err(); err != nil {
		return nil, err // of the command line
	}
	infos, err := read.Infos()
	switch {
	case apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		return nil, err // names the object, whose CRD is there
	case err != nil:
		return nil, c.explain(err)
	}
	found := make([]client.Object, 0, len(infos))
	for _, info := range infos {
		switch one := info.Object.(type) {
		case *v1beta1.MachineDeployment:
			found = append(found, one)
		case *machinev1beta1.MachineSet:
			found = append(found, one)
		default:
			return nil, fmt.Errorf("%s has no rollout; name a MachineDeployment, as machinedeployment/NAME, or a MachineSet",
				info.ObjectName())
		}
	}
	return found, nil
}

// take gives a builder the names. The builder itself would discover the categories of a TYPE.
func (a Arguments) take(builder *resource.Builder) error {
	if len(a.Names) == 0 || strings.Contains(a.Names[0], "/") {
		builder.ResourceTypeOrNameArgs(false, a.Names...)
		return nil
	}
	types, names := resource.SplitResourceArgument(a.Names[0]), a.Names[1:]
	for _, one := range types {
		if _, err := kinds().KindFor(schema.ParseGroupResource(one).WithVersion("")); err != nil {
			return fmt.Errorf("the server doesn't have a resource type %q", one)
		}
		if len(names) > 0 {
			builder.ResourceNames(one, names...)
		}
	}
	if len(names) == 0 {
		builder.ResourceTypes(types...).SelectAllParam(a.Labels == "")
	}
	return nil
}
