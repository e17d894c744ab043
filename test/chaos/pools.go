package chaos

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/hack/lab"
)

// Pool is a MachineDeployment at one time.
type Pool struct {
	Replicas, Surge, Unavailable int
	// Numbers is how many Machines its MachineSets should have in all.
	Numbers  int
	Machines []Machine
	// Problem is why the rollout is not complete, or "".
	Problem string
}

// bounds are the most Machines that a MachineDeployment may have and the fewest that must be available. After a change
// of replicas, they follow once the MachineDeployment has.
type bounds struct {
	most, least int
	// replaced is how many Machines the round had taken away when the last rollout was complete.
	replaced int
}

// count returns how many Machines there are, and how many are available, without those that the round itself took away.
// complete reports whether the rollout is, and these are gone.
func (p Pool) count(taken map[string]string) (total, available int, complete bool) {
	complete = p.Problem == ""
	for _, m := range p.Machines {
		switch {
		case taken[m.UID] != "":
			complete = complete && m.Deleting
			continue
		case m.Linked && !m.Deleting && !m.NotReady:
			available++
		}
		total++
	}
	return total, available, complete
}

// check holds a MachineDeployment to its bounds. Machines that the round itself took away do not count for the most, and
// count as available until they are replaced: that is not the rollout's doing.
func (b *bounds) check(name string, p Pool, taken map[string]string) []Violation {
	gone := 0
	for _, set := range taken {
		if set == name {
			gone++
		}
	}
	total, available, complete := p.count(taken)
	if complete && available >= p.Replicas {
		b.replaced = gone
	}
	available += gone - b.replaced
	if most := p.Replicas + p.Surge; most > b.most || max(total, p.Numbers) <= most {
		b.most = most
	}
	if least := p.Replicas - p.Unavailable; least < b.least || available >= least {
		b.least = least
	}
	v := &findings{}
	if total > b.most {
		v.add(Beyond, "MachineDeployment %s has %d Machines, at most %d may be", name, total, b.most)
	}
	if available < b.least {
		v.add(Beyond, "MachineDeployment %s has %d available Machines, at least %d must be", name, available,
			b.least)
	}
	return v.found
}

// watchPools holds MachineDeployments to their bounds until the returned function is called.
func (r *round) watchPools(ctx context.Context) (stop func()) {
	const often = 150 * time.Millisecond
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		all := map[string]*bounds{}
		for ; ctx.Err() == nil; time.Sleep(often) {
			pools, err := r.pools(ctx)
			if err != nil {
				continue // the API server is away
			}
			r.mu.Lock()
			taken := maps.Clone(r.expected.Taken)
			r.mu.Unlock()
			for name, pool := range pools {
				if all[name] == nil {
					all[name] = &bounds{}
				}
				for _, v := range all[name].check(name, pool, taken) {
					r.violate(v)
				}
			}
		}
	})
	return func() {
		cancel()
		done.Wait()
	}
}

// pools returns the MachineDeployments. Machines are read first: what they must keep to may only be newer.
func (w *world) pools(ctx context.Context) (map[string]Pool, error) {
	var machines machinev1beta1.MachineList
	var nodes corev1.NodeList
	var sets machinev1beta1.MachineSetList
	var all v1beta1.MachineDeploymentList
	inNamespace := client.InNamespace(lab.Namespace)
	err := errors.Join(w.client.List(ctx, &machines, inNamespace), w.client.List(ctx, &nodes),
		w.client.List(ctx, &sets, inNamespace), w.client.List(ctx, &all, inNamespace))
	if err != nil {
		return nil, err
	}
	notReady := map[string]bool{}
	for _, node := range nodes.Items {
		notReady[node.Name] = true
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
				notReady[node.Name] = false
			}
		}
	}
	pools := map[string]Pool{}
	for _, d := range all.Items {
		p := Pool{Replicas: int(*d.Spec.Replicas), Problem: problemOf(&d)}
		if p.Surge, p.Unavailable, err = d.Spec.Strategy.Bounds(p.Replicas); err != nil {
			return nil, err
		}
		for _, set := range sets.Items {
			if set.Spec.Template.Labels[setLabel] == d.Name {
				p.Numbers += int(*set.Spec.Replicas)
			}
		}
		for i := range machines.Items {
			if m := machineOf(&machines.Items[i]); m.Set == d.Name {
				m.NotReady = m.Linked && notReady[machines.Items[i].Status.NodeRef.Name]
				p.Machines = append(p.Machines, m)
			}
		}
		pools[d.Name] = p
	}
	return pools, nil
}

// problemOf returns why a rollout is not complete, or "".
func problemOf(d *v1beta1.MachineDeployment) string {
	progressing := meta.FindStatusCondition(d.Status.Conditions, v1beta1.ConditionProgressing)
	switch {
	case progressing == nil || d.Status.ObservedGeneration != d.Generation:
		return "its status is old"
	case progressing.Reason != v1beta1.ReasonNewMachineSetAvailable:
		return progressing.Reason + ": " + progressing.Message
	}
	return ""
}
