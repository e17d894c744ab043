package module

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
)

// maxPlaceValue is the length up to which a place shows a value. Longer ones are hashed.
const maxPlaceValue = 256

// PlacePart is one part of a place.
type PlacePart struct {
	// Name from module.yaml.
	Name string `json:"name"`
	// Value for display, or empty if unknown.
	Value string `json:"value,omitempty"`
}

// Place is where an instance is, or where a run would be: the parts that module.yaml declares,
// sorted by name. It contains no secrets.
type Place []PlacePart

// PlaceError is why a place cannot be determined.
type PlaceError struct {
	// Part is the name of the part.
	Part string
	// Problem is what is wrong, without any value.
	Problem string
	// Fix is how to fix it.
	Fix string
}

// Error implements error.
func (e *PlaceError) Error() string {
	return fmt.Sprintf("the part %q of the instance's place: %s; %s", e.Part, e.Problem, e.Fix)
}

// PlaceOf returns the place of a run with these inputs, or nil if the module declares none.
// variables is the JSON of the module's variables, credentials the data of the credentials Secret,
// and environment the run's environment variables. If a required part has no value, the error is a
// [*PlaceError].
func PlaceOf(m *Module, variables []byte, credentials map[string][]byte, environment map[string]string) (Place, error) {
	if len(m.Spec().Place) == 0 {
		return nil, nil
	}
	reader := placeReader{module: m, credentials: credentials, environment: environment}
	decoder := json.NewDecoder(bytes.NewReader(variables))
	decoder.UseNumber()
	if err := decoder.Decode(&reader.variables); err != nil {
		return nil, errors.New("the module's variables are not a JSON object") // the decoder's error may contain a value
	}
	place := make(Place, 0, len(m.Spec().Place))
	for _, part := range m.Spec().Place {
		value, err := reader.value(part)
		if err != nil {
			return nil, &PlaceError{Part: part.Name, Problem: err.Error(), Fix: "set or correct its value"}
		}
		place = append(place, PlacePart{Name: part.Name, Value: shownPlace(value, part.Secret)})
	}
	slices.SortFunc(place, func(a, b PlacePart) int { return strings.Compare(a.Name, b.Name) })
	return place, nil
}

// Value returns the value of a part, and whether the place declares the part.
func (p Place) Value(name string) (value string, declared bool) {
	for _, part := range p {
		if part.Name == name {
			return part.Value, true
		}
	}
	return "", false
}

// Equal reports whether both places are known to be the same: they have the same parts with the
// same values, ignoring parts that are unknown in both.
func (p Place) Equal(other Place) bool { return p.Diff(other) == "" }

// Contradicts reports whether the places cannot be the same: both know a part, with different
// values. A part that is unknown or missing in one of them does not contradict, but the places are
// not Equal either.
func (p Place) Contradicts(other Place) bool {
	return slices.ContainsFunc(p, func(part PlacePart) bool {
		value, _ := other.Value(part.Name)
		return part.Value != "" && value != "" && part.Value != value
	})
}

// Diff returns how the place of a run differs from p, the place in which the instance was created,
// in one line, or "" if they are Equal.
func (p Place) Diff(now Place) string {
	var differences []string
	for _, part := range p {
		if value, _ := now.Value(part.Name); value != part.Value {
			differences = append(differences, placeDifference(part.Name, part.Value, value))
		}
	}
	for _, part := range now {
		if _, declared := p.Value(part.Name); !declared && part.Value != "" {
			differences = append(differences, placeDifference(part.Name, "", part.Value))
		}
	}
	return strings.Join(differences, ", ")
}

func placeDifference(name, made, now string) string {
	return fmt.Sprintf("%s was %s and is now %s", name, orUnknown(made), orUnknown(now))
}

func orUnknown(value string) string {
	if value == "" {
		return "unknown"
	}
	return value
}

// String returns the known parts of the place, for people.
func (p Place) String() string {
	var known []string
	for _, part := range p {
		if part.Value != "" {
			known = append(known, part.Name+" "+part.Value)
		}
	}
	if len(known) == 0 {
		return "an unknown place"
	}
	return strings.Join(known, ", ")
}

// shownPlace returns a value for display: without secrets, on one line, and not too long.
func shownPlace(value string, secret bool) string {
	value = withoutPassword(strings.TrimSpace(value))
	switch {
	case value == "":
		return ""
	case secret, len(value) > maxPlaceValue, strings.ContainsFunc(value, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(value)))[:len("sha256:")+16]
	}
	return value
}

// withoutPassword normalizes a URL for comparison: without a password, a trailing slash, and
// upper-case letters in the host. It returns any other text unchanged.
func withoutPassword(value string) string {
	parsed, err := url.Parse(value)
	if err != nil || parsed.Scheme == "" || parsed.Opaque != "" || !strings.Contains(value, "://") {
		return value
	}
	if parsed.User != nil {
		parsed.User = url.User(parsed.User.Username())
	}
	parsed.Host = strings.ToLower(parsed.Host)
	parsed.Path = strings.TrimRight(parsed.Path, "/")
	query := parsed.Query()
	for name := range query {
		if NamesSecret(name) {
			query.Del(name)
		}
	}
	parsed.RawQuery = query.Encode()
	return parsed.String()
}

// secretName matches names of fields and parameters whose values must not be shown.
var secretName = regexp.MustCompile(`(?i)(passw|passphrase|token|secret|private|credential)`)

// NamesSecret reports whether a field or parameter of this name must not be shown.
func NamesSecret(name string) bool { return secretName.MatchString(name) }

// placeReader reads the parts of a place from the inputs of a run.
type placeReader struct {
	module      *Module
	variables   map[string]any
	credentials map[string][]byte
	environment map[string]string
}

// value returns the raw value of a part, or "" if it is optional and unset. Errors contain no
// values.
func (r placeReader) value(part v1alpha1.PlacePart) (string, error) {
	var value, missing string
	var err error
	switch {
	case part.Field != "":
		value, missing = r.field(part.Field), "the field "+part.Field+" of the providerSpec has no value"
	case part.Machine != "":
		value, missing = scalarAt(r.variables[VariableMachine], part.Machine), "the Machine has no "+part.Machine
	case part.Environment != "":
		value, missing = r.environment[part.Environment], "the variable "+part.Environment+" is not set"
	case len(part.AWSAccountOf) > 0:
		return r.awsAccount(part.AWSAccountOf), nil
	case part.Credential != nil:
		value, missing, err = r.credential(*part.Credential)
	}
	if err == nil && value == "" && !part.Optional {
		err = errors.New(missing)
	}
	return value, err
}

func (r placeReader) field(path string) string {
	return scalarAt(r.variables[VariableProviderSpec], strings.Split(path, ".")...)
}

// expand replaces the fields in a text by their values.
func (r placeReader) expand(text string) (string, error) {
	return ExpandKey(text, func(path string) (string, error) {
		if value := r.field(path); value != "" {
			return value, nil
		}
		return "", fmt.Errorf("the field %s of the providerSpec has no value", path)
	})
}

// credential returns a value of the credentials Secret, and the message for when it is missing.
func (r placeReader) credential(from v1alpha1.PlaceCredential) (value, missing string, err error) {
	key, err := r.expand(from.Key)
	if err != nil {
		return "", "", err
	}
	raw := r.key(from.Key, key)
	if len(from.Path) == 0 || len(raw) == 0 {
		return string(raw), fmt.Sprintf("the credentials Secret has no value for the key %q", key), nil
	}
	steps := make([]string, 0, len(from.Path))
	for _, step := range from.Path {
		expanded, err := r.expand(step)
		if err != nil {
			return "", "", err
		}
		steps = append(steps, expanded)
	}
	value, err = scalarIn(raw, steps)
	if err != nil {
		return "", "", fmt.Errorf("the key %q of the credentials Secret %w", key, err)
	}
	return value, fmt.Sprintf("the key %q of the credentials Secret has no value at %s",
		key, strings.Join(steps, ".")), nil
}

// key returns the value of a key as declared in module.yaml, or nil if the key is ignored because
// another one exists.
func (r placeReader) key(declared, name string) []byte {
	if r.module.Spec().Credentials != nil {
		for _, key := range r.module.Spec().Credentials.Keys {
			if key.Key == declared && key.Unless != "" && len(r.credentials[key.Unless]) > 0 {
				return nil
			}
		}
	}
	return r.credentials[name]
}
