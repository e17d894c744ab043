package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

// version is the format that is written, and the newest that is read.
const version = 1

const (
	indexFormat = "machine-iac-backup"
	stateFormat = "machine-iac-state"
	keysFormat  = "machine-iac-pulumi-keys"

	indexName = "index.json"
	keysName  = "pulumi-keys.json"
	encrypted = ".age"
)

// Kind says what a file of a backup is.
type Kind string

// Kinds of files.
const (
	KindState  Kind = "State"
	KindModule Kind = "Module"
	KindKeys   Kind = "PulumiKeys"
)

// Index lists the files of a backup. It contains no secrets.
type Index struct {
	Format  string    `json:"format"`
	Version int       `json:"version"`
	Made    time.Time `json:"made"`
	Files   []File    `json:"files"`
}

// File is one file of a backup.
type File struct {
	// Path in the folder, with slashes; one that ends in .age is encrypted.
	Path string `json:"path"`
	Kind Kind   `json:"kind"`
	// SHA256 is that of the file as it is.
	SHA256 string `json:"sha256"`
	// Namespace, Machine, UID and Serial are those of a state.
	Namespace string    `json:"namespace,omitempty"`
	Machine   string    `json:"machine,omitempty"`
	UID       types.UID `json:"uid,omitempty"`
	Serial    uint64    `json:"serial,omitempty"`
	// Module is the reference of a module, or of the one that a state needs.
	Module string `json:"module,omitempty"`
}

// State is the state of a Machine with everything that is stored with it.
type State struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	// Namespace, Machine and UID are those of the Machine.
	Namespace string    `json:"namespace"`
	Machine   string    `json:"machine"`
	UID       types.UID `json:"uid"`
	// Serial, Lineage and SHA256 are those of State.
	Serial  uint64 `json:"serial"`
	Lineage string `json:"lineage"`
	SHA256  string `json:"sha256"`
	// Module is the reference of the module that the instance was made with; empty for none.
	Module string `json:"module,omitempty"`
	// Record is the operator's metadata of the state, and Attachments are as secret as the state.
	Record      map[string]string `json:"record,omitempty"`
	Attachments map[string][]byte `json:"attachments,omitempty"`
	// State is as the engine wrote it.
	State []byte `json:"state"`
}

// keysFile is the file with the keys of checkpoints.
type keysFile struct {
	Format  string            `json:"format"`
	Version int               `json:"version"`
	Data    map[string][]byte `json:"data"`
}

// plain is a name that can be part of a path.
var plain = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)

// path returns where a state is in the folder.
func (s *State) path() (string, error) {
	name := string(s.UID) + ".json"
	if s.Machine != "" {
		name = s.Machine + "." + name
	}
	for _, part := range []string{s.Namespace, string(s.UID), name} {
		if !plain.MatchString(part) {
			return "", fmt.Errorf("the state of Machine %q with UID %q in namespace %q: %q is no name of a file", s.Machine,
				s.UID, s.Namespace, part)
		}
	}
	return path.Join("states", s.Namespace, name), nil
}

func modulePath(digest string) string { return path.Join("modules", digest+".tar.gz") }

// check reports what is wrong with a state that was read from a file.
func (s *State) check() error {
	if err := checkFormat(s.Format, stateFormat, s.Version); err != nil {
		return err
	}
	if s.Namespace == "" || s.UID == "" {
		return fmt.Errorf("it names no Machine: namespace %q, UID %q", s.Namespace, s.UID)
	}
	if sum := Checksum(s.State); sum != s.SHA256 {
		return fmt.Errorf("the checksum of its state is %s and should be %s: the file is damaged", sum, s.SHA256)
	}
	parsed, err := statefile.Parse(s.State)
	if err != nil {
		return err
	}
	if parsed.Serial != s.Serial || parsed.Lineage != s.Lineage {
		return fmt.Errorf("its state has serial %d and lineage %q, and the file says %d and %q: the file is damaged",
			parsed.Serial, parsed.Lineage, s.Serial, s.Lineage)
	}
	return nil
}

func checkFormat(got, want string, written int) error {
	switch {
	case got != want:
		return fmt.Errorf("its format is %q and should be %q: it is no such file of a backup", got, want)
	case written > version:
		return fmt.Errorf("it has version %d, and this program reads up to %d: use the kubectl-machine that wrote it, or a newer one", written, version)
	case written < 1:
		return fmt.Errorf("its version %d is unknown", written)
	}
	return nil
}

// encode writes JSON for files.
func encode(value any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return nil, fmt.Errorf("encoding a file of the backup: %w", err)
	}
	return text.Bytes(), nil
}

// decode decodes JSON that may be secret: the decoder's own errors could quote it.
func decode(raw []byte, into any) error {
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("it is no JSON of a backup: %T", err)
	}
	return nil
}

// Checksum returns the checksum of a state, as files have it.
func Checksum(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}
