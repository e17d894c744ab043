package preview

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/machine-iac/machine-iac-operator/internal/module"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/internal/plan/offline"
	"github.com/machine-iac/machine-iac-operator/internal/render"
)

// maxGenerateName is the length to which the API server truncates a generateName.
const maxGenerateName = 58

// Request is a valid MachineDeployment, MachineSet or Machine, and the inputs to plan for it.
type Request struct {
	// Module serves the Machine; Input has its variables.
	Module *module.Module
	Input  offline.Input
	// ProviderSpec is the providerSpec's apiVersion and kind.
	ProviderSpec string
	Source       Source
	Secrets      []Secret
	// Size is the instance's capacity, or nil if the module does not define it. Shown has its image and disks.
	Size     *module.Size
	Shown    module.InstancePreview
	Warnings []string

	object *Object
	key    string
}

// Source is the location of an object. Document and Line count from one.
type Source struct {
	File     string `json:"file"`
	Document int    `json:"document"`
	Line     int    `json:"line"`
}

// Secret is a Secret that must exist in the cluster.
type Secret struct {
	Name string `json:"name"`
	// Role is "credentials" or "user data".
	Role string `json:"role"`
}

// Machine returns the requested Machine, or the representative one of a MachineSet. A generated name is empty.
func (r *Request) Machine() *machinev1beta1.Machine { return r.object.Machine }

// Deployment returns the requested MachineDeployment, or nil for another kind.
func (r *Request) Deployment() *v1beta1.MachineDeployment { return r.object.deployment }

// Title returns the object's kind, namespace and name.
func (r *Request) Title() (kind, namespace, name string) {
	meta := r.object.item.meta
	if name = meta.Metadata.Name; name == "" {
		name = meta.Metadata.GenerateName
	}
	return meta.Kind, meta.Metadata.Namespace, name
}

// Replicas returns the number of requested Machines and reports whether the manifest sets it.
func (r *Request) Replicas() (replicas int32, given bool) {
	return r.object.Replicas, r.object.replicasGiven
}

// SetReplicas sets the number of Machines for a manifest that lacks it.
func (r *Request) SetReplicas(replicas int32) { r.object.Replicas = replicas }

// Engine returns the engine that would execute the request.
func (r *Request) Engine() v1alpha1.Engine { return r.Module.Engine() }

// Key identifies the plan: requests with equal keys have equal plans.
func (r *Request) Key() string { return r.key }

// request returns what to plan for the object, or its problems.
func (o *Object) request(catalog *module.Catalog) (*Request, Problems, error) {
	request, err := o.check(catalog)
	var wrong render.Errors
	if err != nil && !errors.As(err, &wrong) {
		return nil, nil, fmt.Errorf("checking %s: %w", o.item.meta.title(), err)
	}
	var problems Problems
	for _, field := range wrong {
		at, path := o.item, field.Path
		if o.class != nil {
			at, path = o.class, classPath(path)
		}
		problems = append(problems, at.problem(path, field.Problem, field.Fix+o.filledBy(field.Path)+o.typedBy(field)))
	}
	return request, problems, nil
}

// filledBy names the flags that set the cluster values from which the field at path would be defaulted.
func (o *Object) filledBy(path string) string {
	for _, one := range o.unfilled {
		at := strings.TrimPrefix(o.under+"."+one.Path, ".")
		if path == at || strings.HasPrefix(path, at+".") || strings.HasPrefix(at, path+".") {
			return "; a cluster may fill it in: set it with " + clusterValueFlags(one.Missing)
		}
	}
	return ""
}

// typedBy names the flags that would default a missing providerSpec kind to that of the cluster's platform.
func (o *Object) typedBy(wrong *render.FieldError) string {
	const kind = "spec.providerSpec.value.kind"
	if wrong.Fault != render.Missing || !strings.HasSuffix(wrong.Path, kind) ||
		o.clusterValues[module.ValuePlatform] != "" {
		return ""
	}
	return "; OpenShift takes that of the cluster's platform: give --infrastructure, or --cluster-fact " +
		module.ValuePlatform + "=VALUE"
}

// clusterValueFlags names the flags for the cluster values.
func clusterValueFlags(names []string) string {
	var flags []string
	for _, name := range names {
		switch name {
		case module.ValueClusterID:
			flags = append(flags, "--cluster-id")
		case module.ValueNamespace:
			flags = append(flags, "--namespace")
		default:
			flags = append(flags, "--cluster-fact "+name+"=VALUE")
		}
	}
	return strings.Join(flags, " and ")
}

// check returns [render.Errors], with paths in the object, if the object is invalid.
func (o *Object) check(catalog *module.Catalog) (*Request, error) {
	served, err := render.ModuleFor(catalog, o.Machine, o.clusterValues[module.ValuePlatform])
	if err != nil {
		return nil, render.Under(o.under, err)
	}
	o.Machine, o.unfilled = render.Complete(o.Machine, served, o.clusterValues)
	input := render.Input{Machine: o.Machine, ClusterID: o.clusterID(), Module: served, Cluster: o.known,
		Under: o.under}
	warnings, err := render.Check(input)
	if err != nil {
		return nil, err
	}
	credentials, userData, err := render.Refs(o.Machine, served)
	if err != nil {
		return nil, render.Under(o.under, err)
	}
	request := &Request{object: o, Module: served, Secrets: secretsOf(credentials, userData), Source: Source{
		File: o.item.file, Document: o.item.number, Line: o.item.line(o.item.under),
	}}
	if apiVersion, kind, err := render.KindOf(o.Machine); err == nil {
		request.ProviderSpec = apiVersion + " " + kind
	}
	for _, warning := range warnings {
		request.Warnings = append(request.Warnings, warning.String())
	}
	if request.Input, err = o.render(input, userData.Name != ""); err != nil {
		return nil, err
	}
	request.describe()
	if o.clusterID() == "" {
		request.Warnings = append(request.Warnings, strings.TrimPrefix(o.under+".", ".")+"metadata.labels: nothing "+
			"is done for a Machine without the label "+
			machinev1beta1.MachineClusterIDLabel+"; set it, or give --cluster-id")
	}
	request.key, err = keyOf(served, request.Input)
	return request, err
}

// describe sets the instance's size, image and disks from the providerSpec alone. An error in the size is only a
// warning: it affects nothing but scaling from zero.
func (r *Request) describe() {
	value, err := render.ProviderSpec(r.Machine(), r.Module)
	if err != nil {
		return // validation of the providerSpec reports it
	}
	size, err := module.SizeOf(r.Module, value)
	if err != nil {
		r.Warnings = append(r.Warnings, "the size is not known to an autoscaler: "+err.Error())
	}
	r.Size, r.Shown = size, module.PreviewOf(r.Module, value)
}

func secretsOf(credentials, userData render.Ref) []Secret {
	var secrets []Secret
	for _, one := range []Secret{{Name: credentials.Name, Role: "credentials"},
		{Name: userData.Name, Role: "user data"}} {
		if one.Name != "" {
			secrets = append(secrets, one)
		}
	}
	return secrets
}

// render renders the representative Machine.
func (o *Object) render(input render.Input, hasUserData bool) (offline.Input, error) {
	unknown := offline.Unknown{UID: o.Machine.UID == "", ClusterID: input.ClusterID == "", UserData: hasUserData}
	if o.Machine.Name == "" {
		unknown.Name, unknown.NamePrefix = true, o.Machine.GenerateName[:min(len(o.Machine.GenerateName),
			maxGenerateName)]
	}
	variables, err := render.Variables(input)
	if err != nil {
		return offline.Input{}, err
	}
	return offline.Input{Variables: variables, Unknown: unknown}, nil
}

// keyOf identifies a plan. The inputs are canonical JSON.
func keyOf(served *module.Module, input offline.Input) (string, error) {
	unknown, err := json.Marshal(input.Unknown)
	if err != nil {
		return "", fmt.Errorf("comparing inputs: %w", err)
	}
	sum := sha256.Sum256([]byte(served.Reference() + "\n" + string(unknown) + "\n" + string(input.Variables)))
	return hex.EncodeToString(sum[:]), nil
}
