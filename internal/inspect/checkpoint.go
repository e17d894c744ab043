package inspect

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

// encryptedKey marks an object in a checkpoint that stands for an encrypted value.
const encryptedKey = "4dabf18193072939515e22adb298388d"

// checkpointFile is a checkpoint of Pulumi's, as far as it is shown.
type checkpointFile struct {
	Checkpoint struct {
		Latest struct {
			Manifest struct {
				Version string `json:"version"`
			} `json:"manifest"`
			Resources []checkpointResource `json:"resources"`
			Pending   []struct {
				Type     string             `json:"type"`
				Resource checkpointResource `json:"resource"`
			} `json:"pending_operations"`
		} `json:"latest"`
	} `json:"checkpoint"`
}

type checkpointResource struct {
	URN      string         `json:"urn"`
	Type     string         `json:"type"`
	Custom   bool           `json:"custom"`
	Delete   bool           `json:"delete"`
	Taint    bool           `json:"taint"`
	Provider string         `json:"provider"`
	Inputs   map[string]any `json:"inputs"`
	Outputs  map[string]any `json:"outputs"`
}

// fillCheckpoint is fill for a state of Pulumi's. What is encrypted in it stays so: the key is elsewhere.
func (s *State) fillCheckpoint(raw []byte, sensitive bool) error {
	envelope, err := statefile.ParseCheckpoint(raw)
	if err != nil {
		return err
	}
	var file checkpointFile
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
		case resource.Custom && !strings.HasPrefix(resource.Type, "pulumi:providers:"):
			s.Resources = append(s.Resources, resource.shown("", shown))
		}
	}
	for _, pending := range latest.Pending {
		s.Resources = append(s.Resources, pending.Resource.shown(pending.Type, shown))
	}
	hidden.copies(s)
	return nil
}

func (r checkpointResource) shown(pending string, values func(map[string]any) map[string]any) Resource {
	name := r.URN
	if at := strings.LastIndex(name, "::"); at >= 0 {
		name = name[at+2:]
	}
	one := Resource{Address: r.Type + "." + name, Provider: r.Provider, Status: pending, Attributes: values(r.Outputs)}
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
