package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Workload is the infrastructure of a MachineSet.
type Workload string

const (
	// Kubemark is simulated Nodes by OpenTofu, KubemarkPulumi by Pulumi.
	Kubemark       Workload = "kubemark"
	KubemarkPulumi Workload = "kubemark-pulumi"
	// OpenStack is a simulated cloud, in which names are not unique.
	OpenStack Workload = "openstack"
)

type Kind string

// The faults. See docs/reliability.md.
const (
	killEngine         Kind = "engine killed"
	killProvider       Kind = "provider killed"
	killHost           Kind = "language host killed"
	killSupervisor     Kind = "supervisor killed"
	killManager        Kind = "manager killed"
	pauseManager       Kind = "manager paused past its lease"
	deleteLease        Kind = "Lease deleted"
	stopManager        Kind = "manager stopped with a short grace"
	apiServerAway      Kind = "API server away"
	etcdAway           Kind = "etcd away"
	stateConflict      Kind = "state write fails with 409"
	stateTooLarge      Kind = "state write fails with 413"
	stateThrottled     Kind = "state write fails with 429"
	stateError         Kind = "state write fails with 500"
	stateSilence       Kind = "state write gets no response"
	fullDisk           Kind = "disk of the runs full"
	credentialsRotated Kind = "credentials rotated"
	credentialsDeleted Kind = "credentials deleted"
	credentialsOthers  Kind = "credentials of another account"
	placeEdited        Kind = "place edited"
	instanceRemoved    Kind = "instance removed from outside"
	instanceEdited     Kind = "instance edited from outside"
	providerHangs      Kind = "provider hangs"
	providerFails      Kind = "provider fails after it created"
	providerSlow       Kind = "provider slow, or carried out late"
	finalizerRemoved   Kind = "finalizer removed by force"
	stateDeleted       Kind = "state Secrets deleted"
	stateRestored      Kind = "state Secrets deleted and put back"
	providerDies       Kind = "provider killed in the middle of a batch"
	memberRefused      Kind = "one of a batch refused"
	memberHangs        Kind = "one of a batch hangs to its deadline"
)

// kinds are all faults, in the order in which seeds select them. Those of batches have rounds of their own.
var kinds = []Kind{
	killEngine, pauseManager, stateSilence, credentialsDeleted, killManager, providerFails, stateDeleted, apiServerAway,
	killProvider, instanceRemoved,
	deleteLease, stateConflict, placeEdited, finalizerRemoved, killSupervisor, providerHangs, stopManager,
	credentialsRotated, fullDisk, stateRestored,
	stateError, killHost, credentialsOthers, etcdAway, providerSlow, stateThrottled, instanceEdited, stateTooLarge,
	providerDies, memberRefused, memberHangs,
}

// Not injected: clock changes. Time namespaces shift only monotonic clocks, and a test must not change the machine's
// clock.

// needs is the only workload that a fault affects.
var needs = map[Kind]Workload{killHost: KubemarkPulumi, credentialsOthers: OpenStack, placeEdited: OpenStack}

type Set struct {
	Name     string
	On       Workload
	Replicas int32
	// Pool is set for a MachineDeployment, with its bounds.
	Pool               bool
	Surge, Unavailable int
}

// Action is a user's action on Machines.
type Action string

const (
	scaleUp       Action = "scale up"
	scaleDown     Action = "scale down"
	editInPlace   Action = "edit in place"
	editRefused   Action = "edit that is refused"
	deleteMachine Action = "delete a Machine"
	deleteSet     Action = "delete a MachineSet"
	rollInPlace   Action = "roll out in place"
	rollReplacing Action = "roll out by replacement"
	rollBack      Action = "roll back"
)

// Step is an action or a fault at a time of the round.
type Step struct {
	At time.Duration
	// Either Action or Fault is set.
	Action Action
	Fault  Kind
	// Set is the index of the MachineSet, For the duration, Draw a random number.
	Set  int
	For  time.Duration
	Draw int
}

func (s Step) String() string {
	return fmt.Sprintf("%.1fs %s%s set %d for %.1fs", s.At.Seconds(), s.Action, s.Fault, s.Set, s.For.Seconds())
}

// Plan is a seed's round.
type Plan struct {
	Seed  uint64
	Sets  []Set
	Steps []Step
}

func (p Plan) Faults() []Kind {
	var found []Kind
	for _, step := range p.Steps {
		if step.Fault != "" {
			found = append(found, step.Fault)
		}
	}
	return found
}

// Limits are the machine's limits.
type Limits struct {
	// On are the available workloads.
	On []Workload
	// Away bounds how long anything is away, hangs or is late.
	Away time.Duration
	// Only, unless empty, are the faults of every round.
	Only []Kind
}

// NewPlan draws a round.
func NewPlan(seed uint64, limits Limits) Plan {
	draw := rand.New(rand.NewPCG(seed, 12))
	p := Plan{Seed: seed}
	faults := drawFaults(draw, seed, limits)
	p.drawSets(draw, faults, limits)
	for _, kind := range faults {
		p.Steps = append(p.Steps, p.drawFault(draw, kind, limits))
	}
	if p.Sets[0].Replicas == crowd { // users leave it alone: each other change has a process of its own
		return p
	}
	for range 1 + draw.IntN(3) {
		p.Steps = append(p.Steps, p.drawAction(draw))
	}
	p.drawPools()
	slices.SortStableFunc(p.Steps, func(a, b Step) int { return int(a.At - b.At) })
	return p
}

// drawFaults makes consecutive seeds cycle through all kinds, each with varying companions.
func drawFaults(draw *rand.Rand, seed uint64, limits Limits) []Kind {
	if len(limits.Only) > 0 {
		return slices.DeleteFunc(slices.Clone(limits.Only), func(k Kind) bool { return k == "none" })
	}
	if n := seed%20 - 10; n < uint64(len(ofBatches)) { // others have what these three rounds would
		return ofBatches[n : n+1]
	}
	count := uint64(len(kinds) - len(ofBatches))
	faults := []Kind{kinds[seed%count], kinds[(seed+20+seed/count)%count]}
	if draw.IntN(3) == 0 {
		faults = append(faults, kinds[draw.Uint64N(count)])
	}
	var chosen []Kind
	for _, kind := range faults {
		needed, bound := needs[kind]
		if (!bound || slices.Contains(limits.On, needed)) &&
			!slices.ContainsFunc(chosen, func(other Kind) bool { return clash(kind, other) }) {
			chosen = append(chosen, kind)
		}
	}
	return chosen
}

// apart are faults that are not combined, because docs/reliability.md does not cover the combination or they undo each
// other.
var apart = [][]Kind{
	{killSupervisor, killManager, stopManager, pauseManager},
	{stateDeleted, stateRestored, finalizerRemoved},
	{credentialsRotated, credentialsDeleted, credentialsOthers},
	{apiServerAway, etcdAway},
	{providerHangs, providerFails, providerSlow},
}

// whileMaking are faults that affect creates: they start at once, and last long enough.
var whileMaking = []Kind{
	stateConflict, stateTooLarge, stateThrottled, stateError, stateSilence, providerHangs,
	providerFails, providerSlow, fullDisk,
}

func clash(a, b Kind) bool {
	return a == b || slices.ContainsFunc(apart,
		func(group []Kind) bool { return slices.Contains(group, a) && slices.Contains(group, b) })
}

func (p *Plan) drawSets(draw *rand.Rand, faults []Kind, limits Limits) {
	if slices.ContainsFunc(faults, func(k Kind) bool { return slices.Contains(ofBatches, k) }) {
		p.Sets = []Set{{Name: fmt.Sprintf("c%d-a", p.Seed), On: Kubemark, Replicas: crowd}}
		return
	}
	var on []Workload
	for _, kind := range faults {
		if needed, bound := needs[kind]; bound && !slices.Contains(on, needed) {
			on = append(on, needed)
		}
	}
	for want := 1 + draw.IntN(2); len(on) < want; {
		on = append(on, limits.On[draw.IntN(len(limits.On))])
	}
	for i, workload := range on {
		replicas := 1 + draw.IntN(2) + 2/len(on)
		if workload == KubemarkPulumi { // its runs use several times the CPU
			replicas = min(replicas, 2)
		}
		p.Sets = append(p.Sets, Set{Name: fmt.Sprintf("c%d-%c", p.Seed, 'a'+i), On: workload,
			Replicas: int32(replicas)})
	}
}

func (p *Plan) drawFault(draw *rand.Rand, kind Kind, limits Limits) Step {
	step := Step{Fault: kind, At: between(draw, 200*time.Millisecond, 5*time.Second),
		For: between(draw, time.Second, limits.Away), Draw: draw.IntN(1 << 16)}
	if slices.Contains(ofBatches, kind) {
		step.At = 0
	}
	if slices.Contains(whileMaking, kind) {
		step.At, step.For = between(draw, 0, 1500*time.Millisecond), between(draw, limits.Away/2, limits.Away)
	}
	var fit []int
	for i, set := range p.Sets {
		if needed, bound := needs[kind]; !bound || set.On == needed {
			fit = append(fit, i)
		}
	}
	step.Set = fit[draw.IntN(len(fit))]
	return step
}

func (p *Plan) drawAction(draw *rand.Rand) Step {
	actions := []Action{scaleUp, scaleDown, scaleUp, editInPlace, editInPlace, editRefused,
		deleteMachine, deleteMachine}
	if len(p.Sets) > 1 { // otherwise the round would have little left
		actions = append(actions, deleteSet)
	}
	return Step{
		Action: actions[draw.IntN(len(actions))], At: between(draw, time.Second, 8*time.Second),
		Set: draw.IntN(len(p.Sets)), Draw: draw.IntN(1 << 16),
	}
}

// drawPools makes MachineDeployments of some MachineSets of simulated Nodes. Their rollouts meet each other, scaling and
// faults. It draws apart, so that seeds keep the rest of their rounds.
func (p *Plan) drawPools() {
	draw := rand.New(rand.NewPCG(p.Seed, 34))
	actions := []Action{rollInPlace, rollInPlace, rollReplacing, rollReplacing, rollBack, scaleDown, scaleUp}
	for i := range p.Sets {
		set := &p.Sets[i]
		if set.On == OpenStack || draw.IntN(2) == 0 {
			continue
		}
		set.Pool, set.Surge, set.Unavailable = true, draw.IntN(3), draw.IntN(2)
		for j := range p.Steps {
			if fault := p.Steps[j].Fault; fault != "" && !slices.Contains(whileMaking, fault) {
				p.Steps[j].At += between(draw, 0, 12*time.Second)
			}
		}
		for range 3 + draw.IntN(2) {
			p.Steps = append(p.Steps, Step{
				Action: actions[draw.IntN(len(actions))], At: between(draw, 2*time.Second, 20*time.Second), Set: i,
				Draw: draw.IntN(1 << 16),
			})
		}
	}
}

func between(draw *rand.Rand, low, high time.Duration) time.Duration {
	return low + time.Duration(draw.Int64N(int64(max(high-low, 1))))
}

// ParseKinds parses a list of parts of faults' names; "none" is a round without faults.
func ParseKinds(text string) ([]Kind, error) {
	var found []Kind
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		at := slices.IndexFunc(kinds, func(k Kind) bool { return strings.Contains(string(k), part) })
		switch {
		case part == "none":
			found = append(found, "none")
		case at < 0:
			return nil, fmt.Errorf("no fault has %q in its name; they are %q", part, kinds)
		default:
			found = append(found, kinds[at])
		}
	}
	return found, nil
}
