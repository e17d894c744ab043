package termination

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

const (
	azureEvents = "/metadata/scheduledevents"
	azureName   = "/metadata/instance/compute/name"

	// azurePreview is the API version with recommendations, in regions that support it.
	// azureGeneral is available everywhere.
	azurePreview = "2024-07-09"
	azureGeneral = "2020-07-01"
	// azureInstance is the API version of the virtual machine's metadata.
	azureInstance = "2021-02-01"
)

// azureEnds are the events that announce the end of a Spot machine: an eviction, and the
// recommendation that one is likely.
var azureEnds = []string{"Preempt", "SpotRebalanceRecommendation"}

// azure is Azure's Instance Metadata Service. Events are read but never acknowledged: Azure would
// then evict at once and shorten the drain.
type azure struct {
	service  *metadata
	nodeName string
	// version is the API version of the events.
	version string
	// machine is the name of the virtual machine, once read.
	machine string
}

// azureEvent is a scheduled event. Events cover all machines of an availability set or scale set.
type azureEvent struct {
	EventType string
	Resources []string
}

// Terminating implements Source.
func (a *azure) Terminating(ctx context.Context) (bool, error) {
	events, err := a.events(ctx)
	if err != nil {
		return false, err
	}
	for _, event := range events {
		if !slices.Contains(azureEnds, event.EventType) {
			continue
		}
		if mine, err := a.concerned(ctx, event); mine || err != nil {
			return mine, err
		}
	}
	return false, nil
}

// events reads the scheduled events.
func (a *azure) events(ctx context.Context) ([]azureEvent, error) {
	read, err := a.get(ctx, azureEvents+"?api-version="+a.version)
	if err == nil && a.version == azurePreview && (read.status == http.StatusNotFound ||
		read.status == http.StatusBadRequest) {
		a.version = azureGeneral
		read, err = a.get(ctx, azureEvents+"?api-version="+a.version)
	}
	if err != nil {
		return nil, err
	}
	if read.status != http.StatusOK {
		return nil, a.service.refuse(read, azureEvents)
	}
	var document struct{ Events *[]azureEvent }
	if err := json.Unmarshal([]byte(read.body), &document); err != nil || document.Events == nil {
		return nil, a.service.misread(read, azureEvents, "a list of events")
	}
	return *document.Events, nil
}

// concerned reports whether an event concerns this machine. An event without machines does, since
// it can concern no other.
func (a *azure) concerned(ctx context.Context, event azureEvent) (bool, error) {
	named := func(name string) bool {
		return slices.ContainsFunc(event.Resources, func(resource string) bool { return strings.EqualFold(resource, name) })
	}
	if len(event.Resources) == 0 || named(a.nodeName) {
		return true, nil
	}
	if a.machine == "" {
		read, err := a.get(ctx, azureName+"?api-version="+azureInstance+"&format=text")
		if err != nil {
			return false, err
		}
		if read.status != http.StatusOK {
			return false, a.service.refuse(read, azureName)
		}
		if a.machine = strings.TrimSpace(read.body); a.machine == "" {
			return false, a.service.misread(read, azureName, "the name of a virtual machine")
		}
	}
	return named(a.machine), nil
}

func (a *azure) get(ctx context.Context, path string) (*response, error) {
	return a.service.get(ctx, path, http.Header{"Metadata": {"true"}})
}
