package state

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/machine-iac/machine-iac-operator/internal/state/layout"
)

// Labels and annotations of this project on state Secrets.
const (
	// Prefix starts every annotation that belongs to this project; what follows it is a key of Snapshot.Meta.
	Prefix = "machine-iac.io/"
	// LabelMachineUID is the label for the UID of the Machine that a Secret belongs to.
	LabelMachineUID = Prefix + "machine-uid"
	// AnnotationMachine is the annotation for the name of the Machine that a Secret belongs to.
	AnnotationMachine = Prefix + "machine"
	// LabelRole is the label that distinguishes a state's Secrets: RoleHead, RolePart, RoleVersion, RoleOrphan or RoleOrphanPart.
	LabelRole = Prefix + "state"
	// RoleHead marks the Secret that names a state: it has the lock, the record, and the state or its first part.
	RoleHead = "head"
	// RolePart marks a further part of a state that is too big for one Secret.
	RolePart = "part"
	// RoleVersion marks a copy of one version that has no room in the head.
	RoleVersion = "version"
	// RoleOrphan marks a state that could not be saved as its Machine's, or its first part.
	RoleOrphan = "orphan"
	// RoleOrphanPart marks a further part of one.
	RoleOrphanPart = "orphan-part"

	// Finalizer is on heads and on copies of versions. It keeps them, when they or their namespace are deleted, until the
	// state is done with.
	Finalizer = Prefix + "state"

	annotationLock   = Prefix + "lock"
	annotationRecord = layout.AnnotationRecord
	annotationSerial = Prefix + "serial"
	annotationEpoch  = Prefix + "epoch"
	annotationOrphan = Prefix + "orphan"
)

// What Terraform's kubernetes backend writes and selects by.
const (
	dataState          = layout.DataState
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
	secretLimit        = 1 << 20 // the API server's limit for the sum of a Secret's values
)

// Key names one state: the head Secret.
type Key struct {
	// Namespace of the Secrets.
	Namespace string
	// Name of the head Secret, "tfstate-default-<suffix>".
	Name string
}

// KeyFor returns the key of a Machine's state. The suffix is the UID without its dashes behind a letter: Terraform takes
// a number after the last dash for a part's index, and a label's value ends at 63 characters.
func KeyFor(namespace string, uid types.UID) Key {
	return Key{Namespace: namespace, Name: headPrefix + "m" + strings.ReplaceAll(string(uid), "-", "")}
}

// Suffix returns what Terraform calls secret_suffix, empty when the name is not one of Terraform's.
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
		return fmt.Errorf("checking state key %q: no namespace; set Key.Namespace", k)
	case suffix == "" || len(suffix) > maxSuffix:
		return fmt.Errorf("checking state key %q: the name must be %q and 1 to %d characters; make it with KeyFor", k, headPrefix, maxSuffix)
	}
	if _, err := strconv.Atoi(suffix[strings.LastIndex(suffix, "-")+1:]); err == nil && strings.Contains(suffix, "-") {
		return fmt.Errorf("checking state key %q: the name ends in a dash and a number, which Terraform takes for a part; make it with KeyFor", k)
	}
	if errs := validation.IsDNS1123Subdomain(k.Name); len(errs) > 0 {
		return fmt.Errorf("checking state key %q: %w", k, errors.New(strings.Join(errs, ", ")))
	}
	return nil
}

func (k Key) object() types.NamespacedName {
	return types.NamespacedName{Namespace: k.Namespace, Name: k.Name}
}

// part names the Secret of a state's part; part 0 is the head.
func (k Key) part(index int) string {
	return k.Name + partInfix + strconv.Itoa(index)
}

// stockLabels are the labels that Terraform selects a state's Secrets by. Nothing else may carry all four.
func (k Key) stockLabels() map[string]string {
	return map[string]string{
		labelState:     "true",
		labelSuffix:    k.Suffix(),
		labelWorkspace: workspace,
		labelManagedBy: managedBy,
	}
}
