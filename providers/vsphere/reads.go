package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

const (
	// fresh is how long a response about places is repeated, such as datacenters, pools, datastores and networks, and brief one about virtual machines,
	// while nothing is written. The provider asks for the same several times for each virtual machine.
	fresh = 30 * time.Second
	brief = time.Second
)

// reads are what a session has read a moment ago, by the request.
type reads struct {
	mu     sync.Mutex
	made   map[string]*read
	writes int
}

type read struct {
	mu       sync.Mutex // held while it is made, by one of those that need it
	key      string
	until    time.Time
	brief    bool
	response soap.HasFault
	err      error
}

// repeat responds to a request, from memory where that suffices. Any other request may write, or wait for what was written, so that it ends brief ones.
func (r *reads) repeat(ctx context.Context, next soap.RoundTripper, request, response soap.HasFault) error {
	if !isRead(request) {
		r.forget()
		defer r.forget()
		return next.RoundTrip(ctx, request, response)
	}
	key, err := json.Marshal(request)
	if err != nil {
		return err
	}
	one, writes := r.of(fmt.Sprintf("%T %s", request, key))
	one.mu.Lock()
	defer one.mu.Unlock()
	if r.repeats(one) {
		take(response, one.response)
		return one.err
	}
	begun := time.Now()
	err = next.RoundTrip(ctx, request, response)
	r.keep(one, writes, begun, response, err)
	return err
}

// of returns the read of a key and the number of writes so far, and forgets reads that are out of date.
func (r *reads) of(key string) (one *read, writes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.made, func(_ string, one *read) bool { return one.response != nil && time.Now().After(one.until) })
	if r.made[key] == nil {
		r.made[key] = &read{key: key}
	}
	return r.made[key], r.writes
}

func (r *reads) repeats(one *read) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return one.response != nil && time.Now().Before(one.until)
}

func (r *reads) keep(one *read, writes int, begun time.Time, response soap.HasFault, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	lasts := lastsFor(response, err)
	if lasts == 0 || lasts == brief && writes != r.writes {
		if one.response == nil && r.made[one.key] == one {
			delete(r.made, one.key)
		}
		return
	}
	one.until, one.brief, one.response, one.err = begun.Add(lasts), lasts == brief, response, err
}

// forget ends what does not outlast a write.
func (r *reads) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writes++
	for _, one := range r.made {
		if one.brief {
			one.until = time.Time{}
		}
	}
}

// isRead reports whether a request reads places or virtual machines. The groups of a cluster are written here.
func isRead(request soap.HasFault) bool {
	switch body := request.(type) {
	case *methods.FindByUuidBody:
		return true
	case *methods.RetrievePropertiesBody:
		return !slices.ContainsFunc(body.Req.SpecSet, func(spec types.PropertyFilterSpec) bool {
			return slices.ContainsFunc(spec.ObjectSet, func(one types.ObjectSpec) bool {
				return !isPlace(one.Obj) && one.Obj.Type != "VirtualMachine" && one.Obj.Type != "VirtualApp"
			}) || slices.ContainsFunc(spec.PropSet, func(one types.PropertySpec) bool { return slices.Contains(one.PathSet, "configurationEx") })
		})
	}
	return false
}

func isPlace(object types.ManagedObjectReference) bool {
	switch object.Type {
	case "Folder", "Datacenter", "ComputeResource", "ClusterComputeResource", "ResourcePool", "HostSystem", "Datastore", "StoragePod",
		"Network", "OpaqueNetwork", "DistributedVirtualPortgroup", "EnvironmentBrowser":
		return true
	}
	return false
}

// lastsFor returns how long a response may be repeated. What is not found may appear, except that a pool becomes no vApp.
func lastsFor(response soap.HasFault, err error) time.Duration {
	if err != nil {
		if missing, ok := missingOf(err); ok && missing.Type == "VirtualApp" {
			return fresh
		}
		return 0
	}
	switch body := response.(type) {
	case *methods.FindByUuidBody:
		if body.Res != nil && body.Res.Returnval != nil {
			return brief
		}
	case *methods.RetrievePropertiesBody:
		if body.Res == nil || len(body.Res.Returnval) == 0 {
			return 0
		}
		if slices.ContainsFunc(body.Res.Returnval, func(one types.ObjectContent) bool { return !isPlace(one.Obj) }) {
			return brief
		}
		return fresh
	}
	return 0
}

// missingOf returns the object that a request failed to find.
func missingOf(err error) (types.ManagedObjectReference, bool) {
	if !soap.IsSoapFault(err) {
		return types.ManagedObjectReference{}, false
	}
	fault, ok := soap.ToSoapFault(err).VimFault().(types.ManagedObjectNotFound)
	return fault.Obj, ok
}

// take makes one response like another.
func take(response, from soap.HasFault) {
	switch response := response.(type) {
	case *methods.FindByUuidBody:
		*response = *from.(*methods.FindByUuidBody)
	case *methods.RetrievePropertiesBody:
		*response = *from.(*methods.RetrievePropertiesBody)
	}
}
