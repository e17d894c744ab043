package nodelink

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
)

const (
	// checkAnnotation requests a drift check, which also reads the addresses.
	checkAnnotation = "machine-iac.io/check-drift"
	// instanceAnnotation marks Machines with an instance of this operator.
	instanceAnnotation = "machine-iac.io/instance"
	// addressAnnotation records the Node addresses that a check was last requested for, and when.
	addressAnnotation = "machine-iac.io/address-checked"
)

const (
	// addressPatience is how long a Node waits for its Machine's first IP address.
	addressPatience = 2 * time.Minute
	// addressInterval is the least time between two requests, since kubelets write their addresses themselves.
	addressInterval = 5 * time.Minute
	// maxAddresses bounds the annotation.
	maxAddresses = 8
)

// checkAddress requests a check of the instance if the Machine lacks an InternalIP of its Node: guests report addresses
// after they boot, one after the other, and addresses change. Without any IP address, nodeRef waits:
// cluster-machine-approver wants all of a Node's addresses in the Machine that has the nodeRef, and a kubelet repeats a
// refused request only after a quarter of an hour.
type checkAddress struct {
	client client.Client
	clock  clock.PassiveClock
}

// Reconcile implements pipeline.Step.
func (c *checkAddress) Reconcile(ctx context.Context, s *scope) (bool, error) {
	known := machineInternalIPs(s.machine)
	missing := slices.DeleteFunc(internalIPs(s.node.Status.Addresses), func(ip string) bool {
		_, err := netip.ParseAddr(ip) // a kubelet may write anything
		return err != nil || slices.Contains(known, ip)
	})
	slices.Sort(missing)
	missing = missing[:min(maxAddresses, len(missing))]
	_, ours := s.machine.Annotations[instanceAnnotation]
	if len(missing) == 0 || !ours || !s.machine.DeletionTimestamp.IsZero() {
		return true, nil
	}
	if len(s.machine.Status.Addresses) == 0 {
		return true, nil // the create has not published them yet
	}
	asked, err := c.request(ctx, s, strings.Join(missing, ","))
	if err != nil || s.machine.Status.NodeRef != nil || len(known) > 0 {
		return err == nil, err
	}
	if since := c.clock.Since(asked); since >= 0 && since < addressPatience { // not less: another leader's clock
		s.awaitsAddress = true
		s.RequeueAfter(addressPatience - since)
	}
	return true, nil
}

// request requests a check once per missing addresses, and returns when the last one was requested.
func (c *checkAddress) request(ctx context.Context, s *scope, missing string) (time.Time, error) {
	now := c.clock.Now()
	addresses, at, _ := strings.Cut(s.machine.Annotations[addressAnnotation], " ")
	last, err := time.Parse(time.RFC3339, at)
	if asked := err == nil && !last.After(now); asked && addresses == missing {
		return last, nil
	} else if asked && now.Sub(last) < addressInterval {
		s.RequeueAfter(addressInterval - now.Sub(last))
		return last, nil
	}
	before := s.machine.DeepCopy()
	mark := missing + " " + now.UTC().Format(time.RFC3339)
	s.machine.Annotations[addressAnnotation], s.machine.Annotations[checkAnnotation] = mark, mark
	if err := c.client.Patch(ctx, s.machine, pipeline.IfUnchanged(before)); err != nil {
		return now, s.Written(fmt.Errorf("requesting a check of Machine %s: %w", keyOf(before), err))
	}
	return now, nil
}
