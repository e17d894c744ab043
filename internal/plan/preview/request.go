package preview

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/plan/offline"
	"github.com/machine-iac/machine-iac-operator/internal/render"
)

// placeholder stands in place of credentials. No plan ever sees it.
const placeholder = "unknown"

// maxGenerateName is how much of a generateName the API server keeps.
const maxGenerateName = 58

// Request is an object that has passed all checks, and what to plan for it.
type Request struct {
	object *Object
	set    Set
	module *module.Module
	input  offline.Input
	// key is equal for requests with equal plans.
	key string
}

// request answers what to plan for the object, or what is wrong with it.
func (o *Object) request(catalog *module.Catalog) (*Request, Problems, error) {
	request, err := o.check(catalog)
	var wrong render.Errors
	if err != nil && !errors.As(err, &wrong) {
		return nil, nil, fmt.Errorf("checking %s: %w", o.item.meta.title(), err)
	}
	var problems Problems
	for _, field := range wrong {
		problems = append(problems, o.item.problem(field.Path, field.Problem, field.Mend+o.filledBy(field.Path)))
	}
	return request, problems, nil
}

// filledBy answers, for a field at a path, what the cluster would fill in there if its facts were known here.
func (o *Object) filledBy(path string) string {
	for _, one := range o.unfilled {
		at := strings.TrimPrefix(o.under+"."+one.Path, ".")
		if path == at || strings.HasPrefix(path, at+".") || strings.HasPrefix(at, path+".") {
			return "; a cluster may fill it in, which is told with " + factFlags(one.Missing)
		}
	}
	return ""
}

// factFlags answers the flags that tell facts.
func factFlags(names []string) string {
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

// check answers a [render.Errors], with paths in the object, where the object is at fault.
func (o *Object) check(catalog *module.Catalog) (*Request, error) {
	served, err := render.ModuleFor(catalog, o.Machine)
	if err != nil {
		return nil, render.Under(o.under, err)
	}
	o.Machine, o.unfilled = render.Complete(o.Machine, served, o.facts)
	input := render.Input{Machine: o.Machine, ClusterID: o.clusterID(), Module: served, Under: o.under}
	warnings, err := render.Check(input)
	if err != nil {
		return nil, err
	}
	credentials, userData, err := render.Refs(o.Machine, served)
	if err != nil {
		return nil, render.Under(o.under, err)
	}
	request := &Request{object: o, module: served, set: o.describe(served)}
	request.set.Secrets = secretsOf(credentials, userData)
	for _, warning := range warnings {
		request.set.Warnings = append(request.set.Warnings, warning.String())
	}
	if request.input, err = o.render(input, userData.Name != ""); err != nil {
		return nil, err
	}
	request.set.tell(o.Machine, served)
	if o.clusterID() == "" {
		request.set.Warnings = append(request.set.Warnings, strings.TrimPrefix(o.under+".", ".")+"metadata.labels: nothing is done for a Machine without the label "+
			machinev1beta1.MachineClusterIDLabel+"; set it, or give --cluster-id")
	}
	request.key, err = keyOf(served, request.input)
	return request, err
}

// describe answers what is known of the object without a plan.
func (o *Object) describe(served *module.Module) Set {
	meta := o.item.meta
	set := Set{
		Kind: meta.Kind, Namespace: meta.Metadata.Namespace, Name: meta.Metadata.Name, Replicas: o.Replicas, Module: served.Reference(),
		Source:      Source{File: o.item.file, Document: o.item.number, Line: o.item.line(o.item.under)},
		MachineName: o.Machine.Name, Generated: o.Machine.Name == "",
	}
	if set.Generated {
		set.MachineName = o.Machine.GenerateName
	}
	if set.Name == "" {
		set.Name = meta.Metadata.GenerateName
	}
	if apiVersion, kind, err := render.KindOf(o.Machine); err == nil {
		set.ProviderSpec = apiVersion + " " + kind
	}
	return set
}

func secretsOf(credentials, userData render.Ref) []Secret {
	var secrets []Secret
	for _, one := range []Secret{{Name: credentials.Name, Role: "credentials"}, {Name: userData.Name, Role: "user data"}} {
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
		unknown.Name, unknown.NamePrefix = true, o.Machine.GenerateName[:min(len(o.Machine.GenerateName), maxGenerateName)]
	}
	variables, err := render.Variables(input)
	if err != nil {
		return offline.Input{}, err
	}
	return offline.Input{Variables: variables, Unknown: unknown}, nil
}

// keyOf tells whether two plans are the same. The inputs are canonical JSON.
func keyOf(served *module.Module, input offline.Input) (string, error) {
	unknown, err := json.Marshal(input.Unknown)
	if err != nil {
		return "", fmt.Errorf("comparing inputs: %w", err)
	}
	sum := sha256.Sum256([]byte(served.Reference() + "\n" + string(unknown) + "\n" + string(input.Variables)))
	return hex.EncodeToString(sum[:]), nil
}

// environmentOf is what the module's providers see when they tell their schemas. An argument that is required unless a variable is set
// must not be required, so there is something in place of each credential.
func environmentOf(served *module.Module) map[string]string {
	environment := served.Constants()
	if credentials := served.Spec().Credentials; credentials != nil {
		for _, key := range credentials.Keys {
			environment[cmp.Or(key.Env, key.File)] = placeholder
		}
	}
	return environment
}
