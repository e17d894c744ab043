package state

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Labels and annotations of this project on state Secrets.
const (
	// Prefix starts every annotation of this project; the rest is a key of Snapshot.Meta.
	Prefix = "machine-iac.io/"
	// LabelMachineUID is the label for the UID of the Machine that a Secret belongs to.
	LabelMachineUID = Prefix + "machine-uid"
	// AnnotationMachine is the annotation for the name of the Machine that a Secret belongs to.
	AnnotationMachine = Prefix + "machine"
	// LabelRole is the label for a Secret's role: RoleHead, RolePart, RoleVersion, RoleOrphan or
	// RoleOrphanPart.
	LabelRole = Prefix + "state"
	// RoleHead marks the Secret that names a state. It holds the lock, the record, and the state or
	// its first part.
	RoleHead = "head"
	// RolePart marks a further part of a state that exceeds one Secret.
	RolePart = "part"
	// RoleVersion marks a copy of a version that does not fit in the head.
	RoleVersion = "version"
	// RoleOrphan marks a state that could not be saved as its Machine's, or the first part of one.
	RoleOrphan = "orphan"
	// RoleOrphanPart marks a further part of an orphan.
	RoleOrphanPart = "orphan-part"

	// Finalizer is on heads and on copies of versions. It keeps them until the state is no longer
	// needed, even if they or their namespace are deleted.
	Finalizer = Prefix + "state"

	annotationLock   = Prefix + "lock"
	annotationRecord = Prefix + "record"
	annotationSerial = Prefix + "serial"
	annotationEpoch  = Prefix + "epoch"
	annotationOrphan = Prefix + "orphan"
)

// Labels, annotations and data keys that Terraform's kubernetes backend writes and selects by.
const (
	dataState          = "tfstate"
	labelState         = "tfstate"
	labelSuffix        = "tfstateSecretSuffix"
	labelWorkspace     = "tfstateWorkspace"
	labelManagedBy     = "app.kubernetes.io/managed-by"
	annotationEncoding = "encoding"
	workspace          = "default"
	headPrefix         = "tfstate-" + workspace + "-"
	managedBy          = "terraform"
	encodingGzip       = "gzip"
	maxSuffix          = validation.LabelValueMaxLength
	partInfix          = "-part-"
	blobInfix          = "-v"
	secretLimit        = 1 << 20 // the API server's limit for the total of a Secret's values
)

// Key identifies one state by its head Secret.
type Key struct {
	// Namespace of the Secrets.
	Namespace string
	// Name of the head Secret, "tfstate-default-<suffix>".
	Name string
}

// KeyFor returns the key of a Machine's state. The suffix is a letter and the UID without dashes:
// Terraform takes a number after the last dash for the index of a part, and label values are
// limited to 63 characters.
func KeyFor(namespace string, uid types.UID) Key {
	return Key{Namespace: namespace, Name: headPrefix + "m" + strings.ReplaceAll(string(uid), "-", "")}
}

// Suffix returns Terraform's secret_suffix, or "" if the name is not one of Terraform's.
func (k Key) Suffix() string {
	suffix, ok := strings.CutPrefix(k.Name, headPrefix)
	if !ok {
		return ""
	}
	return suffix
}

// String returns "namespace/name".
func (k Key) String() string { return k.Namespace + "/" + k.Name }

func (k Key) validate() error {
	suffix := k.Suffix()
	switch {
	case k.Namespace == "":
		return fmt.Errorf("invalid state key %q: no namespace; set Key.Namespace", k)
	case suffix == "" || len(suffix) > maxSuffix:
		return fmt.Errorf("invalid state key %q: the name must be %q and 1 to %d characters; create keys with KeyFor",
			k, headPrefix, maxSuffix)
	}
	if _, err := strconv.Atoi(suffix[strings.LastIndex(suffix, "-")+1:]); err == nil && strings.Contains(suffix, "-") {
		return fmt.Errorf("invalid state key %q: Terraform takes a dash and a number at the end of a name for a "+
			"part; create keys with KeyFor", k)
	}
	if errs := validation.IsDNS1123Subdomain(k.Name); len(errs) > 0 {
		return fmt.Errorf("invalid state key %q: %w", k, errors.New(strings.Join(errs, ", ")))
	}
	return nil
}

func (k Key) object() types.NamespacedName {
	return types.NamespacedName{Namespace: k.Namespace, Name: k.Name}
}

// part returns the name of the Secret of a part; part 0 is the head.
func (k Key) part(index int) string {
	return k.Name + partInfix + strconv.Itoa(index)
}

// stockLabels returns the labels that Terraform selects a state's Secrets by. No other Secret may
// carry all four.
func (k Key) stockLabels() map[string]string {
	return map[string]string{
		labelState:     "true",
		labelSuffix:    k.Suffix(),
		labelWorkspace: workspace,
		labelManagedBy: managedBy,
	}
}
