package render

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"github.com/zclconf/go-cty/cty"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/addresses"
	"github.com/machine-iac/machine-iac-operator/internal/module/credential"
	"github.com/machine-iac/machine-iac-operator/internal/module/platform"
)

// Input is what inputs are rendered from.
type Input struct {
	// Machine is the Machine; it is not changed.
	Machine *machinev1beta1.Machine
	// ClusterID is the name of the cluster that the Machine belongs to.
	ClusterID string
	// Module serves the Machine's providerSpec.
	Module *module.Module
	// UserData is the value at the module's user data key; empty when there is none.
	UserData []byte
	// Credentials is the data of the credentials Secret; nil when the module needs none.
	Credentials map[string][]byte
	// CredentialsVersion changes whenever Credentials does. It represents them in the hash.
	CredentialsVersion string
	// Cluster is what is known of the cluster, for modules that declare that; nil for nothing.
	Cluster *platform.Cluster
	// Held remembers which validations have held; nil where none of them is remembered.
	Held *Held
	// Under is the prefix of the paths in errors and warnings: "spec.template" where the Machine is the template of a MachineSet, and
	// empty for a Machine.
	Under string
}

// Inputs are what a run is given.
type Inputs struct {
	// Variables are the module's variables as canonical JSON, the content of a .tfvars.json file. They hold user data.
	Variables []byte
	// Environment is what the module's providers read, but for what comes from the cluster's configuration. It holds credentials.
	Environment map[string]string
	// Files are what the module's providers read from files, by the environment variables that carry the files' paths. They hold
	// credentials.
	Files map[string]string
	// Sensitive lists values that no log, event or condition may show. None is empty.
	Sensitive []string
	// Hash is over Variables and the credentials version, as sha256:digest. The module's digest is not in it.
	Hash string
	// Warnings are about fields that have no effect.
	Warnings []Warning
}

// Render returns the inputs of a run: of the types that the module's variables have, and such that their validations hold. The
// error is an [Errors] when the Machine or its Secrets are at fault, and wraps [addresses.ErrNone] when the Machine was not given an address
// of a pool yet; any other error is a mistake of the caller.
func Render(input Input) (*Inputs, error) {
	if input.Machine == nil || input.Module == nil {
		return nil, errors.New("rendering inputs: a Machine and a module are required")
	}
	found := &findings{under: input.Under}
	read := readSpec(input.Machine, input.Module, found)
	provided := input.Held.provide(read, input, found)
	values := map[string]cty.Value{
		module.VariableMachine:      renderMachine(input),
		module.VariableProviderSpec: provided.value,
		module.VariableUserData:     renderUserData(input, read.userData.path, found),
	}
	if err := addCluster(values, input); err != nil {
		return nil, fmt.Errorf("rendering inputs: %w", err)
	}
	var err error
	if values[module.VariableProviderSpec], err = withAddresses(input, values[module.VariableProviderSpec]); err != nil {
		return nil, err
	}
	encoded := &variables{values: values}
	if provided.json != nil && input.Module.Spec().AddressClaims == nil {
		encoded.json = map[string][]byte{module.VariableProviderSpec: provided.json}
	}
	validate(input.Module, read, encoded, input.Held, found)
	keys := credentialKeys(input.Module, read.at, values[module.VariableProviderSpec], found)
	inputs := &Inputs{}
	inputs.Environment, inputs.Files = renderEnvironment(input, read.credentials.path, keys, found)
	if err := found.err(); err != nil {
		return nil, err
	}
	if inputs.Variables, err = encoded.marshal(); err != nil {
		return nil, fmt.Errorf("rendering inputs: %w", err)
	}
	inputs.Sensitive = sensitiveValues(input, keys)
	inputs.Hash = hashOf(inputs.Variables, []byte(input.CredentialsVersion))
	inputs.Warnings = found.warned()
	return inputs, nil
}

// withAddresses returns the variable provider_spec with the addresses that the Machine was given from pools.
func withAddresses(input Input, providerSpec cty.Value) (cty.Value, error) {
	given, err := addresses.Parse(input.Machine.Annotations[addresses.Annotation])
	if err != nil {
		return providerSpec, errors.Join(addresses.ErrNone, err)
	}
	return addresses.Apply(input.Module.Spec().AddressClaims, providerSpec, given)
}

// addCluster adds the variable cluster, where the module declares it.
func addCluster(values map[string]cty.Value, input Input) error {
	declared := input.Module.Variable(module.VariableCluster)
	if declared.Type == cty.NilType {
		return nil
	}
	value, err := input.Cluster.Value(declared.Type, declared.Defaults)
	values[module.VariableCluster] = value
	return err
}

func renderUserData(input Input, path string, found *findings) cty.Value {
	if utf8.Valid(input.UserData) {
		return cty.StringVal(string(input.UserData))
	}
	found.fail(&FieldError{
		Path: path, InSecret: true, Fix: "encode it, for example in base64, if what boots the instance can read that",
		Problem: fmt.Sprintf("user data is UTF-8 text, but these %d bytes are not", len(input.UserData)),
	})
	return cty.UnknownVal(cty.String)
}

// publishedLabels are labels that the operator writes on a Machine once its instance exists. As inputs they would change the
// hash of every new Machine right after its create.
var publishedLabels = map[string]bool{
	"machine.openshift.io/instance-type":          true,
	"machine.openshift.io/region":                 true,
	"machine.openshift.io/zone":                   true,
	"machine.openshift.io/interruptible-instance": true,
}

func renderMachine(input Input) cty.Value {
	labels := map[string]cty.Value{}
	for name, value := range input.Machine.Labels {
		if !publishedLabels[name] {
			labels[name] = cty.StringVal(value)
		}
	}
	rendered := cty.MapValEmpty(cty.String)
	if len(labels) > 0 {
		rendered = cty.MapVal(labels)
	}
	return cty.ObjectVal(map[string]cty.Value{
		"name":       cty.StringVal(input.Machine.Name),
		"namespace":  cty.StringVal(input.Machine.Namespace),
		"uid":        cty.StringVal(string(input.Machine.UID)),
		"cluster_id": cty.StringVal(input.ClusterID),
		"labels":     rendered,
	})
}

// renderEnvironment reads the keys from the credentials, whose name is at the path, into variables and files.
func renderEnvironment(input Input, path string, keys []v1alpha1.CredentialKey, found *findings) (environment, files map[string]string) {
	environment, files, faults := credential.Read(keys, input.Credentials)
	for _, fault := range faults {
		found.fail(&FieldError{Path: path, Problem: fault.Problem, Fix: fault.Fix, InSecret: true})
	}
	maps.Copy(environment, input.Module.Constants())
	return environment, files
}

// sensitiveValues returns what must not be shown: credentials that are not public, and user data. A value that ends in a
// newline is listed without it too, since what reads it usually trims it.
func sensitiveValues(input Input, keys []v1alpha1.CredentialKey) []string {
	public := map[string]bool{}
	for _, key := range keys {
		public[key.Key] = key.Public && len(key.Path) == 0
	}
	seen := map[string]bool{"": true}
	var values []string
	add := func(raw []byte) {
		for _, text := range []string{string(raw), strings.TrimSpace(string(raw))} {
			if !seen[text] {
				seen[text] = true
				values = append(values, text)
			}
		}
	}
	for key, value := range input.Credentials {
		if !public[key] {
			add(value)
		}
	}
	for _, part := range credential.SecretParts(keys, input.Credentials) {
		add([]byte(part))
	}
	add(input.UserData)
	// Longer first: replacing a part of a secret would leave the rest of it.
	slices.SortFunc(values, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	return values
}

func hashOf(parts ...[]byte) string {
	hash := sha256.New()
	for _, part := range parts {
		// A hash never fails to write. Lengths keep "ab"+"c" and "a"+"bc" apart.
		_ = binary.Write(hash, binary.BigEndian, uint64(len(part)))
		_, _ = hash.Write(part)
	}
	return "sha256:" + hex.EncodeToString(hash.Sum(nil))
}
