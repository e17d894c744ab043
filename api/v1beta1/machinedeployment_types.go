package v1beta1

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// GroupVersion is the group and version of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: machinev1beta1.GroupName, Version: "v1beta1"}

// MachineDeploymentKind is the kind of a MachineDeployment.
const MachineDeploymentKind = "MachineDeployment"

// AddToScheme adds the kinds of this package to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &MachineDeployment{}, &MachineDeploymentList{})
	return nil
}

// Labels and annotations of a MachineDeployment's MachineSets and Machines.
const (
	// TemplateHashLabel tells the Machines of one revision from those of others. Its value is the
	// hash of what a rollout is about: the template's providerSpec and spec.restartedAt.
	TemplateHashLabel = "machine-template-hash"
	// RevisionAnnotation has the number of the revision: on a MachineSet its own, on a
	// MachineDeployment the current one.
	RevisionAnnotation = "machine.openshift.io/revision"
	// ChangeCauseAnnotation is copied to the MachineSet of the revision, and shown in the history.
	ChangeCauseAnnotation = "kubernetes.io/change-cause"
	// RestartedAtAnnotation on a MachineSet is spec.restartedAt of its revision.
	RestartedAtAnnotation = "machine-iac.io/restarted-at"
	// HoldAnnotation on a MachineSet that a MachineDeployment controls names that MachineDeployment.
	// Meanwhile the MachineSet creates and deletes no Machine, because Machines move from one set to
	// another.
	HoldAnnotation = "machine-iac.io/held-by"
	// MovedFromAnnotation on a Machine names the MachineSet that it was in before it began to change in
	// place. It is removed when the change is made, or when the Machine is back.
	MovedFromAnnotation = "machine-iac.io/moved-from"
	// CheckedGenerationAnnotation on a Machine that changes in place is the generation that its
	// condition InstanceUpToDate is about.
	CheckedGenerationAnnotation = "machine-iac.io/checked-generation"
	// RefusalAnnotation on a Machine, or on a MachineSet for all of its Machines, has the name of the
	// MachineSet that it cannot change to in place, a space, and why.
	RefusalAnnotation = "machine-iac.io/not-in-place-to"
	// DesiredReplicasAnnotation on the current MachineSet has the replicas that it was last scaled for.
	DesiredReplicasAnnotation = "machine.openshift.io/desired-replicas"
)

// Annotations of a rollout of a MachineSet without a MachineDeployment.
const (
	// RolloutAnnotation on a MachineSet asks to bring its Machines to the template, by InPlaceOrReplace,
	// InPlace or RollingUpdate. It is removed at the end. Without it, no further Machine is touched.
	RolloutAnnotation = "machine-iac.io/rollout"
	// ReplaceUntilAnnotation beside it has a time. Machines that were created up to then are replaced, even if
	// they are as the template.
	ReplaceUntilAnnotation = "machine-iac.io/replace-created-until"
	// SurgeAnnotation on a MachineSet is how many Machines it has beyond its replicas.
	SurgeAnnotation = "machine-iac.io/surge"
	// FormerSpecAnnotation on a Machine that changes in place has the providerSpec that it had before.
	FormerSpecAnnotation = "machine-iac.io/former-provider-spec"
)

// SurgeOf returns how many Machines a MachineSet without a controller has beyond its replicas: at most one.
func SurgeOf(set *machinev1beta1.MachineSet) int {
	if metav1.GetControllerOfNoCopy(set) != nil {
		return 0
	}
	surge, err := strconv.Atoi(set.Annotations[SurgeAnnotation])
	if err != nil {
		return 0
	}
	return min(max(0, surge), 1)
}

// Types of a MachineSet's conditions.
const (
	// ConditionTemplateInSync is True while the providerSpec of each Machine is that of the template. A
	// MachineSet does not change Machines, so the message names the fields that differ. Whether an instance
	// can stay is known to the engine only.
	ConditionTemplateInSync machinev1beta1.ConditionType = "TemplateInSync"
	// ConditionFrozen is True while the MachineSet creates no Machines because there are too many.
	ConditionFrozen machinev1beta1.ConditionType = "Frozen"
	// ConditionRolledOut is False during a rollout of the MachineSet, and then has the result.
	ConditionRolledOut machinev1beta1.ConditionType = "RolledOut"
)

// Reasons of the condition RolledOut.
const (
	ReasonRolledOut         = "UpToDate"
	ReasonRolloutInProgress = "InProgress"
	ReasonStopped           = "Stopped"
	ReasonReplacementNeeded = "ReplacementNeeded"
)

// MachineDeployment keeps a number of Machines, and brings a change of their template to them.
type MachineDeployment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   MachineDeploymentSpec   `json:"spec"`
	Status MachineDeploymentStatus `json:"status,omitempty"`
}

// MachineDeploymentSpec is what is wanted.
type MachineDeploymentSpec struct {
	// replicas is the number of Machines. When it is not set, the controller sets it to that of the
	// MachineSets that it adopts, else to 1.
	Replicas *int32 `json:"replicas,omitempty"`
	// selector selects the Machines. It matches the labels of the template, and cannot be changed.
	Selector metav1.LabelSelector `json:"selector"`
	// template describes new Machines, as in a MachineSet. Another providerSpec is rolled out. Other
	// changes reach the existing Machines at once.
	Template machinev1beta1.MachineTemplateSpec `json:"template"`
	// minReadySeconds is how long a Machine's Node must be ready before the Machine is available.
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`
	// revisionHistoryLimit is how many old MachineSets without Machines are kept to go back to; 10
	// when it is not set.
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
	// paused stops rollouts. The number of Machines is still kept, with the revisions that they have.
	Paused bool `json:"paused,omitempty"`
	// restartedAt is part of the revision: another time replaces all Machines. `kubectl machine rollout
	// restart` sets it.
	RestartedAt *metav1.Time `json:"restartedAt,omitempty"`
	// progressDeadlineSeconds is how long a rollout may make no progress before it stops; 1800 when
	// it is not set.
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`
	// strategy says how existing Machines change.
	Strategy MachineDeploymentStrategy `json:"strategy,omitempty"`
}

// Restart returns restartedAt in RFC 3339, or "".
func (s *MachineDeploymentSpec) Restart() string {
	if s.RestartedAt == nil {
		return ""
	}
	return s.RestartedAt.UTC().Format(time.RFC3339)
}

// Revision returns the number of an object's revision, or 0 if it has none.
func Revision(object metav1.Object) int64 {
	number, err := strconv.ParseInt(object.GetAnnotations()[RevisionAnnotation], 10, 64)
	if err != nil {
		return 0
	}
	return number
}

// MachineDeploymentStrategyType names a strategy.
type MachineDeploymentStrategyType string

const (
	// InPlaceOrReplace changes each Machine in place if its plan allows that, and else replaces it as
	// RollingUpdate does. It is the default.
	InPlaceOrReplace MachineDeploymentStrategyType = "InPlaceOrReplace"
	// InPlace changes Machines in place only. A Machine whose plan needs a new instance stays as it
	// is, and a condition names the field.
	InPlace MachineDeploymentStrategyType = "InPlace"
	// RollingUpdate replaces Machines, within maxSurge and maxUnavailable.
	RollingUpdate MachineDeploymentStrategyType = "RollingUpdate"
	// Recreate deletes all old Machines before it creates new ones.
	Recreate MachineDeploymentStrategyType = "Recreate"
	// OnDelete replaces a Machine when somebody deletes it.
	OnDelete MachineDeploymentStrategyType = "OnDelete"
)

// MachineDeploymentStrategy says how existing Machines change.
type MachineDeploymentStrategy struct {
	// type is the strategy; InPlaceOrReplace when it is empty.
	Type MachineDeploymentStrategyType `json:"type,omitempty"`
	// rollingUpdate bounds InPlaceOrReplace, InPlace and RollingUpdate.
	RollingUpdate *RollingUpdateBounds `json:"rollingUpdate,omitempty"`
}

// TypeOrDefault returns the strategy's type, or the default.
func (s *MachineDeploymentStrategy) TypeOrDefault() MachineDeploymentStrategyType {
	return cmp.Or(s.Type, InPlaceOrReplace)
}

// Bounds returns maxSurge and maxUnavailable as the numbers of Machines that they come to. An error
// names the field that is neither a number nor a percentage.
func (s *MachineDeploymentStrategy) Bounds(replicas int) (surge, unavailable int, err error) {
	given := ptr.Deref(s.RollingUpdate, RollingUpdateBounds{})
	maxSurge, maxUnavailable := ptr.Deref(given.MaxSurge, intstr.FromInt32(1)), ptr.Deref(given.MaxUnavailable, intstr.IntOrString{})
	if surge, err = intstr.GetScaledValueFromIntOrPercent(&maxSurge, replicas, true); err != nil {
		return 0, 0, fmt.Errorf("spec.strategy.rollingUpdate.maxSurge is %q: %w; use a number or a percentage",
			maxSurge.String(), err)
	}
	if unavailable, err = intstr.GetScaledValueFromIntOrPercent(&maxUnavailable, replicas, false); err != nil {
		return 0, 0, fmt.Errorf("spec.strategy.rollingUpdate.maxUnavailable is %q: %w; use a number or a percentage",
			maxUnavailable.String(), err)
	}
	if surge <= 0 && unavailable <= 0 {
		unavailable = 1
	}
	return surge, min(unavailable, replicas), nil
}

// RollingUpdateBounds bound how many Machines a rollout concerns at a time.
type RollingUpdateBounds struct {
	// maxSurge is how many Machines, or which percentage of replicas rounded up, there may be beyond
	// replicas, those that are being deleted included; 1 when it is not set.
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`
	// maxUnavailable is how many Machines, or which percentage of replicas rounded down, may be
	// unavailable; 0 when it is not set. It is 1 if both come to 0.
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// deletePolicy says which Machines of an old revision are deleted first: Random, Newest or Oldest.
	DeletePolicy machinev1beta1.MachineSetDeletePolicy `json:"deletePolicy,omitempty"`
}

// Types of a MachineDeployment's conditions.
const (
	// ConditionAvailable is True while at least replicas - maxUnavailable Machines are available.
	ConditionAvailable = "Available"
	// ConditionProgressing has a Deployment's reasons, such as ProgressDeadlineExceeded.
	ConditionProgressing = "Progressing"
	// ConditionReplicaFailure is True while Machines cannot be created, deleted or changed.
	ConditionReplicaFailure = "ReplicaFailure"
	// ConditionPaused is True while spec.paused is set.
	ConditionPaused = "Paused"
	// ConditionInPlace is False with the fields if Machines cannot change in place.
	ConditionInPlace = "InPlace"
	// ConditionReconciling and ConditionStalled are True or absent, as kstatus reads them.
	ConditionReconciling = "Reconciling"
	ConditionStalled     = "Stalled"
)

// Reasons of the condition Progressing, which are a Deployment's.
const (
	ReasonNewMachineSetCreated     = "NewMachineSetCreated"
	ReasonMachineSetUpdated        = "MachineSetUpdated"
	ReasonNewMachineSetAvailable   = "NewMachineSetAvailable"
	ReasonProgressDeadlineExceeded = "ProgressDeadlineExceeded"
	ReasonPaused                   = "MachineDeploymentPaused"
	ReasonResumed                  = "MachineDeploymentResumed"
)

// MachineDeploymentStatus is what was last observed.
type MachineDeploymentStatus struct {
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// selector is spec.selector as a string, for the scale subresource.
	Selector string `json:"selector,omitempty"`
	// replicas are all Machines, those that are being deleted not included.
	Replicas int32 `json:"replicas"`
	// updatedReplicas are those whose template is the current one.
	UpdatedReplicas     int32 `json:"updatedReplicas"`
	ReadyReplicas       int32 `json:"readyReplicas"`
	AvailableReplicas   int32 `json:"availableReplicas"`
	UnavailableReplicas int32 `json:"unavailableReplicas"`
	// collisionCount is part of the hash, and grows when the name of a new MachineSet is taken.
	CollisionCount *int32 `json:"collisionCount,omitempty"`

	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// MachineDeploymentList is a list of MachineDeployments.
type MachineDeploymentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []MachineDeployment `json:"items"`
}
