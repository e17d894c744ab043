package adoption

import (
	"cmp"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const (
	prismPath     = "/api/nutanix/v3"
	prismElement  = "0005b6f1-8f43-a0f2-02b7-3cecef193712"
	prismUsername = "admin"
	prismPassword = "simulated"
)

// object is what the API of Prism Central has for anything.
type object = map[string]any

// prism simulates as much of a Prism Central as the module nutanix uses, in the API's version 3: virtual machines, which are there once their task
// is requested, and the rest as fixed lists.
type prism struct {
	t           *testing.T
	server      *httptest.Server
	certificate string

	mutex sync.Mutex
	// machines are virtual machines by their UUIDs, as the API has them; made counts them.
	machines map[string]object
	made     int
	// failing has the next create end with an error.
	failing bool
	// categories has what there is of keys and values, as KEY/VALUE.
	categories map[string]bool
}

func newPrism(t *testing.T) *prism {
	t.Helper()
	p := &prism{t: t, machines: map[string]object{}, categories: map[string]bool{
		"kubernetes-io-cluster-" + clusterID + "/owned": true, "AppType/Web tier": true,
	}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+prismPath+"/{kind}/list", p.list)
	mux.HandleFunc("GET "+prismPath+"/categories/{key}/{value}", p.category)
	mux.HandleFunc("GET "+prismPath+"/tasks/{task}", p.task)
	mux.HandleFunc("POST "+prismPath+"/vms", p.create)
	mux.HandleFunc("GET "+prismPath+"/vms/{uuid}", p.get)
	mux.HandleFunc("DELETE "+prismPath+"/vms/{uuid}", p.delete)
	p.server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != prismUsername || password != prismPassword {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		p.mutex.Lock()
		defer p.mutex.Unlock()
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(p.server.Close)
	p.certificate = filepath.Join(t.TempDir(), "prism.pem")
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	if err := os.WriteFile(p.certificate, authority, 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// environment is what a run has from the cluster.
func (p *prism) environment() map[string]string {
	host, port, err := net.SplitHostPort(p.server.Listener.Addr().String())
	if err != nil {
		p.t.Fatal(err)
	}
	return map[string]string{"NUTANIX_ENDPOINT": host, "NUTANIX_PORT": port, "SSL_CERT_FILE": p.certificate}
}

func respond(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func refuse(w http.ResponseWriter, status int, reason, message string) {
	respond(w, status, object{"api_version": "3.1", "code": status, "state": "ERROR", "message_list": []object{{"reason": reason, "message": message}}})
}

// fixed are the lists that do not change, by what stands in the API's paths.
func fixed(kind string) []object {
	named := func(uuid, name string) object {
		return object{"metadata": object{"kind": kind, "uuid": uuid}, "spec": object{"name": name, "resources": object{}}, "status": object{"name": name, "state": "COMPLETE"}}
	}
	cluster := func(uuid, name, service string) object {
		one := named(uuid, name)
		one["status"] = object{"name": name, "state": "COMPLETE", "resources": object{"config": object{"service_list": []string{service}}}}
		return one
	}
	return map[string][]object{
		"clusters": {cluster(prismElement, "pe-1", "AOS"), cluster("9a1e8a3e-0000-4b00-9b00-000000000001", "pc-1", "PRISM_CENTRAL")},
		"images": {
			named("ea05d5d3-8f1f-4e0c-9a52-000000000001", "rhcos"),
			named("ea05d5d3-8f1f-4e0c-9a52-000000000002", "twice"), named("ea05d5d3-8f1f-4e0c-9a52-000000000003", "twice"),
		},
		"subnets":  {named("c7938dc6-7659-453e-a688-000000000001", "net (a)"), named("c7938dc6-7659-453e-a688-000000000002", "net")},
		"projects": {named("5c6f5d2e-0000-4b00-9b00-000000000001", "team")},
		"hosts": {{"metadata": object{"kind": "host"}, "status": object{"cluster_reference": object{"kind": "cluster", "uuid": prismElement}, "resources": object{
			"gpu_list": []object{
				{"status": "ASSIGNED", "name": "T4", "vendor": "NVIDIA", "mode": "PASSTHROUGH_COMPUTE", "device_id": 7864},
				{"status": "UNUSED", "name": "A40", "vendor": "NVIDIA", "mode": "VIRTUAL", "device_id": 8757},
			},
		}}}},
	}[kind]
}

// list returns a page of a list, with the filters that the module writes.
func (p *prism) list(w http.ResponseWriter, r *http.Request) {
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
	page := all[min(asked.Offset, len(all)):]
	page = page[:min(len(page), cmp.Or(asked.Length, 20))]
	respond(w, http.StatusOK, object{
		"api_version": "3.1", "entities": append([]object{}, page...), "metadata": object{"total_matches": len(all), "offset": asked.Offset, "length": len(page)},
	})
}

func (p *prism) category(w http.ResponseWriter, r *http.Request) {
	key, value := r.PathValue("key"), r.PathValue("value")
	if !p.categories[key+"/"+value] {
		refuse(w, http.StatusNotFound, "ENTITY_NOT_FOUND", "no such category")
		return
	}
	respond(w, http.StatusOK, object{"api_version": "3.1", "name": key, "value": value})
}

func (p *prism) task(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.PathValue("task"), "failed-") {
		respond(w, http.StatusOK, object{"status": "FAILED", "error_detail": "Not enough resources", "progress_message": "create_vm_intentful"})
		return
	}
	respond(w, http.StatusOK, object{"status": "SUCCEEDED"})
}

// create makes a virtual machine at once, with what AHV adds to what is asked for.
func (p *prism) create(w http.ResponseWriter, r *http.Request) {
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
		disks = append(disks, object{"device_properties": object{"device_type": "CDROM", "disk_address": object{"adapter_type": "IDE", "device_index": 3}}})
	}
	for i, disk := range disks {
		disk := disk.(object)
		disk["uuid"] = fmt.Sprintf("d15c0000-0000-4000-8000-%012d", i)
		if disk["device_properties"] == nil {
			disk["device_properties"] = object{"device_type": "DISK", "disk_address": object{"adapter_type": "SCSI", "device_index": i}}
		}
	}
	resources["disk_list"] = disks
	p.machines[uuid] = object{"api_version": "3.1", "metadata": asked.Metadata, "spec": asked.Spec, "status": statusOf(asked.Spec, state)}
	respond(w, http.StatusAccepted, object{
		"api_version": "3.1", "metadata": asked.Metadata, "spec": asked.Spec, "status": object{"state": "PENDING", "execution_context": object{"task_uuid": task}},
	})
}

// statusOf returns what becomes of a specification.
func statusOf(spec object, state string) object {
	resources := maps.Clone(spec["resources"].(object))
	var interfaces []object
	nics, _ := resources["nic_list"].([]any)
	for i, nic := range nics {
		nic := nic.(object)
		nic["uuid"], nic["mac_address"] = fmt.Sprintf("21c00000-0000-4000-8000-%012d", i), fmt.Sprintf("50:6b:8d:00:00:%02d", i)
		shown := maps.Clone(nic)
		shown["ip_endpoint_list"] = []object{{"ip": fmt.Sprintf("192.168.1.%d", 20+i), "type": "LEARNED"}, {"ip": "169.254.1.1", "type": "LEARNED"}}
		interfaces = append(interfaces, shown)
	}
	maps.Copy(resources, object{
		"nic_list": interfaces, "hypervisor_type": "AHV", "vnuma_config": object{"num_vnuma_nodes": 0},
		"power_state_mechanism": object{"mechanism": "HARD", "guest_transition_config": object{}},
	})
	reference := maps.Clone(spec["cluster_reference"].(object))
	reference["name"] = "pe-1"
	return object{"name": spec["name"], "description": spec["description"], "state": state, "cluster_reference": reference, "resources": resources}
}

func (p *prism) get(w http.ResponseWriter, r *http.Request) {
	machine, there := p.machines[r.PathValue("uuid")]
	if !there {
		refuse(w, http.StatusNotFound, "ENTITY_NOT_FOUND", "no such virtual machine")
		return
	}
	respond(w, http.StatusOK, machine)
}

func (p *prism) delete(w http.ResponseWriter, r *http.Request) {
	if _, there := p.machines[r.PathValue("uuid")]; !there {
		refuse(w, http.StatusNotFound, "ENTITY_NOT_FOUND", "no such virtual machine")
		return
	}
	delete(p.machines, r.PathValue("uuid"))
	respond(w, http.StatusAccepted, object{"status": object{"state": "DELETE_PENDING", "execution_context": object{"task_uuid": "done-delete"}}})
}

// names returns the names of the virtual machines that are there, each with its state.
func (p *prism) names() []string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	var names []string
	for _, machine := range p.machines {
		names = append(names, fmt.Sprint(machine["spec"].(object)["name"], " ", machine["status"].(object)["state"]))
	}
	slices.Sort(names)
	return names
}

// at returns what is at a path of a virtual machine, as JSON.
func (p *prism) at(uuid string, path ...string) string {
	p.t.Helper()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	var value any = p.machines[uuid]
	for _, step := range path {
		value = value.(object)[step]
	}
	raw, err := json.Marshal(value)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(raw)
}

// failNext has the next create end with an error.
func (p *prism) failNext() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.failing = true
}

// count is how many virtual machines were made.
func (p *prism) count() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.made
}

// change has somebody else change a virtual machine.
func (p *prism) change(uuid string, change func(machine object)) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	change(p.machines[uuid])
}
