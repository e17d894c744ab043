package termination

import (
	"fmt"
	"net/http"
	"testing"
)

const (
	preview = "GET " + azureEvents + "?api-version=" + azurePreview
	general = "GET " + azureEvents + "?api-version=" + azureGeneral
	named   = "GET " + azureName + "?api-version=" + azureInstance + "&format=text"
)

// instance is Azure's metadata service for one virtual machine.
type instance struct {
	name, events string
	// lacks is the status for a version of the events that it does not have.
	lacks int
}

func (i *instance) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch request := r.Method + " " + r.URL.RequestURI(); {
	case r.Header.Get("Metadata") != "true":
		w.WriteHeader(http.StatusBadRequest)
	case request == preview && i.lacks != 0:
		w.WriteHeader(i.lacks)
	case request == preview || request == general:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"DocumentIncarnation":1,"Events":[`+i.events+`]}`)
	case request == named && i.name != "":
		fmt.Fprint(w, i.name)
	default:
		w.WriteHeader(http.StatusInternalServerError)
	}
}

// scheduled is an event as Azure writes it.
func scheduled(kind, resources string) string {
	return `{"EventId":"f020ba2e-3bc0-4c40-a10b-86575a9eabd5","EventStatus":"Scheduled","EventType":"` + kind +
		`","ResourceType":"VirtualMachine","Resources":` + resources + `,"NotBefore":"Mon, 19 Sep 2022 18:29:47 GMT","EventSource":"Platform"}`
}

func TestAzure(t *testing.T) {
	for name, tc := range map[string]struct {
		events string
		want   bool
	}{
		"no event":                             {"", false},
		"an eviction":                          {scheduled("Preempt", `["worker-1"]`), true},
		"one that spells the name otherwise":   {scheduled("Preempt", `["Worker-1"]`), true},
		"one of this machine, by Azure's name": {scheduled("Preempt", `["pool_3"]`), true},
		"one of several machines":              {scheduled("Preempt", `["pool_1","pool_3"]`), true},
		"one of another machine":               {scheduled("Preempt", `["worker-2"]`), false},
		"one of another machine, and ours":     {scheduled("Preempt", `["worker-2"]`) + "," + scheduled("Preempt", `["worker-1"]`), true},
		"one that names no machine":            {scheduled("Preempt", `null`), true},
		"a recommendation":                     {scheduled("SpotRebalanceRecommendation", `["worker-1"]`), true},
		"a reboot":                             {scheduled("Reboot", `["worker-1"]`), false},
		"a termination by a user":              {scheduled("Terminate", `["worker-1"]`), false},
		"a freeze, then an eviction":           {scheduled("Freeze", `["worker-1"]`) + "," + scheduled("Preempt", `["worker-1"]`), true},
	} {
		t.Run(name, func(t *testing.T) {
			at := serve(t, (&instance{name: "pool_3", events: tc.events}).ServeHTTP)
			expect(t, source(t, Azure, SourceOptions{URL: at.URL, NodeName: "worker-1"}), tc.want, "")
		})
	}
}

func TestAzureWithoutRecommendations(t *testing.T) {
	for _, status := range []int{http.StatusNotFound, http.StatusBadRequest} {
		at := serve(t, (&instance{lacks: status, events: scheduled("Preempt", `["worker-1"]`)}).ServeHTTP)
		of := source(t, Azure, SourceOptions{URL: at.URL, NodeName: "worker-1"})
		expect(t, of, true, "")
		expect(t, of, true, "")
		if got := at.seen(); got != preview+", "+general+", "+general {
			t.Errorf("status %d: the requests are %s", status, got)
		}
	}
}

// The name of the machine is read once, and only for an event that may be about it.
func TestAzureReadsItsNameWhenItMatters(t *testing.T) {
	there := &instance{}
	at := serve(t, there.ServeHTTP)
	of := source(t, Azure, SourceOptions{URL: at.URL, NodeName: "worker-1"})
	expect(t, of, false, "")
	there.events = scheduled("Preempt", `["pool_3"]`)
	expect(t, of, false, "Status500") // whose it is remains open
	there.name = "pool_3"
	expect(t, of, true, "")
	at.now(there.ServeHTTP)
	expect(t, of, true, "")
	if got := at.seen(); got != preview {
		t.Errorf("the requests are %s, want the name no more", got)
	}
}

// An acknowledgement is a POST, after which Azure evicts at once.
func TestAzureAcknowledgesNothing(t *testing.T) {
	at := serve(t, (&instance{events: scheduled("Preempt", `["worker-1"]`)}).ServeHTTP)
	expect(t, source(t, Azure, SourceOptions{URL: at.URL, NodeName: "worker-1"}), true, "")
	if got := at.seen(); got != preview {
		t.Errorf("the requests are %s", got)
	}
}
