package machineset

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
)

const (
	mustDelete   = 100.0
	betterDelete = 50.0
	noNodeDelete = 40.0
	couldDelete  = 20.0
	lastToDelete = 0.0
	// ageScale, in seconds, is how slowly the priority by age nears its limit: 100 days.
	ageScale = 8640000.0
)

// priority returns the priority with which a Machine is deleted, 0 to 100.
type priority func(machine *machinev1beta1.Machine, now time.Time) float64

// priorityOf returns the priority of a delete policy; the empty policy is Random.
func priorityOf(policy string) (priority, error) {
	switch machinev1beta1.MachineSetDeletePolicy(policy) {
	case "", machinev1beta1.RandomMachineSetDeletePolicy:
		return randomPriority, nil
	case machinev1beta1.OldestMachineSetDeletePolicy:
		return oldestPriority, nil
	case machinev1beta1.NewestMachineSetDeletePolicy:
		return newestPriority, nil
	default:
		return nil, fmt.Errorf("spec.deletePolicy is %q; use Random, Newest or Oldest", policy)
	}
}

func randomPriority(machine *machinev1beta1.Machine, _ time.Time) float64 {
	switch {
	case !machine.DeletionTimestamp.IsZero():
		return mustDelete
	case machineapi.MarkedForDeletion(machine) || failed(machine):
		return betterDelete
	case machine.Status.NodeRef == nil:
		return noNodeDelete
	default:
		return couldDelete
	}
}

func oldestPriority(machine *machinev1beta1.Machine, now time.Time) float64 {
	if !machine.DeletionTimestamp.IsZero() || machineapi.MarkedForDeletion(machine) || failed(machine) {
		return mustDelete
	}
	return byAge(machine, now)
}

func newestPriority(machine *machinev1beta1.Machine, now time.Time) float64 {
	if !machine.DeletionTimestamp.IsZero() || machineapi.MarkedForDeletion(machine) || failed(machine) {
		return mustDelete
	}
	return mustDelete - byAge(machine, now)
}

// byAge grows with the Machine's age, from 0 towards 50.
func byAge(machine *machinev1beta1.Machine, now time.Time) float64 {
	age := now.Sub(machine.CreationTimestamp.Time).Seconds()
	if machine.CreationTimestamp.IsZero() || age < 0 {
		return lastToDelete
	}
	return betterDelete * (1 - math.Exp(-age/ageScale))
}

// markedFirst orders a Machine against one whose mark differs.
func markedFirst(machine *machinev1beta1.Machine) int {
	if machineapi.MarkedForDeletion(machine) {
		return -1
	}
	return 1
}

func failed(machine *machinev1beta1.Machine) bool {
	return machine.Status.ErrorReason != nil || machine.Status.ErrorMessage != nil
}

// selection chooses Machines to delete.
type selection struct {
	policy  string
	now     time.Time
	shuffle func(n int, swap func(i, j int))
}

// choose returns the count Machines to delete: those that are marked, then those with the highest
// priority. Equal ones are ordered by name, under Random at random.
func (s selection) choose(machines []*machinev1beta1.Machine, count int) ([]*machinev1beta1.Machine, error) {
	priority, err := priorityOf(s.policy)
	if err != nil {
		return nil, err
	}
	candidates := slices.Clone(machines)
	slices.SortFunc(candidates, func(x, y *machinev1beta1.Machine) int { return strings.Compare(x.Name, y.Name) })
	if s.policy == "" || s.policy == string(machinev1beta1.RandomMachineSetDeletePolicy) {
		s.shuffle(len(candidates), func(i, j int) { candidates[i], candidates[j] = candidates[j], candidates[i] })
	}
	slices.SortStableFunc(candidates, func(x, y *machinev1beta1.Machine) int {
		if machineapi.MarkedForDeletion(x) != machineapi.MarkedForDeletion(y) {
			return markedFirst(x)
		}
		return cmp.Compare(priority(y, s.now), priority(x, s.now))
	})
	return candidates[:min(count, len(candidates))], nil
}
