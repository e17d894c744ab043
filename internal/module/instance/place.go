package instance

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
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/credential"
)

// maxPlaceValue bounds how much of a value a place shows. Of a longer one it shows a hash.
const maxPlaceValue = 256

// PlacePart is one part of a place.
type PlacePart struct {
	// Name is that of module.yaml.
	Name string `json:"name"`
	// Value is the part's value, fit to be shown; empty where it is not known.
	Value string `json:"value,omitempty"`
}

// Place is where an instance is, or where a run would be: a part for each that module.yaml declares, sorted by name. It holds no secrets.
type Place []PlacePart

// PlaceError says why a place cannot be known.
type PlaceError struct {
	// Part is the name of the part of the place.
	Part string
	// Problem says what is wrong, without any value.
	Problem string
	// Fix says what to do about it.
	Fix string
}

// Error implements error.
func (e *PlaceError) Error() string {
	return fmt.Sprintf("the part %q of the instance's place: %s; %s", e.Part, e.Problem, e.Fix)
}

// PlaceOf returns the place that a run with these inputs is in; nil for a module that declares none. variables is the JSON of the module's
// variables, credentials the data of the credentials Secret, and environment what the run gets as environment variables. A part that is
// needed and has no value is a [*PlaceError].
func PlaceOf(m *module.Module, variables []byte, credentials map[string][]byte, environment map[string]string) (Place, error) {
	if len(m.Spec().Place) == 0 {
		return nil, nil
	}
	reader := placeReader{module: m, credentials: credentials, environment: environment}
	decoder := json.NewDecoder(bytes.NewReader(variables))
	decoder.UseNumber()
	if err := decoder.Decode(&reader.variables); err != nil {
		return nil, errors.New("the module's variables are not a JSON object") // the decoder's words could show a value
	}
	place := make(Place, 0, len(m.Spec().Place))
	for _, part := range m.Spec().Place {
		value, err := reader.value(part)
		if err != nil {
			return nil, &PlaceError{Part: part.Name, Problem: err.Error(), Fix: "give it a value, or correct it"}
		}
		place = append(place, PlacePart{Name: part.Name, Value: shownPlace(value, part.Secret)})
	}
	slices.SortFunc(place, func(a, b PlacePart) int { return strings.Compare(a.Name, b.Name) })
	return place, nil
}

// Value returns the value of a part, and whether the place has the part at all.
func (p Place) Value(name string) (value string, declared bool) {
	for _, part := range p {
		if part.Name == name {
			return part.Value, true
		}
	}
	return "", false
}

// Equal reports whether both places are known to be the same: both have the same parts with the same values. Parts of which neither knows the
// value do not count.
func (p Place) Equal(other Place) bool { return p.Diff(other) == "" }

// Contradicts reports whether the places cannot be the same: a part is known in both, with different values. A part that one of them does
// not know, or does not have, contradicts nothing; the places are not Equal then either.
func (p Place) Contradicts(other Place) bool {
	return slices.ContainsFunc(p, func(part PlacePart) bool {
		value, _ := other.Value(part.Name)
		return part.Value != "" && value != "" && part.Value != value
	})
}

// Diff returns in which parts the place of a run differs from p, the place that the instance was made in, as one line for people; "" where
// they are Equal.
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
		return "not known"
	}
	return value
}

// String returns what is known of the place, for people.
func (p Place) String() string {
	var known []string
	for _, part := range p {
		if part.Value != "" {
			known = append(known, part.Name+" "+part.Value)
		}
	}
	if len(known) == 0 {
		return "a place that is not known"
	}
	return strings.Join(known, ", ")
}

// shownPlace returns a value as a place has it: nothing secret, on one line, and not too long.
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

// withoutPassword returns a URL in the one form that places compare: without a password, a slash at its end, and capitals in the host's name.
// Any other text is returned as it is.
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

// secretName matches the name of what must not be shown.
var secretName = regexp.MustCompile(`(?i)(passw|passphrase|token|secret|private|credential)`)

// NamesSecret reports whether a field or a parameter of this name must not be shown.
func NamesSecret(name string) bool { return secretName.MatchString(name) }

// placeReader reads the parts of a place out of the inputs of a run.
type placeReader struct {
	module      *module.Module
	variables   map[string]any
	credentials map[string][]byte
	environment map[string]string
}

// value returns the value of a part as it is given, "" where it is optional and has none. Errors show no values.
func (r placeReader) value(part v1alpha1.PlacePart) (string, error) {
	var value, missing string
	var err error
	switch {
	case part.Field != "":
		value, missing = r.field(part.Field), "the field "+part.Field+" of the providerSpec has no value"
	case part.Machine != "":
		value, missing = credential.ScalarAt(r.variables[module.VariableMachine], part.Machine), "the Machine has no "+part.Machine
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
	return credential.ScalarAt(r.variables[module.VariableProviderSpec], strings.Split(path, ".")...)
}

// expand returns a text with the values of the fields that it names.
func (r placeReader) expand(text string) (string, error) {
	return credential.ExpandKey(text, func(path string) (string, error) {
		if value := r.field(path); value != "" {
			return value, nil
		}
		return "", fmt.Errorf("the field %s of the providerSpec has no value", path)
	})
}

// credential returns a value of the credentials Secret, and the words for that it is not there.
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
	value, err = credential.ScalarIn(raw, steps)
	var limit *credential.LimitError
	if errors.As(err, &limit) {
		return "", "", fmt.Errorf("the key %q of the credentials Secret %s", key, limit.Problem)
	}
	if err != nil {
		return "", "", fmt.Errorf("the key %q of the credentials Secret is neither YAML nor JSON", key)
	}
	return value, fmt.Sprintf("the key %q of the credentials Secret has no value at %s", key, strings.Join(steps, ".")), nil
}

// key returns the value of a key, declared as module.yaml writes it; none where the key is ignored because another exists.
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
