package statefile

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// FormatPulumi is the format of a state that [Checkpoint] makes. A state without a format is one of Terraform's.
const FormatPulumi = "pulumi"

// checkpointVersion is the version of Pulumi's checkpoints that is read here.
const checkpointVersion = 3

// Checkpoint is a state of Pulumi's: a checkpoint, which has neither serial nor lineage, with both.
type Checkpoint struct {
	// Serial grows by one with each change.
	Serial uint64
	// Lineage is the same for all states of one Machine.
	Lineage string
	// Raw is the checkpoint as Pulumi wrote it.
	Raw json.RawMessage
}

type checkpointFile struct {
	Format     string          `json:"format"`
	Serial     *uint64         `json:"serial"`
	Lineage    string          `json:"lineage"`
	Checkpoint json.RawMessage `json:"checkpoint"`
}

// Encode returns the state. It is a *RefusedError with ReasonCorrupt when Raw is no checkpoint.
func (c Checkpoint) Encode() ([]byte, error) {
	raw, err := json.Marshal(checkpointFile{Format: FormatPulumi, Serial: &c.Serial, Lineage: c.Lineage, Checkpoint: c.Raw})
	if err != nil {
		return nil, Malformed("its checkpoint is " + describeJSON(err))
	}
	if _, err := Parse(raw); err != nil {
		return nil, err
	}
	return raw, nil
}

// ParseCheckpoint reads what Encode has made. What is not that gives a *RefusedError with ReasonCorrupt.
func ParseCheckpoint(raw []byte) (*Checkpoint, error) {
	var file checkpointFile
	if err := json.Unmarshal(raw, &file); err != nil {
		return nil, Malformed(describeJSON(err))
	}
	switch {
	case file.Format != FormatPulumi:
		return nil, Malformed(fmt.Sprintf("its format is %q, not %q", file.Format, FormatPulumi))
	case file.Serial == nil:
		return nil, Malformed("it has no serial")
	case file.Lineage == "":
		return nil, Malformed("it has no lineage")
	}
	return &Checkpoint{Serial: *file.Serial, Lineage: file.Lineage, Raw: file.Checkpoint}, nil
}

// checkpoint is what is read of Pulumi's own file.
type checkpoint struct {
	Version    int `json:"version"`
	Checkpoint *struct {
		Latest *struct {
			Manifest struct {
				Version string `json:"version"`
			} `json:"manifest"`
			Resources         []checkpointResource `json:"resources"`
			PendingOperations []struct {
				Resource checkpointResource `json:"resource"`
				Type     string             `json:"type"`
			} `json:"pending_operations"`
		} `json:"latest"`
	} `json:"checkpoint"`
}

type checkpointResource struct {
	URN      string                     `json:"urn"`
	ID       string                     `json:"id"`
	Type     string                     `json:"type"`
	Custom   bool                       `json:"custom"`
	External bool                       `json:"external"`
	Delete   bool                       `json:"delete"`
	Taint    bool                       `json:"taint"`
	Outputs  map[string]json.RawMessage `json:"outputs"`
	Provider string                     `json:"provider"`
}

const (
	stackType      = "pulumi:pulumi:Stack"
	providerPrefix = "pulumi:providers:"
	// secretSignature marks a JSON object that stands for an encrypted value.
	secretSignature = "4dabf18193072939515e22adb298388d"
)

func parsePulumi(raw []byte) (*State, error) {
	envelope, err := ParseCheckpoint(raw)
	if err != nil {
		return nil, err
	}
	var file checkpoint
	if err := json.Unmarshal(envelope.Raw, &file); err != nil {
		return nil, Malformed("its checkpoint is " + describeJSON(err))
	}
	switch {
	case file.Version != checkpointVersion:
		return nil, Malformed(fmt.Sprintf("its checkpoint has version %d, not %d", file.Version, checkpointVersion))
	case file.Checkpoint == nil:
		return nil, Malformed("its checkpoint is empty")
	}
	parsed := &State{Format: FormatPulumi, Serial: envelope.Serial, Lineage: envelope.Lineage, Outputs: map[string]Output{}}
	latest := file.Checkpoint.Latest
	if latest == nil {
		return parsed, nil
	}
	parsed.EngineVersion = latest.Manifest.Version
	for i, element := range latest.Resources {
		if element.Type == stackType {
			parsed.Outputs = element.outputs()
		}
		if !element.made() {
			continue
		}
		resource, err := element.resource()
		if err != nil {
			return nil, Malformed(fmt.Sprintf("resource %d %s", i, err))
		}
		parsed.Resources = join(parsed.Resources, resource)
	}
	for _, pending := range latest.PendingOperations {
		if pending.Type == "creating" && pending.Resource.made() {
			parsed.Unfinished = append(parsed.Unfinished, pending.Resource.URN)
		}
	}
	return parsed, nil
}

// made reports whether there is something behind it: components and providers are Pulumi's alone.
func (r checkpointResource) made() bool {
	return r.Custom && !strings.HasPrefix(r.Type, providerPrefix)
}

// join adds a resource. One that was replaced stands in a checkpoint twice until the old one is destroyed.
func join(resources []Resource, next Resource) []Resource {
	at := slices.IndexFunc(resources, func(r Resource) bool { return r.Address() == next.Address() })
	if at < 0 {
		return append(resources, next)
	}
	resources[at].Instances += next.Instances
	resources[at].Tainted += next.Tainted
	resources[at].Deposed += next.Deposed
	return resources
}

// resource reads urn:pulumi:stack::project::parent$type::name.
func (r checkpointResource) resource() (Resource, error) {
	parts := strings.SplitN(r.URN, "::", 4)
	if len(parts) != 4 || parts[3] == "" || r.Type == "" {
		return Resource{}, fmt.Errorf("has no type or no name in its URN")
	}
	parents, _, nested := strings.Cut(parts[2], "$"+r.Type)
	if !nested {
		parents = ""
	}
	read := Resource{Module: parents, Mode: ModeManaged, Type: r.Type, Name: parts[3], Provider: providerOf(r.Provider), Instances: 1}
	if r.External {
		read.Mode = ModeData
	}
	if r.Taint {
		read.Tainted = 1
	}
	if r.Delete {
		read.Deposed = 1
	}
	return read, nil
}

// providerOf leaves out the id, which is another for each state.
func providerOf(reference string) string {
	if at := strings.LastIndex(reference, "::"); at > 0 {
		return reference[:at]
	}
	return reference
}

func (r checkpointResource) outputs() map[string]Output {
	read := map[string]Output{}
	for name, value := range r.Outputs {
		var object map[string]json.RawMessage
		_ = json.Unmarshal(value, &object) // no object, no secret
		_, secret := object[secretSignature]
		read[name] = Output{Value: value, Sensitive: secret}
	}
	return read
}
