package statefile

import (
	"encoding/json"
	"fmt"
	"strings"
)

// checkpointVersion is the supported version of Pulumi's checkpoints.
const checkpointVersion = 3

// Checkpoint is a state of Pulumi: a checkpoint with the serial and lineage that it lacks.
type Checkpoint struct {
	// Serial grows by one with each change.
	Serial uint64
	// Lineage is the same for all states of one Machine.
	Lineage string
	// Raw is Pulumi's checkpoint.
	Raw json.RawMessage
}

type checkpointFile struct {
	Format     string          `json:"format"`
	Serial     *uint64         `json:"serial"`
	Lineage    string          `json:"lineage"`
	Checkpoint json.RawMessage `json:"checkpoint"`
}

// Encode returns the state, or a *RefusedError with ReasonCorrupt if Raw is not a checkpoint.
func (c Checkpoint) Encode() ([]byte, error) {
	raw, err := json.Marshal(checkpointFile{Format: FormatPulumi, Serial: &c.Serial, Lineage: c.Lineage,
		Checkpoint: c.Raw})
	if err != nil {
		return nil, Malformed("its checkpoint is " + describeJSON(err))
	}
	if _, err := Parse(raw); err != nil {
		return nil, err
	}
	return raw, nil
}

// ParseCheckpoint is the inverse of Encode. It returns a *RefusedError with ReasonCorrupt for anything else.
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
	if err := checkSerial(*file.Serial); err != nil {
		return nil, Malformed(err.Error())
	}
	return &Checkpoint{Serial: *file.Serial, Lineage: file.Lineage, Raw: file.Checkpoint}, nil
}

// checkpoint has the needed fields of Pulumi's file.
type checkpoint struct {
	Version    int `json:"version"`
	Checkpoint *struct {
		Latest deployment `json:"latest"`
	} `json:"checkpoint"`
}

// deployment is what a stack consists of.
type deployment struct {
	Manifest struct {
		Version string `json:"version"`
	} `json:"manifest"`
	Resources         []checkpointResource `json:"resources"`
	PendingOperations []struct {
		Resource checkpointResource `json:"resource"`
		Type     string             `json:"type"`
	} `json:"pending_operations"`
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
	// secretSignature marks a JSON object that represents an encrypted value.
	secretSignature = "4dabf18193072939515e22adb298388d"
)

// parseDeployment decodes the checkpoint in a state.
func parseDeployment(raw []byte) (*Checkpoint, deployment, error) {
	envelope, err := ParseCheckpoint(raw)
	if err != nil {
		return nil, deployment{}, err
	}
	var file checkpoint
	if err := json.Unmarshal(envelope.Raw, &file); err != nil {
		return nil, deployment{}, Malformed("its checkpoint is " + describeJSON(err))
	}
	switch {
	case file.Version != checkpointVersion:
		return nil, deployment{},
			Malformed(fmt.Sprintf("its checkpoint has version %d, not %d", file.Version, checkpointVersion))
	case file.Checkpoint == nil:
		return nil, deployment{}, Malformed("its checkpoint is empty")
	}
	return envelope, file.Checkpoint.Latest, nil
}

func parsePulumi(raw []byte, _ *stateFile) (*State, error) {
	envelope, latest, err := parseDeployment(raw)
	if err != nil {
		return nil, err
	}
	parsed := &State{Format: FormatPulumi, Serial: envelope.Serial, Lineage: envelope.Lineage,
		EngineVersion: latest.Manifest.Version, Outputs: map[string]Output{}}
	at := map[string]int{}
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
		parsed.Resources = join(parsed.Resources, at, resource)
	}
	for _, pending := range latest.PendingOperations {
		if pending.Type == "creating" && pending.Resource.made() {
			parsed.Unfinished = append(parsed.Unfinished, pending.Resource.URN)
		}
	}
	return parsed, nil
}

// made reports whether the resource has infrastructure: components and providers exist only in Pulumi.
func (r checkpointResource) made() bool {
	return r.Custom && !strings.HasPrefix(r.Type, providerPrefix)
}

// join adds a resource; indices maps addresses to positions. A replaced resource is in a checkpoint twice until the old
// one is destroyed.
func join(resources []Resource, indices map[string]int, next Resource) []Resource {
	at, known := indices[next.Address()]
	if !known {
		indices[next.Address()] = len(resources)
		return append(resources, next)
	}
	resources[at].Instances += next.Instances
	resources[at].Tainted += next.Tainted
	resources[at].Deposed += next.Deposed
	return resources
}

// resource parses urn:pulumi:stack::project::parent$type::name.
func (r checkpointResource) resource() (Resource, error) {
	parts := strings.SplitN(r.URN, "::", 4)
	if len(parts) != 4 || parts[3] == "" || r.Type == "" {
		return Resource{}, fmt.Errorf("has no type or no name in its URN")
	}
	parents, _, nested := strings.Cut(parts[2], "$"+r.Type)
	if !nested {
		parents = ""
	}
	read := Resource{Module: parents, Mode: ModeManaged, Type: r.Type, Name: parts[3], Provider: providerOf(r.Provider),
		Instances: 1}
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

// providerOf strips the id, which differs between states.
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
		_ = json.Unmarshal(value, &object) // not an object, so not a secret
		_, secret := object[secretSignature]
		read[name] = Output{Value: value, Sensitive: secret}
	}
	return read
}
