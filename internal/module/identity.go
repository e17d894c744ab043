package module

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
)

// Owner is the owner of a resource, according to what the resource carries in the infrastructure.
type Owner struct {
	// MachineUID is the UID of the Machine that the resource was created for, or empty.
	MachineUID string
	// Installation is the UID of the installation that created it, or empty.
	Installation string
}

// ForeignError means that a resource does not carry the UID of a Machine.
type ForeignError struct {
	// Address of the resource.
	Address string
	// Owner is the UID that it carries, or empty.
	Owner string
}

// Error implements error.
func (e *ForeignError) Error() string {
	if e.Owner == "" {
		return e.Address + " does not carry the UID of a Machine"
	}
	return fmt.Sprintf("%s carries the UID %q of another Machine", e.Address, e.Owner)
}

// Identities read the owners of resources by type, as declared in module.yaml.
type Identities map[string]identity

type identity struct{ machineUID, installation *field }

// field is a text of a resource: see [v1alpha1.IdentityField].
type field struct {
	path []string
	// pattern matches the whole text and captures the UID; nil if the whole text is the UID.
	pattern *regexp.Regexp
}

// in returns the UID in an object, or "". It decodes texts on the way to it as YAML or JSON.
func (f *field) in(object any) string {
	if f == nil {
		return ""
	}
	var text string
	for i := 1; i <= len(f.path) && text == ""; i++ {
		text = scalarAt(object, f.path[:i]...)
		if rest := f.path[i:]; text != "" && len(rest) > 0 {
			var err error
			if text, err = scalarIn([]byte(text), rest); err != nil {
				return ""
			}
			break
		}
	}
	if f.pattern == nil {
		return text
	}
	if match := f.pattern.FindStringSubmatch(text); match != nil {
		return match[1]
	}
	return ""
}

// Has reports whether it is known where the resource with an address carries its Machine's UID.
func (i Identities) Has(address string) bool {
	_, known := i[TypeOf(address)]
	return known
}

// OwnerOf returns the owner of the resource with an address. object is the resource as JSON, as the
// provider has read it from the infrastructure. known is false if module.yaml does not declare this
// type.
func (i Identities) OwnerOf(address string, object []byte) (owner Owner, known bool) {
	one, known := i[TypeOf(address)]
	var value any
	if !known || json.Unmarshal(object, &value) != nil {
		return Owner{}, known
	}
	return Owner{MachineUID: one.machineUID.in(value), Installation: one.installation.in(value)}, true
}

// Check returns a *ForeignError unless all objects, by address, belong to the Machine with a UID.
// known are the objects in its state. An object belongs to the Machine if it carries exactly this
// UID where module.yaml says. If module.yaml does not declare its type, it must refer by ID to
// another object, or a known one, that does: an association of two others, for example.
func (i Identities) Check(objects, known map[string]json.RawMessage, uid string) error {
	proven := map[string]bool{}
	for address, object := range known {
		if owner, _ := i.OwnerOf(address, object); uid != "" && owner.MachineUID == uid {
			proven[idOf(address, object)] = true
		}
	}
	var others []string
	for _, address := range slices.Sorted(maps.Keys(objects)) {
		owner, known := i.OwnerOf(address, objects[address])
		switch {
		case !known:
			others = append(others, address)
		case uid == "" || owner.MachineUID != uid:
			return &ForeignError{Address: address, Owner: owner.MachineUID}
		default:
			proven[idOf(address, objects[address])] = true
		}
	}
	delete(proven, "")
	for _, address := range others {
		if !refersTo(objects[address], proven) {
			return &ForeignError{Address: address}
		}
	}
	return nil
}

// idOf returns the ID of an object. A bridge names the attribute after the type.
func idOf(address string, object []byte) string {
	var attributes map[string]any
	if json.Unmarshal(object, &attributes) != nil {
		return ""
	}
	name := TypeOf(address)
	name = name[strings.LastIndex(name, ":")+1:]
	for _, key := range []string{"id", strings.ToLower(name[:1]) + name[1:] + "Id"} {
		if id, isText := attributes[key].(string); isText && id != "" {
			return id
		}
	}
	return ""
}

// refersTo reports whether one of an object's own attributes, except its ID, is or lists one of the
// IDs.
func refersTo(object []byte, ids map[string]bool) bool {
	var attributes map[string]any
	if json.Unmarshal(object, &attributes) != nil {
		return false
	}
	refers := func(value any) bool { text, isText := value.(string); return isText && ids[text] }
	for name, value := range attributes {
		list, _ := value.([]any)
		if name != "id" && (refers(value) || slices.ContainsFunc(list, refers)) {
			return true
		}
	}
	return false
}

// Names reports whether an attribute of an object is a value, or a path that ends in it.
func Names(object []byte, value string) bool {
	var attributes map[string]any
	if json.Unmarshal(object, &attributes) != nil {
		return false
	}
	for _, attribute := range attributes {
		if text, isText := attribute.(string); isText && (text == value || strings.HasSuffix(text, "/"+value)) {
			return true
		}
	}
	return false
}

// TypeOf returns the type in the address of a resource: "aws_instance.this[0]", or
// "kubectl:index/manifest:Manifest.this" for a stack, whose type has two colons and may have dots
// before the second.
func TypeOf(address string) string {
	last := strings.LastIndex(address, ":") + 1
	name, _, _ := strings.Cut(address[last:], ".")
	return address[:last] + name
}

// NewIdentities returns the identities declared in module.yaml. faults are by index of the entry.
func NewIdentities(declared []v1alpha1.ResourceIdentity) (identities Identities, faults map[int]error) {
	identities, faults = Identities{}, map[int]error{}
	for i, one := range declared {
		_, twice := identities[one.Type]
		machine, err := newField(&one.MachineUID)
		installation, installationErr := newField(one.Installation)
		switch {
		case one.Type == "":
			faults[i] = fmt.Errorf("has no type")
		case twice:
			faults[i] = fmt.Errorf("names the type %s twice", one.Type)
		case err != nil:
			faults[i] = fmt.Errorf("has a machineUID %w", err)
		case installationErr != nil:
			faults[i] = fmt.Errorf("has an installation %w", installationErr)
		}
		identities[one.Type] = identity{machineUID: machine, installation: installation}
	}
	return identities, faults
}

func newField(declared *v1alpha1.IdentityField) (*field, error) {
	if declared == nil {
		return nil, nil
	}
	if len(declared.Path) == 0 || slices.Contains(declared.Path, "") {
		return nil, fmt.Errorf("without a path, or with an empty step in it")
	}
	read := &field{path: declared.Path}
	if declared.Pattern == "" {
		return read, nil
	}
	pattern, err := regexp.Compile(`\A(?:` + declared.Pattern + `)\z`)
	if err != nil || pattern.NumSubexp() != 1 {
		return nil, fmt.Errorf("whose pattern %q is not a regular expression (RE2) with exactly one group", declared.Pattern)
	}
	read.pattern = pattern
	return read, nil
}
