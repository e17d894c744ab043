package contract

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module"
)

var (
	placeName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9 -]{0,62}$`)
	// placeMachine are the fields of the variable machine that a place may use.
	placeMachine = []string{"name", "namespace", "cluster_id"}
)

// placeSources lists the possible sources of a part of a place.
const placeSources = "field, machine, credential, environment or awsAccountOf"

// checkPlace checks spec.place.
func checkPlace(meta *Metadata, providerSpec module.Variable) {
	seen := map[string]bool{}
	for i, part := range meta.Spec.Place {
		c := placeCheck{Metadata: meta, providerSpec: providerSpec, at: fmt.Sprintf("spec.place[%d]", i), part: part}
		if !placeName.MatchString(part.Name) {
			c.AtField(c.at+".name", fmt.Sprintf("is %q, which is not a valid name for a part of a place", part.Name),
				"use letters, digits, spaces and '-', at most 63, starting with a letter")
		} else if seen[part.Name] {
			c.AtField(c.at+".name", fmt.Sprintf("uses %q twice", part.Name), "give each part a unique name")
		}
		seen[part.Name] = true
		c.check()
	}
}

// placeCheck checks one part of a place.
type placeCheck struct {
	*Metadata
	providerSpec module.Variable
	at           string
	part         v1alpha1.PlacePart
}

func (c placeCheck) check() {
	sources := 0
	for _, given := range []bool{c.part.Field != "", c.part.Machine != "", c.part.Credential != nil,
		c.part.Environment != "", len(c.part.AWSAccountOf) > 0} {
		if given {
			sources++
		}
	}
	switch {
	case sources == 0:
		c.AtField(c.at, "has no source", "use one of "+placeSources)
	case sources > 1:
		c.AtField(c.at, "has several sources", "keep one of "+placeSources)
	case c.part.Field != "":
		checkPath(c.Metadata, c.providerSpec, c.at+".field", c.part.Field, cty.String, cty.Number, cty.Bool)
		c.shown(c.at+".field", c.part.Field[strings.LastIndex(c.part.Field, ".")+1:])
	case c.part.Machine != "":
		if !slices.Contains(placeMachine, c.part.Machine) {
			c.AtField(c.at+".machine", fmt.Sprintf("is %q, which does not identify a place", c.part.Machine),
				"write "+strings.Join(placeMachine, ", "))
		}
	case c.part.Environment != "":
		c.environment()
	case len(c.part.AWSAccountOf) > 0:
		for i, key := range c.part.AWSAccountOf {
			c.key(fmt.Sprintf("%s.awsAccountOf[%d]", c.at, i), key)
		}
	default:
		c.credential(*c.part.Credential)
	}
}

// environment checks that a variable does not depend on the credentials.
func (c placeCheck) environment() {
	if !slices.ContainsFunc(c.Spec.Environment,
		func(variable v1alpha1.EnvironmentVariable) bool { return variable.Name == c.part.Environment }) {
		c.AtField(c.at+".environment", fmt.Sprintf("is %q, which is not a variable of spec.environment", c.part.Environment),
			"use one of them; a value of the credentials Secret is a credential")
	}
}

// key checks that a key of the credentials Secret is declared, and returns it.
func (c placeCheck) key(at, name string) (v1alpha1.CredentialKey, bool) {
	if c.Spec.Credentials != nil {
		for _, key := range c.Spec.Credentials.Keys {
			if key.Key == name {
				return key, true
			}
		}
	}
	c.AtField(at, fmt.Sprintf("is %q, which is not in spec.credentials.keys", name), "use a key exactly as it is there")
	return v1alpha1.CredentialKey{}, false
}

func (c placeCheck) credential(from v1alpha1.PlaceCredential) {
	key, declared := c.key(c.at+".credential.key", from.Key)
	if declared && len(from.Path) == 0 && (!key.Public || len(key.Path) > 0) && !c.part.Secret {
		c.AtField(c.at+".credential.key", fmt.Sprintf("is %q, which is not public, but users can see a place", from.Key),
			"set public: true for the key if it is not secret, or secret: true for the part")
	}
	for i, step := range from.Path {
		at := fmt.Sprintf("%s.credential.path[%d]", c.at, i)
		if step == "" {
			c.AtField(at, "is empty", "write the names that lead to the value")
		}
		_, err := module.ExpandKey(step, func(path string) (string, error) {
			if constraint, exists := fieldType(c.providerSpec.Type, path); !exists || constraint != cty.String {
				return "", fmt.Errorf("names %q, which is not a string field of var.provider_spec", path)
			}
			return "", nil
		})
		if err != nil {
			c.AtField(at, fmt.Sprintf("is %q, which %s", step, err),
				"use names, and {field} for the value of a field of the providerSpec")
		}
	}
	if len(from.Path) > 0 {
		c.shown(fmt.Sprintf("%s.credential.path[%d]", c.at, len(from.Path)-1), from.Path[len(from.Path)-1])
	}
}

// shown checks that a value that users can see is not named like a secret.
func (c placeCheck) shown(at, name string) {
	if !c.part.Secret && module.NamesSecret(name) {
		c.AtField(at, fmt.Sprintf("leads to %q, which is named like a secret, but users can see a place", name), "use another value, or set secret: true")
	}
}
