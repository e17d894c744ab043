// Package prism simulates the part of Prism Central's API v3 that the module nutanix uses: virtual machines, which
// exist as soon as their task is created, and fixed lists of everything else.
package prism

import (
	"cmp"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/machine-iac/machine-iac-operator/test/calls"
)

// Element is the UUID of the cluster pe-1. Username and Password are the valid login. Cluster is the cluster's
// category.
const (
	Element  = "0005b6f1-8f43-a0f2-02b7-3cecef193712"
	Username = "admin"
	Password = "simulated"
	Cluster  = "demo-x7k2p"

	otherElement = "0005b6f1-8f43-a0f2-02b7-3cecef193713"

	prefix = "/api/nutanix/v3"
)

type Object = map[string]any

type object = Object

type Central struct {
	// Calls counts the requests.
	Calls calls.Log

	server      *httptest.Server
	certificate string

	mutex    sync.Mutex
	password string
	// machines are the virtual machines in the API's format by UUID; made counts them.
	machines map[string]object
	made     int
	// failing makes the next create fail. denied is the method that is refused for virtual machines.
	failing bool
	denied  string
	// latency is the duration of a create's task, due the end of each machine's task. removed is the name of the
	// removed image.
	latency time.Duration
	due     map[string]time.Time
	removed string
	// categories contains KEY/VALUE.
	categories map[string]bool
}

// Start starts a Prism Central on loopback. It writes its certificate into dir.
func Start(dir string) (*Central, error) {
	p := &Central{certificate: filepath.Join(dir,
		"prism.pem"), password: Password, machines: map[string]object{}, due: map[string]time.Time{},
		categories: map[string]bool{
			"kubernetes-io-cluster-" + Cluster + "/owned": true, "AppType/Web tier": true,
		}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+prefix+"/{kind}/list", p.list)
	mux.HandleFunc("GET "+prefix+"/categories/{key}/{value}", p.category)
	mux.HandleFunc("GET "+prefix+"/tasks/{task}", p.task)
	mux.HandleFunc("POST "+prefix+"/vms", p.create)
	mux.HandleFunc("GET "+prefix+"/vms/{uuid}", p.get)
	mux.HandleFunc("DELETE "+prefix+"/vms/{uuid}", p.delete)
	p.server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.Calls.Note(callOf(r))
		p.mutex.Lock()
		defer p.mutex.Unlock()
		if user, password, _ := r.BasicAuth(); user != Username || password != p.password {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.Method == p.denied && strings.HasPrefix(r.URL.Path, prefix+"/vms") && !strings.HasSuffix(r.URL.Path, "/list") {
			refuse(w, http.StatusForbidden, "ACCESS_DENIED", "No permission to access the resource.")
			return
		}
		mux.ServeHTTP(w, r)
	}))
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	if err := os.WriteFile(p.certificate, authority, 0o600); err != nil {
		p.server.Close()
		return nil, fmt.Errorf("writing the certificate of the simulated Prism Central: %w", err)
	}
	return p, nil
}

// callOf names a request for the log. Every request signs in by itself.
func callOf(r *http.Request) string {
	kind, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, prefix+"/"), "/")
	switch {
	case kind == "tasks":
		return calls.Poll + kind
	case rest == "list":
		return "list " + kind
	}
	return r.Method + " " + kind
}

func (p *Central) Close() { p.server.Close() }

// Environment returns the environment that the cluster gives a run.
func (p *Central) Environment() map[string]string {
	host, port, _ := strings.Cut(p.server.Listener.Addr().String(), ":")
	return map[string]string{"NUTANIX_ENDPOINT": host, "NUTANIX_PORT": port, "SSL_CERT_FILE": p.certificate}
}

func respond(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func refuse(w http.ResponseWriter, status int, reason, message string) {
	respond(w, status, object{"api_version": "3.1", "code": status, "state": "ERROR",
		"message_list": []object{{"reason": reason, "message": message}}})
}

// fixed returns constant lists by their name in the API's paths.
func fixed(kind string) []object {
	named := func(uuid, name string) object {
		return object{"metadata": object{"kind": kind, "uuid": uuid},
			"spec": object{"name": name, "resources": object{}}, "status": object{"name": name, "state": "COMPLETE"}}
	}
	cluster := func(uuid, name, service string) object {
		one := named(uuid, name)
		one["status"] = object{"name": name, "state": "COMPLETE",
			"resources": object{"config": object{"service_list": []string{service}}}}
		return one
	}
	subnet := func(uuid, name, cluster string) object {
		one := named(uuid, name)
		one["spec"].(object)["cluster_reference"] = object{"kind": "cluster", "uuid": cluster}
		return one
	}
	return map[string][]object{
		"clusters": {cluster(Element, "pe-1", "AOS"),
			cluster("9a1e8a3e-0000-4b00-9b00-000000000001", "pc-1", "PRISM_CENTRAL")},
		"images": {
			named("ea05d5d3-8f1f-4e0c-9a52-000000000001", "rhcos"),
			named("ea05d5d3-8f1f-4e0c-9a52-000000000004", "rhcos-next"),
			named("ea05d5d3-8f1f-4e0c-9a52-000000000002", "twice"),
			named("ea05d5d3-8f1f-4e0c-9a52-000000000003", "twice"),
		},
		"subnets": {
			subnet("c7938dc6-7659-453e-a688-000000000001", "net (a)", Element),
			subnet("c7938dc6-7659-453e-a688-000000000003", "net", otherElement),
			subnet("c7938dc6-7659-453e-a688-000000000002", "net", Element),
		},
		"projects": {named("5c6f5d2e-0000-4b00-9b00-000000000001", "team")},
		"hosts": {{"metadata": object{
			"kind": "host",
		}, "status": object{"cluster_reference": object{"kind": "cluster", "uuid": Element}, "resources": object{
			"gpu_list": []object{
				{"status": "ASSIGNED", "name": "T4", "vendor": "NVIDIA",
					"mode": "PASSTHROUGH_COMPUTE", "device_id": 7864},
				{"status": "UNUSED", "name": "A40", "vendor": "NVIDIA", "mode": "VIRTUAL", "device_id": 8757},
			},
		}}}},
	}[kind]
}

// list returns a page of a list. It supports the filters that the module uses.
func (p *Central) list(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Filter         string
		Offset, Length int
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		refuse(w, http.StatusUnprocessableEntity, "INVALID_REQUEST", err.Error())
		return
	}
	all := fixed(r.PathValue("kind"))
	if r.PathValue("kind") == "vms" {
		for _, uuid := range slices.Sorted(maps.Keys(p.machines)) {
			all = append(all, p.machines[uuid])
		}
	}
	if _, name, found := strings.Cut(asked.Filter, "=="); found {
		all = slices.DeleteFunc(all, func(one object) bool { return one["spec"].(object)["name"] != name })
	}
	if r.PathValue("kind") == "images" {
		all = slices.DeleteFunc(all, func(one object) bool { return one["spec"].(object)["name"] == p.removed })
	}
	page := all[min(asked.Offset, len(all)):]
	page = page[:min(len(page), cmp.Or(asked.Length, 20))]
	respond(w, http.StatusOK, object{
		"api_version": "3.1", "entities": append([]object{}, page...),
		"metadata": object{"total_matches": len(all), "offset": asked.Offset, "length": len(page)},
	})
}

func (p *Central) category(w http.ResponseWriter, r *http.Request) {
	key, value := r.PathValue("key"), r.PathValue("value")
	if !p.categories[key+"/"+value] {
		refuse(w, http.StatusNotFound, "ENTITY_NOT_FOUND", "no such category")
		return
	}
	respond(w, http.StatusOK, object{"api_version": "3.1", "name": key, "value": value})
}

func (p *Central) task(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.PathValue("task"), "failed-") {
		respond(w, http.StatusOK, object{
			"status": "FAILED", "error_detail": "Not enough resources", "progress_message": "create_vm_intentful",
		})
		return
	}
	if time.Now().Before(p.due[strings.TrimPrefix(r.PathValue("task"), "done-")]) {
		respond(w, http.StatusOK, object{"status": "RUNNING"})
		return
	}
	respond(w, http.StatusOK, object{"status": "SUCCEEDED"})
}

// create creates a virtual machine at once, with the fields that AHV adds.
func (p *Central) create(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Metadata, Spec object
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		refuse(w, http.StatusUnprocessableEntity, "INVALID_REQUEST", err.Error())
		return
	}
	p.made++
	uuid := fmt.Sprintf("4237a8c4-0000-4000-8000-%012d", p.made)
	task, state := "done-"+uuid, "COMPLETE"
	if p.failing {
		task, state, p.failing = "failed-"+uuid, "ERROR", false
	}
	asked.Metadata["uuid"], asked.Metadata["creation_time"] = uuid, "2026-01-02T03:04:05Z"
	resources := asked.Spec["resources"].(object)
	disks, _ := resources["disk_list"].([]any)
	if resources["guest_customization"] != nil {
		disks = append(disks, object{"device_properties": object{
			"device_type": "CDROM", "disk_address": object{"adapter_type": "IDE", "device_index": 3},
		}})
	}
	for i, disk := range disks {
		disk := disk.(object)
		disk["uuid"] = fmt.Sprintf("d15c0000-0000-4000-8000-%012d", i)
		if disk["device_properties"] == nil {
			disk["device_properties"] = object{
				"device_type": "DISK", "disk_address": object{"adapter_type": "SCSI", "device_index": i},
			}
		}
	}
	resources["disk_list"] = disks
	p.due[uuid] = time.Now().Add(p.latency)
	p.machines[uuid] = object{"api_version": "3.1", "metadata": asked.Metadata, "spec": asked.Spec,
		"status": statusOf(asked.Spec, state)}
	respond(w, http.StatusAccepted, object{
		"api_version": "3.1", "metadata": asked.Metadata, "spec": asked.Spec,
		"status": object{"state": "PENDING", "execution_context": object{"task_uuid": task}},
	})
}

// statusOf derives the status from a specification.
func statusOf(spec object, state string) object {
	resources := maps.Clone(spec["resources"].(object))
	var interfaces []object
	nics, _ := resources["nic_list"].([]any)
	for i, nic := range nics {
		nic := nic.(object)
		nic["uuid"], nic["mac_address"] = fmt.Sprintf("21c00000-0000-4000-8000-%012d", i),
			fmt.Sprintf("50:6b:8d:00:00:%02d", i)
		shown := maps.Clone(nic)
		shown["ip_endpoint_list"] = []object{
			{"ip": fmt.Sprintf("192.168.1.%d", 20+i), "type": "LEARNED"}, {"ip": "169.254.1.1", "type": "LEARNED"},
		}
		interfaces = append(interfaces, shown)
	}
	maps.Copy(resources, object{
		"nic_list": interfaces, "hypervisor_type": "AHV", "vnuma_config": object{"num_vnuma_nodes": 0},
		"power_state_mechanism": object{"mechanism": "HARD", "guest_transition_config": object{}},
	})
	reference := maps.Clone(spec["cluster_reference"].(object))
	reference["name"] = "pe-1"
	return object{"name": spec["name"], "description": spec["description"], "state": state,
		"cluster_reference": reference, "resources": resources}
}

func (p *Central) get(w http.ResponseWriter, r *http.Request) {
	machine, there := p.machines[r.PathValue("uuid")]
	if !there {
		refuse(w, http.StatusNotFound, "ENTITY_NOT_FOUND", "no such virtual machine")
		return
	}
	respond(w, http.StatusOK, machine)
}

func (p *Central) delete(w http.ResponseWriter, r *http.Request) {
	if _, there := p.machines[r.PathValue("uuid")]; !there {
		refuse(w, http.StatusNotFound, "ENTITY_NOT_FOUND", "no such virtual machine")
		return
	}
	delete(p.machines, r.PathValue("uuid"))
	respond(w, http.StatusAccepted,
		object{"status": object{"state": "DELETE_PENDING", "execution_context": object{"task_uuid": "done-delete"}}})
}

// Names returns the name and state of each virtual machine.
func (p *Central) Names() []string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	var names []string
	for _, machine := range p.machines {
		names = append(names, fmt.Sprint(machine["spec"].(object)["name"], " ", machine["status"].(object)["state"]))
	}
	slices.Sort(names)
	return names
}

// At returns a field of a virtual machine, as JSON.
func (p *Central) At(uuid string, path ...string) string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	var value any = p.machines[uuid]
	for _, step := range path {
		value = value.(object)[step]
	}
	raw, _ := json.Marshal(value)
	return string(raw)
}

// FailNext makes the next create fail.
func (p *Central) FailNext() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.failing = true
}

// Deny refuses one method for virtual machines: POST creates, and DELETE deletes them. An empty method ends it.
func (p *Central) Deny(method string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.denied = method
}

// Count returns how many virtual machines were created.
func (p *Central) Count() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.made
}

// Change changes a virtual machine outside of the operator.
func (p *Central) Change(uuid string, change func(machine Object)) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	change(p.machines[uuid])
}

// Slow sets the duration of later create tasks.
func (p *Central) Slow(latency time.Duration) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.latency = latency
}

func (p *Central) Rotate(password string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.password = password
}

// RemoveImage removes the image with a name.
func (p *Central) RemoveImage(name string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.removed = name
}

// UUIDs returns the UUIDs of virtual machines with a name.
func (p *Central) UUIDs(name string) []string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	var found []string
	for uuid, machine := range p.machines {
		if machine["spec"].(object)["name"] == name {
			found = append(found, uuid)
		}
	}
	return found
}

// Remove deletes a virtual machine outside of the operator.
func (p *Central) Remove(uuid string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.machines, uuid)
}

// Copy copies a virtual machine under another name, without its description, as a user would, and returns the UUID.
func (p *Central) Copy(uuid, name string) (string, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	raw, err := json.Marshal(p.machines[uuid])
	var copied object
	if err == nil {
		err = json.Unmarshal(raw, &copied)
	}
	if err != nil || copied == nil {
		return "", fmt.Errorf("copying the virtual machine %s, which must be there: %w", uuid, err)
	}
	p.made++
	made := fmt.Sprintf("4237a8c4-0000-4000-8000-%012d", p.made)
	copied["metadata"].(object)["uuid"] = made
	for _, part := range []string{"spec", "status"} {
		copied[part].(object)["name"], copied[part].(object)["description"] = name, ""
	}
	p.machines[made] = copied
	return made, nil
}
