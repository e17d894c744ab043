package inspect

import (
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/inspect/print"
)

// AdoptionResult says how the adoption of an instance stands that something else has made.
type AdoptionResult string

// The results.
const (
	// AdoptionWaiting is an adoption that was not requested, or that nothing is known of yet.
	AdoptionWaiting AdoptionResult = "NotPlanned"
	// AdoptionClean is one that would change nothing.
	AdoptionClean AdoptionResult = "Clean"
	// AdoptionDiffers is one that would change something, or leave something that differs from the providerSpec.
	AdoptionDiffers AdoptionResult = "Differs"
	// AdoptionRefused is one that is refused.
	AdoptionRefused AdoptionResult = "Refused"
	// AdoptionDone is an instance that was adopted.
	AdoptionDone AdoptionResult = "Adopted"
	// AdoptionReleased is an instance that was released.
	AdoptionReleased AdoptionResult = "Released"
)

// MachineAdoption is what is known of the adoption of a Machine's instance.
type MachineAdoption struct {
	Namespace  string         `json:"namespace"`
	Machine    string         `json:"machine"`
	ProviderID string         `json:"providerID,omitempty"`
	Result     AdoptionResult `json:"result"`
	// Planned is when it was planned.
	Planned *metav1.Time `json:"planned,omitempty"`
	// Imports and Creates are addresses of resources, Changes those that would be changed in place with their attributes.
	Imports []string `json:"imports,omitempty"`
	Creates []string `json:"creates,omitempty"`
	Changes []string `json:"changes,omitempty"`
	// Differences say what differs from the providerSpec and stays as it is.
	Differences []string `json:"differences,omitempty"`
	// Message says why it is refused, or what the operator waits for.
	Message string `json:"message,omitempty"`
}

// AdoptionList is the result of Adoptions.
type AdoptionList struct {
	Items []MachineAdoption `json:"items"`

	listing
}

// Adoptions returns how the adoption of each Machine's instance stands. Machines whose instance the operator has made are left out.
func Adoptions(f *Facts) *AdoptionList {
	list := &AdoptionList{Items: []MachineAdoption{}, listing: listing{f.Namespace, f.Now}}
	for i := range f.Machines {
		if found := AdoptionOf(&f.Machines[i]); found != nil {
			list.Items = append(list.Items, *found)
		}
	}
	return list
}

// AdoptionOf returns how the adoption of a Machine's instance stands; nil where the operator has made the instance, or has not said anything yet.
func AdoptionOf(machine *machinev1beta1.Machine) *MachineAdoption {
	condition := AdoptedCondition(machine)
	if condition == nil {
		return nil
	}
	found := &MachineAdoption{Namespace: machine.Namespace, Machine: machine.Name, Result: AdoptionWaiting, Message: condition.Message}
	if machine.Spec.ProviderID != nil {
		found.ProviderID = *machine.Spec.ProviderID
	}
	switch {
	case condition.Status == metav1.ConditionTrue:
		found.Result, found.Message = AdoptionDone, ""
		return found
	case condition.Reason == "Released":
		found.Result = AdoptionReleased
		return found
	}
	status := ProviderStatus(machine)
	if planned := status.Adoption; planned != nil {
		found.take(planned)
	}
	return found
}

// take takes over what was planned.
func (a *MachineAdoption) take(planned *v1alpha1.AdoptionStatus) {
	a.Planned, a.Imports, a.Creates, a.Changes, a.Differences = &planned.PlannedAt, planned.Imports, planned.Creates, planned.Changes, planned.Differences
	switch {
	case planned.Refused != "":
		a.Result, a.Message = AdoptionRefused, planned.Refused
	case len(planned.Changes)+len(planned.Differences) > 0:
		a.Result, a.Message = AdoptionDiffers, ""
	default:
		a.Result, a.Message = AdoptionClean, ""
	}
}

// Objects implements print.Report.
func (l *AdoptionList) Objects() []metav1.PartialObjectMetadata {
	var objects []metav1.PartialObjectMetadata
	for i := range l.Items {
		objects = append(objects, print.MachineReference(l.Items[i].Namespace, l.Items[i].Machine))
	}
	return objects
}

// Rows implements print.Table.
func (l *AdoptionList) Rows(wide bool) [][]string {
	rows := [][]string{{"MACHINE", "PROVIDERID", "RESULT", "IMPORTS", "DETAILS"}}
	for i := range l.Items {
		a := &l.Items[i]
		details := a.Message
		if a.Message == "" {
			details = strings.Join(append(append([]string{}, a.Changes...), a.Differences...), "; ")
		}
		rows = append(rows, []string{a.Machine, a.ProviderID, string(a.Result), strings.Join(a.Imports, ","), print.Cut(details, wide)})
	}
	return rows
}

// AdoptedCondition returns what a Machine's provider status says of whether its instance is adopted; nil for nothing.
func AdoptedCondition(machine *machinev1beta1.Machine) *metav1.Condition {
	return meta.FindStatusCondition(ProviderStatus(machine).Conditions, "Adopted")
}
