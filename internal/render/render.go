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
)

// Input is the input of a render.
type Input struct {
	// Machine to render. It is not modified.
	Machine *machinev1beta1.Machine
	// ClusterID is the infrastructure name of the Machine's cluster.
	ClusterID string
	// Module serves the Machine's providerSpec.
	Module *module.Module
	// UserData is the value of the module's user data key, or empty.
	UserData []byte
	// Credentials is the data of the credentials Secret, or nil if the module needs none.
	Credentials map[string][]byte
	// CredentialsVersion changes whenever Credentials changes, and represents them in the hash.
	CredentialsVersion string
	// Cluster is what is known about the cluster, for modules that declare it; optional.
	Cluster *module.Cluster
	// Held caches validations that have passed; optional.
	Held *Held
	// Under is the prefix of paths in errors and warnings: "spec.template" for the template of a
	// MachineSet, empty for a Machine.
	Under string
}

// Inputs are the inputs of a run.
type Inputs struct {
	// Variables are the module's variables as canonical JSON, the content of a .tfvars.json file. They
	// contain user data.
	Variables []byte
	// Environment is the environment of the module's providers, except for what comes from the
	// cluster's configuration. It contains credentials.
	Environment map[string]string
	// Files are the contents of files for the module's providers, by the environment variables with
	// their paths. They contain credentials.
	Files map[string]string
	// Sensitive are values that no log, event or condition may show. None is empty.
	Sensitive []string
	// Hash covers Variables and the credentials version, as sha256:digest. It excludes the module's
	// digest, and user data, which an instance reads when it is created.
	Hash string
	// Warnings are about fields that have no effect.
	Warnings []Warning
}

// Render returns the inputs of a run. They have the types of the module's variables and satisfy their validations. The
// error is an [Errors] if the Machine or its Secrets are at fault, and wraps [ErrNoAddress] if an address from a pool
// is still missing. Any other error is a bug in the caller.
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
	if values[module.VariableProviderSpec], err = withAddresses(input,
		values[module.VariableProviderSpec]); err != nil {
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
	inputs.Sensitive = SensitiveValues(keys, input.Credentials, string(input.UserData))
	hashed, err := encoded.without(module.VariableUserData).marshal()
	if err != nil {
		return nil, fmt.Errorf("rendering inputs: %w", err)
	}
	inputs.Hash = HashOf(hashed, input.CredentialsVersion)
	inputs.Warnings = found.warned()
	return inputs, nil
}

// withAddresses returns the variable provider_spec with the Machine's addresses from pools.
func withAddresses(input Input, providerSpec cty.Value) (cty.Value, error) {
	given, err := ParseAddresses(input.Machine.Annotations[AddressesAnnotation])
	if err != nil {
		return providerSpec, errors.Join(ErrNoAddress, err)
	}
	return ApplyAddresses(input.Module.Spec().AddressClaims, providerSpec, given)
}

// addCluster adds the variable cluster if the module declares it.
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

// publishedLabels are labels that the operator sets on a Machine once its instance exists. As
// inputs, they would change the hash of every new Machine right after its create.
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

// renderEnvironment reads the variables and files from the credentials. path is where the Machine
// names the Secret.
func renderEnvironment(input Input, path string, keys []v1alpha1.CredentialKey,
	found *findings) (environment, files map[string]string) {
	environment, files, faults := module.ReadCredentials(keys, input.Credentials)
	for _, fault := range faults {
		found.fail(&FieldError{Path: path, Problem: fault.Problem, Fix: fault.Fix, InSecret: true})
	}
	maps.Copy(environment, input.Module.Constants())
	return environment, files
}

// SensitiveValues returns the values to hide: credentials that are not public, and others. Values that end in a
// newline are also listed without it, since it is usually trimmed.
func SensitiveValues(keys []v1alpha1.CredentialKey, credentials map[string][]byte, others ...string) []string {
	values := append(module.SecretParts(keys, credentials), others...)
	for key, value := range credentials {
		if module.Hides(keys, key) {
			values = append(values, string(value))
		}
	}
	for _, value := range values {
		values = append(values, strings.TrimSpace(value))
	}
	values = slices.DeleteFunc(values, func(value string) bool { return value == "" })
	// Longest first: replacing a part of a secret would leave the rest.
	slices.SortFunc(values, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	return slices.Compact(values)
}

// HashOf returns the hash of variables and the credentials version.
func HashOf(variables []byte, credentialsVersion string) string {
	return hashOf(variables, []byte(credentialsVersion))
}

func hashOf(parts ...[]byte) string {
	hash := sha256.New()
	for _, part := range parts {
		// Writing to a hash never fails. Lengths distinguish "ab"+"c" from "a"+"bc".
		_ = binary.Write(hash, binary.BigEndian, uint64(len(part)))
		_, _ = hash.Write(part)
	}
	return "sha256:" + hex.EncodeToString(hash.Sum(nil))
}
