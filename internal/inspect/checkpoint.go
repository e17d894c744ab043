package inspect

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"

	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

// encryptedKey marks an object in a checkpoint that stands for an encrypted value.
const encryptedKey = "4dabf18193072939515e22adb298388d"

// fillCheckpoint is fill for a state of Pulumi's. What is encrypted in it stays so: the key is elsewhere.
func (s *State) fillCheckpoint(raw []byte, sensitive bool) error {
	envelope, err := statefile.ParseCheckpoint(raw)
	if err != nil {
		return err
	}
	var file struct {
		Checkpoint struct {
			Latest apitype.DeploymentV3 `json:"latest"`
		} `json:"checkpoint"`
	}
	decoder := json.NewDecoder(bytes.NewReader(envelope.Raw))
	decoder.UseNumber()
	if err := decoder.Decode(&file); err != nil {
		return errors.New("it is no checkpoint that is known") // the decoder's error may quote it
	}
	latest := file.Checkpoint.Latest
	s.Engine = latest.Manifest.Version
	hidden := &mask{}
	shown := func(values map[string]any) map[string]any {
		values = concealed(values)
		if sensitive {
			return values
		}
		return hidden.attributes(values, nil)
	}
	for _, resource := range latest.Resources {
		switch {
		case resource.Type == "pulumi:pulumi:Stack":
			s.Outputs = shown(resource.Outputs)
		case resource.Custom && !strings.HasPrefix(string(resource.Type), "pulumi:providers:"):
			s.Resources = append(s.Resources, newResource(resource, "", shown))
		}
	}
	for _, pending := range latest.PendingOperations {
		s.Resources = append(s.Resources, newResource(pending.Resource, string(pending.Type), shown))
	}
	hidden.copies(s)
	return nil
}

// newResource returns a resource of a checkpoint; pending is the operation that has begun on it, if any.
func newResource(r apitype.ResourceV3, pending string, values func(map[string]any) map[string]any) Resource {
	name := string(r.URN)
	if at := strings.LastIndex(name, "::"); at >= 0 {
		name = name[at+2:]
	}
	one := Resource{Address: string(r.Type) + "." + name, Provider: r.Provider, Status: pending, Attributes: values(r.Outputs)}
	switch {
	case pending != "":
		one.Attributes = values(r.Inputs)
	case r.Delete:
		one.Status = "deposed"
	case r.Taint:
		one.Status = "tainted"
	}
	return one
}

// concealed puts a mask in place of what is encrypted.
func concealed(values map[string]any) map[string]any {
	changed := map[string]any{}
	for name, value := range values {
		changed[name] = concealedValue(value)
	}
	return changed
}

func concealedValue(value any) any {
	switch value := value.(type) {
	case map[string]any:
		if _, encrypted := value[encryptedKey]; encrypted {
			return Masked
		}
		return concealed(value)
	case []any:
		changed := make([]any, len(value))
		for i, element := range value {
			changed[i] = concealedValue(element)
		}
		return changed
	}
	return value
}
