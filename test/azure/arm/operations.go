package arm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const operationsPath = "/subscriptions/" + Subscription + "/providers/Microsoft.Compute/locations/eastus/operations/"

// operation is a write that was accepted and ends later.
type operation struct {
	id      string
	due     time.Time
	removes bool
	ended   bool
}

// lock returns how the lock is released that it takes. What was due has ended by then.
func (a *Server) lock() (unlock func()) {
	a.mutex.Lock()
	for _, one := range a.operations {
		if !one.ended && !a.now().Before(one.due) {
			one.ended = true
			a.end(one)
		}
	}
	return a.mutex.Unlock
}

func (a *Server) end(one *operation) {
	if one.removes {
		a.drop(one.id)
	} else if found := a.resources[strings.ToLower(one.id)]; found != nil {
		found["properties"].(object)["provisioningState"] = "Succeeded"
	}
}

// takes returns how long a write of a resource takes. Polls of operations count as the virtual machines'.
func (a *Server) takes(path string) time.Duration {
	path = strings.ToLower(path)
	if strings.Contains(path, "/virtualmachines/") || strings.HasPrefix(path, strings.ToLower(operationsPath)) {
		return a.machineLatency
	}
	return a.latency
}

// begin accepts a write of a resource. The response says where its operation is polled.
func (a *Server) begin(w http.ResponseWriter, id, state string, removes bool) {
	a.resources[strings.ToLower(id)]["properties"].(object)["provisioningState"] = state
	a.operations = append(a.operations, &operation{id: id, due: a.now().Add(a.takes(id)), removes: removes})
	w.Header().Set("Azure-AsyncOperation", fmt.Sprintf("%s%s%d?api-version=2025-04-01", a.server.URL, operationsPath, len(a.operations)-1))
	w.Header().Set("Retry-After", "1")
}

// operation says how far an operation is.
func (a *Server) operation(w http.ResponseWriter, r *http.Request) {
	number, err := strconv.Atoi(r.PathValue("number"))
	if err != nil || number < 0 || number >= len(a.operations) {
		refuse(w, http.StatusNotFound, "OperationNotFound", "There is no operation "+r.PathValue("number")+".")
		return
	}
	status := "InProgress"
	if a.operations[number].ended {
		status = "Succeeded"
	} else {
		w.Header().Set("Retry-After", "1")
	}
	respond(w, http.StatusOK, object{"name": r.PathValue("number"), "status": status})
}

func respond(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // whoever asked may have gone
}
