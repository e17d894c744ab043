package pulumi

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	yamlnode "go.yaml.in/yaml/v3"
)

// runtimeYAML runs programs in Pulumi's YAML.
const runtimeYAML = "yaml"

// guessesTypes reports whether the program's runtime derives the type of configuration values from
// their text: JSON for an object, digits for a number. A missing program is left to Pulumi to
// report.
func guessesTypes(program string) (bool, error) {
	content, err := os.ReadFile(filepath.Join(program, projectFile))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var project struct {
		Runtime yamlnode.Node `yaml:"runtime"`
	}
	if yamlnode.Unmarshal(content, &project) != nil {
		return false, nil // Pulumi reports what is wrong with it
	}
	name := struct {
		Name string `yaml:"name"`
	}{Name: project.Runtime.Value}
	if project.Runtime.Kind == yamlnode.MappingNode && project.Runtime.Decode(&name) != nil {
		return false, nil
	}
	return name.Name == runtimeYAML, nil
}

// variables returns the program's configuration by name.
func (r RunSpec) variables() (map[string]json.RawMessage, error) {
	var variables map[string]json.RawMessage
	if err := json.Unmarshal(r.Variables, &variables); err != nil {
		return nil, errors.New("the run's variables are not a JSON object")
	}
	return variables, nil
}

// settings returns the stack's settings for the program in a folder, with its key served or
// derived. It writes JSON, which is YAML.
func (r RunSpec) settings(program string, serves bool) ([]byte, error) {
	variables, err := r.variables()
	if err != nil {
		return nil, err
	}
	guesses, err := guessesTypes(program)
	if err != nil {
		return nil, err
	}
	for _, name := range r.Secret {
		if r.Destroys {
			break // there is no configuration
		}
		var plain string
		if err := json.Unmarshal(variables[name], &plain); err != nil {
			return nil, fmt.Errorf("the variable %s is secret but not a string", name)
		}
		if guesses {
			plain = string(variables[name]) // in quotes it is a string, whatever its content
		}
		sealed, err := r.Key.seal(plain)
		if err != nil {
			return nil, fmt.Errorf("encrypting the variable %s: %w", name, err)
		}
		raw, err := json.Marshal(map[string]string{"secure": sealed})
		if err != nil {
			return nil, fmt.Errorf("encrypting the variable %s: %w", name, err)
		}
		variables[name] = raw
	}
	configuration := map[string]json.RawMessage{}
	for name, value := range variables {
		configuration[r.Project+":"+name] = value
	}
	described := map[string]any{"config": configuration, "encryptionsalt": r.Key.salt}
	if serves {
		described = map[string]any{"config": configuration, "secretsprovider": serviceKey, "encryptedkey": []byte(r.Key.salt)}
	}
	settings, err := json.Marshal(described)
	if err != nil {
		return nil, fmt.Errorf("writing the configuration: %w", err)
	}
	return settings, nil
}
